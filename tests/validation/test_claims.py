"""The claims that come with pmsim are complete and keep to the rule of tolerances."""

import datetime
from collections.abc import Callable
from pathlib import Path

import pytest

from pmsim.errors import ConfigError
from pmsim.validation.claims import RULES, Claim, Suite, parse_ordering
from pmsim.validation.measures import Point
from pmsim.validation.suite_files import load_suite, suites

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def device() -> Suite:
    return load_suite("device")


def test_every_published_device_claim_is_there_exactly_once(device: Suite) -> None:
    published = (DATA / "device_claims.txt").read_text().split()
    assert [claim.id for claim in device.claim] == published


def test_every_claim_is_tested_or_says_why_not(device: Suite) -> None:
    for claim in device.claim:
        assert claim.checks or len(claim.not_simulated) > 40, claim.id


def test_every_series_and_measure_is_used(device: Suite) -> None:
    used = {name for claim in device.claim for name in device.series_of(claim)}
    assert used == set(device.series)


def test_calibration_is_only_what_a_value_was_set_on(device: Suite) -> None:
    calibrated = [claim for claim in device.claim if claim.checks and claim.use == "calibration"]
    rules = {"idle-or-peak", "single-thread-write", "interference", "threads"}
    # Said of what a parameter of the profile was taken from: its source names the same section of the paper.
    parameters = {
        "device-same-line-penalty",  # pmem.reread_delay
        "device-clwb-invalidates",  # core.flush_keeps_line
        "device-block-size",  # pmem.block_size, and the next two
        "device-block-in-lines",
        "device-amplification-bound",
        "device-sep-latency-range",  # pmem.media_read_latency
    }
    # Ratios, orderings and multiples of numbers that are calibration themselves.
    derived = {
        "device-read-latency-ratio",
        "device-persist-write-below-read",
        "device-read-bandwidth-ratio",
        "device-write-bandwidth-ratio",
        "device-rw-asymmetry",
        "device-interf-pmem-scan-loss",
        "device-dram-preferred",
        "device-persist-cycles",
    }
    # The tag latency of memory mode is its 10 %; the way to memory of ilmenau-5215 is fitted to its idle DRAM
    # read, and over how much memory its random ones go was settled with results in view; so was the reading of
    # what clwb gains.
    others = {
        "device-memory-mode-small",
        "device-ilmenau-dram-idle",
        "device-ilmenau-dram-loaded",
        "device-clwb-gain-grows",
    }
    assert {claim.id for claim in calibrated if claim.rule not in rules} == others | parameters | derived
    # dram.turnaround was set with both writers in view, the read buffer with the PMem scans.
    assert {claim.id for claim in calibrated if claim.rule == "interference"} == {
        "device-interf-dram-scan-with-log",
        "device-interf-dram-scan-with-page",
        "device-interf-pmem-scan-alone",
        "device-interf-pmem-scan-with-log",
        "device-interf-pmem-scan-with-page",
    }
    # The line count from which the prefetcher harms set prefetcher.trigger of tum-6212u; the threads of the
    # peak were in view when pmem.media_read_service was set.
    assert {claim.id for claim in calibrated if claim.rule == "threads"} == {
        "device-prefetcher-drop",
        "device-pmem-read-peak-threads",
    }
    assert len(calibrated) == 33


@pytest.mark.parametrize("name", suites())
def test_what_follows_from_calibration_alone_is_calibration(name: str) -> None:
    suite = load_suite(name)

    def number(claim: Claim, measure: str) -> str:
        return suite.measure(claim, measure).model_dump_json()

    fitted = {
        number(claim, check.value)
        for claim in suite.claim
        for check in claim.checks
        if claim.use == "calibration" and check.value is not None
    }

    def follows(claim: Claim, measure: str) -> bool:
        below = suite.measure(claim, measure).measure_names()
        return number(claim, measure) in fitted or (bool(below) and all(follows(claim, one) for one in below))

    for claim in suite.claim:
        numbers = [measure for check in claim.checks for measure in check.measure_names()]
        curves = [series for check in claim.checks for series in check.series_names()]
        if claim.checks and not curves and all(follows(claim, measure) for measure in numbers):
            assert claim.use == "calibration", claim.id


