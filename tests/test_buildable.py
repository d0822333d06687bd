"""What the core or the host refuses of engines and servers is told before anything runs, with exit status 2."""

import re
import resource
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import pmsim
from pmsim.errors import ConfigError
from pmsim.kinds.engine_messages import in_parameters
from pmsim.kinds.engine_options import EngineParameters
from pmsim.points import points_of
from pmsim.scenario import Scenario
from pmsim.units import Quantity, parse

PLATFORM = "sep-e5-4620v2"
FPTREE = {"engine": "fptree", "workload": "lookup8"}
PROPAGATION = {"study": "propagation", "rate": 1_000}
REFUSED = {
    "a log of one page": (
        "oltp",
        {"log_size": "64 KiB"},
        "parameters.log_size: 64 KiB: too small; choose at least 6400 KiB, for four ",
    ),
    "after a restart": (
        "restart",
        {"log_size": "64 KiB"},
        "log_size: 64 KiB: too small; choose at least 6400 KiB",
    ),
    "less than a page": ("oltp", {"log_size": "1 KiB", "scale": 1}, "log_size: 1 KiB: too small; choose at le"),
    "of nvm-direct": (
        "oltp",
        {"engine": "nvm-direct", "log_size": "64 KiB"},
        "choose at least 1 MiB, four pages",
    ),
    "a log larger than PMem": (
        "oltp",
        {"log_size": "8 TiB"},
        "log_size: 8 TiB do not fit the 384 GiB of pmem",
    ),
    "than the drive": ("oltp", {"log_size": "8 TiB", "log_device": "ssd"}, "of the block device of platform"),
    "DRAM of a server": ("system", {"dram_capacity": "1 TiB"}, "dram_capacity: 1 TiB do not fit the 32 GiB"),
    "PMem of a server": ("system", {"pmem_capacity": "1 TiB"}, "pmem_capacity: 1 TiB do not fit the 384 GiB"),
    "no room for its log": ("system", {"pmem_capacity": "384 GiB"}, "pmem_capacity: region '"),
    "no page": (
        "system",
        {"rows": 9, "pmem_capacity": "4 KiB"},
        "pmem_capacity: 4096 B: holds less than two pages",
    ),
    "rows": (
        "system",
        {"rows": 10**9},
        "rows: 1000000000 rows are 264 GB, more than dram_capacity, pmem_capac",
    ),
    "logs": (
        "system",
        {"service": "log", "log_size": "300 GiB"},
        "log_size: one log of 300 GiB for each of 4 th",
    ),
    "an entry": (
        "system",
        {"service": "log", "log_size": 4096, "entry_size": 65536},
        "log_size: too small for o",
    ),
    "a group": (
        "system",
        {"service": "block-log", "log_size": 4096, "group_size": 999},
        "log_size: too small fo",
    ),
    "a block log": (
        "system",
        {"service": "block-log", "log_size": "1 GiB"},
        "log_size: 1073741824 is too large",
    ),
    "pages": ("system", PROPAGATION | {"pages": 2**22}, "pages: 64 GiB do not fit the 32 GiB of dram"),
    "entries": (
        "log",
        {"entry_size": 504, "log_size": 512},
        "parameters.log_size: too small; an entry needs 576",
    ),
    "large entries": (
        "log",
        {"entry_size": 2**20, "log_size": 2**16},
        "parameters.log_size: 65536 B hold no en",
    ),
    "dancing fields": (
        "log",
        {"algorithm": "header-dancing", "entry_size": 8, "log_size": 256},
        "parameters.log_size: a place of 256 bytes is too small",
    ),
    "records": (
        "in-place",
        {"region_size": 64, "update_size": 64},
        "parameters.region_size: 64 bytes; each thread needs at least one record of 192 bytes",
    ),
    "pages of its writers": (
        "system",
        PROPAGATION | {"pages": 2},
        "pages: 2 for 6 threads; choose at least that",
    ),
}


def scenario(kind: str, given: dict[str, Any]) -> Scenario:
    defaults: dict[str, Any] = {"system": {"service": "engine"}, "log": {}, "in-place": {}}
    defaults = defaults.get(kind, {"data_size": "64 MiB"})
    return Scenario(kind=kind, platform=PLATFORM, parameters=defaults | given)


