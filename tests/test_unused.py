"""A parameter that no point of a scenario uses is refused: its seed would look like an effect."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pmsim
from pmsim import trace
from pmsim.errors import ConfigError
from pmsim.kinds import KINDS, find_kind
from pmsim.kinds.applies import without_use
from pmsim.shipped import find_scenario, scenario_names
from pmsim.unused import checked_points
from pmsim.validation.measures import points_of, resolve
from pmsim.validation.suite_files import load_suite, suites

PLATFORM = {"base": "tum-6212u", "block_device": "nvme-p4510"}
SYSTEM = {"rate": 100_000}
REFUSED: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "updates of a mix": (
        "oltp",
        {"workload": "ycsb-a"},
        {"update_percent": [0, 50, 100]},
        "sweep.update_percent: has no meaning for workload = 'ycsb-a'; remove it or use workload = 'ycsb-",
    ),
    "of several mixes": (
        "oltp",
        {"update_percent": 7},
        {"workload": ["ycsb-a", "ycsb-b"]},
        "parameters.update_percent: has no meaning for workload = 'ycsb-a' or 'ycsb-b'; remove it or use "
        "workload = 'ycsb-rw'",
    ),
    "migration": (
        "oltp",
        {},
        {"migration_dr": [0.1, 1.0]},
        "sweep.migration_dr: has no meaning for engine = 'three-tier'; remove it or use engine = 'spitfire'",
    ),
    "warehouses": ("oltp", {}, {"warehouses": [16, 32]}, "warehouses: has no meaning for workload = 'ycsb-ro'"),
    "data of tpcc": (
        "oltp",
        {"workload": "tpcc", "data_size": "1 GiB"},
        {},
        "data_size: has no meaning for workload = 'tpcc'; remove it or use another workload",
    ),
    "latches": (
        "oltp",
        {},
        {"latches": ["none", "shared"]},
        "sweep.latches: has no meaning for threads = 1; remove it or use threads = 2 or more",
    ),
    "algorithms of a log that the machine has put on its SSD": (
        "oltp",
        {"engine": "ssd-bm", "pmem_capacity": 0},
        {"log_algorithm": ["rawl", "poplog"]},
        "sweep.log_algorithm: has no meaning for log_device = 'ssd'; remove it or use log_device = 'pmem'",
    ),
    "commits to a log that the machine has put on PMem": (
        "oltp",
        {"threads": 2, "commits": "single"},
        {},
        "parameters.commits: has no meaning for log_device = 'pmem'; remove it or use log_device = 'ssd'",
    ),
    "cleaning": (
        "oltp",
        {"engine": "nvm-direct", "cleaning": "paced"},
        {},
        "parameters.cleaning: has no meaning for engine = 'nvm-direct'; remove it or use engine = 'main-memo",
    ),
    "locks": (
        "oltp",
        {"locks": "none", "threads": 2},
        {},
        "parameters.locks: has no meaning for workload = 'ycsb-ro'; remove it or use workload = 'tpcc'",
    ),
    "locks without latches": (
        "oltp",
        {"locks": "none", "threads": 2, "latches": "none", "workload": "tpcc"},
        {},
        "locks: has no meaning for latches = 'none'; remove it or use latches = 'shared' or 'optimistic'",
    ),
    "fixes": (
        "oltp",
        {"fixes": "optimistic"},
        {},
        "parameters.fixes: has no meaning for threads = 1; remove it",
    ),
    "fixes without frames": (
        "oltp",
        {"fixes": "optimistic", "threads": 2, "engine": "main-memory"},
        {},
        "fixes: has no meaning for engine = 'main-memory'; remove it or use engine = 'basic-nvm-bm', 'file",
    ),
    "logs": (
        "oltp",
        {"logs": "per-thread"},
        {"engine": ["nvm-direct", "nvm-undo"]},
        "parameters.logs: has no meaning for threads = 1 and engine = 'nvm-direct' or 'nvm-undo'; remov",
    ),
    "commits": (
        "oltp",
        {"commits": "group", "log_device": "ssd"},
        {},
        "parameters.commits: has no meaning for threads = 1; remove it or use threads = 2 or more",
    ),
    "logs of undo logs": (
        "oltp",
        {"threads": 2},
        {"logs": ["per-thread", "shared"], "engine": ["nvm-direct", "nvm-undo"]},
        "sweep.logs: has no meaning for engine = 'nvm-direct' or 'nvm-undo'; remove it or use engine = '",
    ),
    "latches of a restart": ("restart", {"latches": "none"}, {}, "latches: has no meaning for threads = 1"),
    "requests": (
        "oltp",
        {"workload": "ycsb-a", "requests": "foo.csv"},
        {},
        "parameters.requests: has no meaning for workload = 'ycsb-a'; remove it or use workload = 'requests'",
    ),
    "requests of one point": (
        "oltp",
        {"requests": "foo.csv"},
        {"workload": ["ycsb-a", "requests"]},
        "parameters.requests: has no meaning for workload = 'ycsb-a'",
    ),
    "a recording": (
        "system",
        SYSTEM | {"recording": "foo.csv"},
        {},
        "parameters.recording: has no meaning for study = 'load'; remove it or use study = 'recorded'",
    ),
    "load beside a rate": (
        "system",
        SYSTEM,
        {"load_percent": [10, 20]},
        "sweep.load_percent: has no meaning for rate = 100000; remove it or use rate = 0",
    ),
    "writers that are not": (
        "system",
        SYSTEM | {"study": "propagation", "background": "none"},
        {"writers": [1, 3]},
        "sweep.writers: has no meaning for background = 'none'; remove it or use background = 'writers'",
    ),
    "an engine of a log": (
        "system",
        SYSTEM,
        {"engine": ["three-tier", "nvm-direct"]},
        "sweep.engine: has no meaning for service = 'log'; remove it or use service = 'engine'",
    ),
    "places of a log": (
        "oltp",
        {"engine": "nvm-undo"},
        {"log_device": ["pmem", "none"]},
        "sweep.log_device: has no meaning for engine = 'nvm-undo'; remove it or use engine = 'main-memory', ",
    ),
    "writes of pages to PMem": (
        "oltp",
        {"workload": "ycsb-a"},
        {"page_write": ["ntstore", "store+clwb"], "engine": ["ssd-bm", "nvm-direct"]},
        "sweep.page_write: has no meaning for engine = 'ssd-bm' or 'nvm-direct'; remove it or use engine = ",
    ),
    "switches of other engines": (
        "oltp",
        {"engine": "ssd-bm"},
        {"mini_pages": [True, False]},
        "sweep.mini_pages: has no meaning for engine = 'ssd-bm'; remove it or use engine = 'three-tier' or",
    ),
    "size fields of a log that has one": (
        "log",
        {},
        {"dancing_fields": [2, 64]},
        "sweep.dancing_fields: has no meaning for algorithm = 'poplog'; remove it or use algorithm = 'head",
    ),
    "groups of plain code": (
        "interleave",
        {"interleave": "none"},
        {"group_size": [1, 20]},
        "sweep.group_size: has no meaning for interleave = 'none'; remove it or use interleave = 'reads', ",
    ),
    "fences of lookups": (
        "interleave",
        {"fence": "mfence"},
        {"group_size": [1, 20]},
        "parameters.fence: has no meaning for operation = 'lookup'; remove it or use operation = 'insert'",
    ),
    "slots of pages that have their places": (
        "page-flush",
        {"technique": "checksum"},
        {"spare_slots": [1, 100]},
        "sweep.spare_slots: has no meaning for technique = 'checksum'; remove it or use technique = 'cow', ",
    ),
    "writes of what writes nothing": (
        "page-flush",
        {"technique": "crc32c", "write": "store+clwb"},
        {},
        "parameters.write: has no meaning for technique = 'crc32c'; remove it or use another technique",
    ),
}
USED: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "over engines": ("oltp", {"migration_dr": 0.1}, {"engine": ["three-tier", "spitfire"]}),
    "over workloads": ("oltp", {}, {"update_percent": [0, 50], "workload": ["ycsb-a", "ycsb-rw"]}),
    "over threads": ("oltp", {"latches": "shared", "engine": "main-memory"}, {"threads": [1, 2]}),
    "at its default": ("oltp", {"migration_dr": 1.0, "update_percent": 0, "latches": "optimistic"}, {}),
    "a log for engines that have one": ("oltp", {"engine": "nvm-undo", "log_device": "ssd"}, {}),
    "switched off": ("oltp", {"engine": "ssd-bm", "mini_pages": False, "pointer_swizzling": False}, {}),
    "over logs": ("log", {"dancing_fields": 8}, {"algorithm": ["classic", "header-dancing"]}),
    "over studies": ("system", SYSTEM | {"timeout": "5 us"}, {"study": ["load", "group-commit"]}),
}


def scenario(kind: str, parameters: dict[str, Any], sweep: dict[str, Any], **more: Any) -> pmsim.Scenario:
    return pmsim.Scenario(kind=kind, platform=PLATFORM, parameters=parameters, sweep=sweep, **more)


@pytest.mark.parametrize(("kind", "parameters", "sweep", "message"), REFUSED.values(), ids=REFUSED)
def test_what_no_point_uses_is_refused(
    kind: str, parameters: dict[str, Any], sweep: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        checked_points(scenario(kind, parameters, sweep))
    assert message in str(raised.value)


@pytest.mark.parametrize(("kind", "parameters", "sweep"), USED.values(), ids=USED)
def test_what_some_point_uses_is_not(kind: str, parameters: dict[str, Any], sweep: dict[str, Any]) -> None:
    assert checked_points(scenario(kind, parameters, sweep))


def test_changes_made_one_at_a_time_are_named() -> None:
    with pytest.raises(ConfigError, match=r"^vary\.zipf: zipf: has no meaning for workload = 'tpcc'; "):
        checked_points(scenario("oltp", {"workload": "tpcc"}, {}, vary={"zipf": [0.5]}))
    variant = [{"label": "one log each", "set": {"logs": "per-thread"}}]
    with pytest.raises(ConfigError, match=r"^variant\.1: logs: has no meaning for threads = 1; remove it"):
        checked_points(scenario("oltp", {}, {}, variant=variant))


def test_every_way_to_run_a_scenario_refuses_it(working_folder: Path, complaint: Callable[..., str]) -> None:
    content = 'kind = "oltp"\nplatform = "tum-6212u"\n[parameters]\nssd_capacity = 0\nengine = "nvm-direct"\n'
    (working_folder / "s.toml").write_text(f"{content}[sweep]\nmigration_dr = [0.1, 1.0]\n")
    for command in (["run", "s.toml"], ["run", "s.toml", "--dry-run"], ["tune", "s.toml"]):
        said = complaint(*command)
        assert "s.toml: sweep.migration_dr: has no meaning for engine = 'nvm-direct'; remove it or use " in said
    with pytest.raises(ConfigError, match=r"s\.toml: sweep\.migration_dr: has no meaning"):
        trace.record("s.toml", out="t.pmt")


def test_tables_name_parameters_and_conditions_can_be_met() -> None:
    for kind in KINDS.values():
        fields = kind.parameter_model.model_fields
        for name, conditions in kind.uses.items():
            assert {name, *(each.key for each in conditions)} <= set(fields)


def uses_something(scenario: pmsim.Scenario) -> bool:
    return bool(find_kind(scenario.kind).uses)


@pytest.mark.parametrize(
    "name",
    [name for name in scenario_names() if uses_something(pmsim.Scenario.from_file(find_scenario(name)))],
)
def test_shipped_scenarios_use_what_they_set(name: str) -> None:
    assert checked_points(pmsim.Scenario.from_file(find_scenario(name)))


@pytest.mark.parametrize("suite", suites())
def test_claims_use_what_they_set(suite: str) -> None:
    for name, series in load_suite(suite).series.items():
        uses = find_kind(series.kind).uses
        points = [resolve(point, 0) for point in points_of(series)] if uses else []
        asked, settled = [point.asked for point in points], [point.parameters for point in points]
        assert [message for key in uses if (message := without_use(key, uses, asked, settled))] == [], name


def test_what_a_file_uses_may_stay_where_set_leaves_no_use_for_it() -> None:
    def scenario(*engines: str) -> pmsim.Scenario:
        return pmsim.Scenario(
            kind="oltp",
            name="x",
            platform=PLATFORM,
            parameters={"migration_dr": 0.5},
            sweep={"engine": list(engines)},
        )

    narrowed = scenario("three-tier")
    assert checked_points(narrowed, scenario("spitfire", "three-tier"))
    with pytest.raises(ConfigError, match="migration_dr: has no meaning for engine = 'three-tier'"):
        checked_points(narrowed)