@pytest.mark.parametrize(
    ("rule", "expected", "accepted", "refused"),
    [
        ("idle-or-peak", 100.0, [95.0, 105.0], [94.9, 105.1]),
        ("single-thread-write", 10.0, [9.0, 11.0], [8.9, 11.1]),
        ("interference", 40.0, [30.0, 50.0], [29.9, 50.1]),
        ("threads", 15.0, [13.0, 17.0], [12.9, 17.1]),
        ("stated", 2.0, [1.8, 2.2], [1.79, 2.21]),
        ("stated-elsewhere", 100.0, [85.0, 115.0], [84.9, 115.1]),
        ("stated-above-device", 100.0, [85.0, 115.0], [84.9, 115.1]),
        ("approx", 100.0, [75.0, 125.0], [74.9, 125.1]),
        ("near-one", 1.1, [1.001, 1.199], [0.999, 1.201]),
        ("exact", 79, [79], [78, 80]),
        ("hundredths", 1.22, [1.216, 1.224], [1.207, 1.226]),
        ("lines-per-lookup", 6.5, [5.2, 7.8], [5.19, 7.81]),
        ("lines-ratio", 2.0, [1.5, 2.5], [1.49, 2.51]),
        ("tier-gap", 4.0, [2.8, 5.2], [2.79, 5.21]),
        ("scan-points", 91.0, [83.0, 99.0], [82.9, 99.1]),
        ("count", 256.0, [251.0, 261.0], [250.0, 262.0]),
    ],
)
def test_tolerances_are_those_of_the_documented_rule(
    rule: str, expected: float, accepted: list[float], refused: list[float]
) -> None:
    low, high = RULES[rule].interval(expected, expected)
    assert all(low <= value <= high for value in accepted)
    assert not any(low <= value <= high for value in refused)


def test_the_documentation_has_every_rule() -> None:
    page = (Path(__file__).parents[2] / "docs" / "validation.md").read_text()
    for name, rule in RULES.items():
        assert f"| `{name}` |" in page
        if rule.relative is not None:
            assert any(name in line and rule.describe() in line for line in page.splitlines()), name


def test_an_ordering_is_read_pair_by_pair() -> None:
    assert parse_ordering("nt > clwb ~ flush") == [("nt", ">", "clwb"), ("clwb", "~", "flush")]
    assert parse_ordering("a<2.6") == [("a", "<", "2.6")]


@pytest.mark.parametrize("text", ["a >", "> a", "a b", "a ! b", "a > > b", "a", ""])
def test_a_broken_ordering_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="ordering"):
        parse_ordering(text)