@pytest.mark.parametrize(("kind", "given", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_built_is_refused_before_it_runs(kind: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        points_of(scenario(kind, given))
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("tier", "message"),
    [
        ("dram_capacity", "holds no inner node of 65536 bytes; raise it"),
        ("pmem_capacity", "holds no leaf; raise it"),
    ],
)
def test_a_tier_that_is_too_small_is_a_point_that_does_not_fit(tier: str, message: str) -> None:
    result = pmsim.run(scenario("oltp", FPTREE | {tier: 0}), jobs=1, progress=False)
    assert list(result.frame["fits"]) == [0]
    assert [failure.message for failure in result.not_held] == [f"{tier}: 0 B: {message}"]


def test_the_line_names_the_file_and_the_swept_key(working_folder: Path, complaint: Callable[..., str]) -> None:
    content = f'kind = "oltp"\nplatform = "{PLATFORM}"\n[sweep]\nlog_size = ["1 GiB", "64 KiB"]\n'
    (working_folder / "s.toml").write_text(content)
    said = complaint("run", "s.toml")
    assert "s.toml: sweep.log_size: 64 KiB: too small" in said
    assert "log_bytes" not in said


@pytest.mark.parametrize("scale", ["1", "1/3", "1/4", "1/1000"])
@pytest.mark.parametrize("engine", ["three-tier", "nvm-direct", "nvm-undo"])
def test_the_log_that_is_proposed_is_large_enough_and_no_larger_than_need_be(engine: str, scale: str) -> None:
    given = {"engine": engine, "scale": scale, "data_size": "512 MiB", "log_size": 64}
    with pytest.raises(ConfigError) as raised:
        points_of(scenario("oltp", given))
    proposed = re.search(r"log_size: 64 B: too small; choose at least ([\d.]+ \w+),", str(raised.value))
    assert proposed, raised.value
    assert str(raised.value).endswith(f"; above scale {scale} less is enough") == (scale != "1")
    points_of(scenario("oltp", given | {"log_size": proposed[1]}))
    if engine == "three-tier":  # whose log proposes some room for its header
        return
    page = int(16384 / Fraction(scale)) // 64 * 64
    with pytest.raises(ConfigError, match="log_size"):
        points_of(scenario("oltp", given | {"log_size": parse(proposed[1], Quantity.SIZE) - page}))


def test_a_message_is_in_the_terms_of_the_parameters_and_says_what_is_not() -> None:
    given = EngineParameters.model_validate({"scale": "1/16", "engine": "fptree", "pmem_capacity": "1 GiB"})
    told = {
        "engine fptree: pmem_bytes = 67108864: its 9 leaves are full; raise it": (
            "pmem_capacity: 1 GiB: its 9 leaves are full; raise it (sizes at scale 1/16)"
        ),
        "the home tier of the pages is full: it has room for 9 pages; make pmem_bytes or ssd_bytes larger": (
            "pmem_capacity: the data do not fit into 1 GiB; raise it"
        ),
        "engine x: the data do not fit into dram_bytes = 9; raise it": (
            "dram_capacity: the data do not fit into 2 GiB; raise it"
        ),
        "engine x: a transaction changes more than fits into log_bytes = 9; raise it": (
            "engine x: a transaction changes more than fits into log_size = 1 GiB; raise it"
        ),
        "threads = 2048: at most 1024 can have a log each": "threads: 2048: at most 1024 can have a log each",
        "region 'write-ahead log' on pmem: 9 bytes do not fit: 1 of 2 bytes are in use; make it smaller": (
            "log_size: region 'write-ahead log' on pmem: 9 bytes do not fit: 1 of 2 bytes are in use; "
            "make it smaller (sizes at scale 1/16)"
        ),
    }
    for of_core, of_user in told.items():
        assert str(in_parameters(ConfigError(of_core), given)) == of_user


@pytest.mark.parametrize("kind", ["oltp", "restart", "system"])
def test_more_memory_than_the_host_gives_is_refused_before_it_runs(kind: str) -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2**36, before[1]))
    try:
        with pytest.raises(ConfigError, match=r"the host refuses .* of address space"):
            points_of(
                scenario(kind, {"pmem_capacity": "300 GiB", **({} if kind == "system" else {"scale": 1})})
            )
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_capacities_end_where_the_core_can_count(complaint: Callable[..., str]) -> None:
    said = complaint("run", "quickstart", "--set", "platform.pmem.capacity=64 TiB")
    assert "platform.pmem.capacity: 64 TiB is out of range; choose 0 B to 16 TiB" in said
