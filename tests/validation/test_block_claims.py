"""The claims about building blocks: each published one is there once, and says how it is tested or why not."""

from pathlib import Path

import pytest

from pmsim.api import load_scenario
from pmsim.validation.claims import Suite
from pmsim.validation.suite_files import load_suite

DATA = Path(__file__).parents[1] / "data"
FOLDER = Path(__file__).parents[2] / "validation" / "claims" / "blocks"
FAMILIES = sorted(path.stem for path in FOLDER.glob("*.toml"))


@pytest.fixture(scope="module")
def blocks() -> Suite:
    return load_suite("blocks")


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> tuple[str, Suite]:
    name = str(request.param)
    return name, load_suite(FOLDER / f"{name}.toml")


def test_every_published_claim_is_there_exactly_once(family: tuple[str, Suite]) -> None:
    name, suite = family
    published = (DATA / f"{name}_claims.txt").read_text().split()
    assert [claim.id for claim in suite.claim] == published


def test_every_claim_is_tested_or_says_why_not(family: tuple[str, Suite]) -> None:
    for claim in family[1].claim:
        assert claim.checks or len(claim.not_simulated) > 40, claim.id


def test_every_series_and_measure_is_used(family: tuple[str, Suite]) -> None:
    suite = family[1]
    assert {name for claim in suite.claim for name in suite.series_of(claim)} == set(suite.series)


#: The one CPU cost, set on one number, the number that `pmem.reread_delay` was set on, and what was read with
#: results in view (docs/calibration.md).
CALIBRATED = {
    "coro": ["coro-lookup-speedup-dram"],
    "inplace": ["inplace-fam-gain-shrinks", "inplace-read-seq-ordering", "inplace-read-rand-ordering"],
    "log": ["log-padding-gain", "log-hymem-ordering"],
    "page": ["page-crc32-rate"],
}


def test_blocks_are_predicted(family: tuple[str, Suite]) -> None:
    calibrated = [claim.id for claim in family[1].claim if claim.checks and claim.use == "calibration"]
    assert calibrated == CALIBRATED.get(family[0], [])


def test_placement_is_predicted() -> None:
    """But for one CPU cost, set on one ratio (docs/calibration.md)."""
    suite = load_suite("placement")
    calibrated = [claim.id for claim in suite.claim if claim.checks and claim.use == "calibration"]
    assert calibrated == ["tarantool-wal-50"]
    fitted = load_scenario("placement/by-writes").parameters["transaction_cycles"]
    assert {series.parameters["transaction_cycles"] for series in suite.series.values()} == {fitted}


def test_files_are_predicted() -> None:
    """But for what rows cost, and three claims that were read with results in view (docs/calibration.md)."""
    suite = load_suite("files")
    assert len(suite.claim) == len({claim.id for claim in suite.claim}) == 32
    calibrated = [claim.id for claim in suite.claim if claim.checks and claim.use == "calibration"]
    assert calibrated == ["pg-se2-average", "pg-se2-q11", "pg-llc-misses-constant"]
    fitted = {tuple(series.sweep["row_cycles"]) for series in suite.series.values() if series.sweep}
    assert fitted == {tuple(load_scenario("files/by-cpu").sweep["row_cycles"][1:])}
    assert {name for claim in suite.claim for name in suite.series_of(claim)} == set(suite.series)
    assert all(claim.checks or len(claim.not_simulated) > 40 for claim in suite.claim)


def test_storage_engines_are_predicted() -> None:
    """But for two CPU costs, and what was read or laid out with results in view (docs/calibration.md)."""
    claims = load_suite("hymem").claim
    calibrated = [claim.id for claim in claims if claim.checks and claim.use == "calibration"]
    assert calibrated == [
        "hymem-ycsb-mainmem-peak",
        "hymem-tpcc-mainmem-peak",
        "hymem-dram-area-ordering",
        "hymem-tpcc-rate-at-90",
        "hymem-scan-small-clg",
        "hymem-scan-full-clg",
        "hymem-scan-small-mini",
        "hymem-scan-full-mini",
        "hymem-scan-small-swizzle",
        "hymem-scan-full-swizzle",
        "hymem-scan-max-overhead",
        "hymem-fptree-leaf-accesses",
        "hymem-zipf-gain-50",
        "hymem-dram-share-plateau",
        "hymem-dram-share-no-nvm",
        "hymem-update-basic-half",
        "hymem-update-others-similar",
        "hymem-main-memory-close",
    ]


def test_the_families_make_one_suite(blocks: Suite) -> None:
    assert "log" in FAMILIES
    assert len(blocks.claim) == sum(len(load_suite(FOLDER / f"{name}.toml").claim) for name in FAMILIES)