def test_the_smallest_suite_is_read(tmp_path: Path, one_claim: Callable[..., str]) -> None:
    path = tmp_path / "small.toml"
    path.write_text(one_claim())
    suite = load_suite(path)
    assert suite.citation(suite.claim[0]) == "Somebody: Something, 2020, Table 1"
    assert suite.series_of(suite.claim[0]) == ["s"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('rule = "stated"', 'rule = "guess"', "rule 'guess': unknown"),
        ('rule = "stated"', 'rule = "approx"', "does not fit a claim of kind absolute, stated"),
        ('precision = "stated"', 'precision = "exactly"', "claim 'device-x': precision"),
        ("expected = 100", 'expected = "fast"', "needs a number"),
        ('ref = "paper"', 'ref = "rumour"', "source 'rumour' is not in"),
        ('point = "s"', 'point = "t"', "series 't' is not defined"),
        ('{ value = "m" }', '{ value = "n" }', "measure 'n' is not defined"),
        ('{ point = "s" }', '{ point = "s", min = ["s"] }', "exactly one of"),
        ('{ point = "s" }', "{ }", "given: none"),
        ('{ point = "s" }', '{ at = "s" }', "'at' and 'x' belong together"),
        ('{ value = "m" }', '{ value = "m", order = "m > 1" }', "exactly one of value, order, everywh"),
        ('{ value = "m" }', '{ shape = "wavy", of = "s" }', "shape"),
        ('{ value = "m" }', '{ shape = "flat" }', "'shape' and 'of' belong together"),
        ('{ point = "s" }', '{ max = ["s"], within = 0.1 }', "'within' belongs to peak_x and decline_x"),
        ('{ value = "m" }', '{ value = "m", over = "s" }', "'over' belongs to a shape"),
        ('{ value = "m" }', '{ value = "m", within = 0.5 }', "'within' belongs to the shapes flat"),
        ('{ value = "m" }', '{ shape = "increasing", of = "s", within = 0.5 }', "'within' belongs to the"),
        ('{ value = "m" }', '{ shape = "flat", of = "s", peak = [1, 2] }', "'peak' belongs to the shape"),
        ('checks = [{ value = "m" }]', "", "either checks or the reason"),
        ('setup = "one thread"', 'setpu = "one thread"', "setpu"),
        ("[[claim]]", "[[claim", "not TOML"),
        ("[[claim]]", "[[claims]]", "claims: unknown key; did you mean 'claim'?"),
        ('{ point = "s" }', '{ ratio = ["m", "m"] }', "measure 'm' is made from itself; break the circle"),
        ('{ point = "s" }', "{ max = [] }", "'max' of nothing; name at least one"),
        ("expected = 100", "expected = nan", "expected: nan is not a finite number; write one"),
        ("expected = 100", "expected = [2, 1]", "'expected' goes down; write the smaller number first"),
        ('platform = "tum-6212u"', 'platfrom = "tum-6212u"', "platfrom: unknown key; did you mean 'platform'"),
        ('platform = "tum-6212u"', "", "series: s: platform: missing; add it"),
    ],
)
def test_a_malformed_suite_is_one_clear_line(
    tmp_path: Path, one_claim: Callable[..., str], old: str, new: str, message: str
) -> None:
    suite = one_claim()
    assert old in suite
    path = tmp_path / "bad.toml"
    path.write_text(suite.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        load_suite(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert ";" in str(caught.value) or "?" in str(caught.value)


def test_a_date_among_the_parameters_is_the_error_of_a_run() -> None:
    key = Point("latency", "tum-6212u", {"memory": datetime.date(1979, 5, 27)}).key
    assert "1979" in key


def test_a_claim_that_is_no_table(tmp_path: Path, one_claim: Callable[..., str]) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("claim = [3]\n" + one_claim().partition("[[claim]]")[0])
    with pytest.raises(ConfigError, match="claim '0': 3 is not a table; write"):
        load_suite(path)


def test_a_claim_given_twice_is_refused(tmp_path: Path, one_claim: Callable[..., str]) -> None:
    path = tmp_path / "twice.toml"
    path.write_text(one_claim() + "[[claim]]" + one_claim().partition("[[claim]]")[2])
    with pytest.raises(ConfigError, match="claim 'device-x': given twice"):
        load_suite(path)


def test_an_unknown_suite_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"suite 'devices': unknown; known: .*device"):
        load_suite("devices")


def test_a_missing_file_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.toml: no such file"):
        load_suite(tmp_path / "absent.toml")


_PART = """
title = "{name}"
[sources.paper]
citation = "{citation}"
[series.{name}]
platform = "tum-6212u"
kind = "latency"
metric = "latency_ns"
[[claim]]
id = "{claim}"
source = [{{ ref = "paper", where = "Table 1" }}]
setup = "any"
quantity = "latency"
kind = "shape"
expected = "flat"
unit = "ns"
precision = "qualitative"
rule = "shape"
checks = [{{ shape = "flat", of = "{name}" }}]
"""


def write_parts(folder: Path, **changes: str) -> Path:
    first = {"name": "one", "claim": "one", "citation": "A paper"}
    second = {"name": "two", "claim": "two", "citation": "A paper"} | changes
    (folder / "a.toml").write_text(_PART.format(**first))
    (folder / "b.toml").write_text(_PART.format(**second))
    return folder


def test_a_folder_is_one_suite(tmp_path: Path) -> None:
    suite = load_suite(write_parts(tmp_path))
    assert [claim.id for claim in suite.claim] == ["one", "two"]
    assert set(suite.series) == {"one", "two"}
    assert suite.title == "one; two"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"claim": "one"}, "claim 'one'"),
        ({"name": "one"}, "series 'one'"),
        ({"citation": "Another paper"}, "source 'paper'"),
    ],
)
def test_a_name_of_a_folder_belongs_to_one_file(tmp_path: Path, changes: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match="b.toml: " + problem):
        load_suite(write_parts(tmp_path, **changes))


def test_an_empty_folder_is_no_suite(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown; known: .*device"):
        load_suite(tmp_path)


def test_a_name_means_the_shipped_suite_whatever_the_working_directory_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "blocks").mkdir()
    write_parts(tmp_path / "blocks")
    monkeypatch.chdir(tmp_path)
    assert "log-classic-barriers" in {claim.id for claim in load_suite("blocks").claim}
