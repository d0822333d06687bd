"""Where a scenario leaves open where the log is: what the machine makes of it."""

from pathlib import Path
from typing import Any

import pytest

import pmsim
from pmsim import Scenario
from pmsim.cli import main
from pmsim.errors import ConfigError
from pmsim.kinds import find_kind
from pmsim.points import Point, points_of

OPTANE = {"base": "tum-6212u", "block_device": "nvme-p4510"}
BATTERY = {"base": "spr-cxl", "name": "battery", "pmem_persistence": "durable"}
SERVED = {"service": "engine", "engine": "three-tier", "rows": 1000, "ssd_capacity": "64 MiB", "workers": 2}
WITHOUT_PMEM = {"engine": "ssd-bm", "pmem_capacity": 0}


def point(platform: object = OPTANE, kind: str = "oltp", **parameters: Any) -> Point:
    (only,) = points_of(Scenario(kind=kind, platform=platform, parameters=parameters))
    return only


@pytest.mark.parametrize(
    ("platform", "given", "device"),
    [
        (OPTANE, {}, "pmem"),
        (OPTANE, WITHOUT_PMEM, "ssd"),
        (OPTANE, WITHOUT_PMEM | {"log_device": "pmem"}, "pmem"),
        (OPTANE, {"log_device": "ssd"}, "ssd"),
        ("spr-cxl", {}, "ssd"),
        (BATTERY, {}, "pmem"),
        # Its undo log is where its data are.
        ("spr-cxl", {"engine": "nvm-direct"}, "pmem"),
    ],
)
def test_the_log_is_on_pmem_that_the_engine_has_and_that_lasts(
    platform: object, given: dict[str, Any], device: str
) -> None:
    assert point(platform, **given).columns["log_device"] == device
    assert point(platform, "system", **SERVED | given).columns["log_device"] == device


@pytest.mark.parametrize(
    ("given", "commits"),
    [
        ({"threads": 8}, "group"),
        ({"threads": 1}, "single"),
        ({"threads": 8, "commits": "single"}, "single"),
        ({"threads": 8, "logs": "per-thread"}, "single"),
        ({"threads": 8, "pmem_capacity": "1 GiB"}, "single"),
    ],
)
def test_threads_commit_in_groups_where_they_share_a_log_on_an_ssd(given: dict[str, Any], commits: str) -> None:
    assert point(**WITHOUT_PMEM | given).columns["commits"] == commits


def test_workers_commit_in_groups_where_their_log_is_on_an_ssd() -> None:
    assert point(kind="system", **SERVED | WITHOUT_PMEM).columns["commits"] == "group"
    assert point(kind="system", **SERVED).columns["commits"] == "single"


@pytest.mark.parametrize("device", ["unwritten", "none"])
@pytest.mark.parametrize("memory_mode", [False, True])
def test_pages_have_no_journal_on_pmem_that_the_engine_does_not_have(device: str, memory_mode: bool) -> None:
    given = WITHOUT_PMEM | {"workload": "ycsb-rw", "update_percent": 100, "scale": 1, "data_size": "4 MiB"}
    given |= {"dram_capacity": "1 MiB", "ssd_capacity": "64 MiB", "operations": 1_000, "warmup": 1_000}
    if memory_mode:
        given |= {"memory_mode": True, "pmem_capacity": "1 MiB", "dram_capacity": "512 KiB"}
    measured = pmsim.simulate_point("oltp", OPTANE, given | {"log_device": device})
    pages = measured["counter.engine.pages_written_ssd"]
    assert pages > 100
    # Of each page the head and the image in the journal, a flush, and the page at its home.
    assert measured["counter.block_writes"] == 3 * pages
    assert measured["counter.block_flushes"] == pages
    if not memory_mode:
        assert measured["counter.pmem_write_lines"] + measured["counter.pmem_read_lines"] == 0


def test_checkpoints_wear_the_pmem_that_their_image_is_on() -> None:
    # The image has a place on PMem for each page in DRAM, whatever is there for pages beside it.
    given: dict[str, Any] = {"engine": "main-memory", "workload": "ycsb-rw", "update_percent": 100, "scale": 1}
    given |= {"data_size": "4 MiB", "dram_capacity": "8 MiB", "ssd_capacity": 0, "log_size": "2 MiB"}
    given |= {"log_device": "ssd", "operations": 4_000, "warmup": 8_000}
    for beside in (0, 2**23):
        run = pmsim.simulate_point("oltp", OPTANE, given | {"pmem_capacity": beside})
        written = run["counter.pmem_media_write_blocks"] * 256
        assert written > 0
        per_day = written / (run["counter.elapsed_ps"] / 1e12 / 86400)
        assert run["pmem_writes_per_day"] == pytest.approx(per_day / (2**23 + beside))


def test_machines_draw_the_same_random_numbers_wherever_they_have_the_log() -> None:
    machines = {"platform": [OPTANE, "spr-cxl"]}
    optane, expander = points_of(Scenario(kind="oltp", platform=OPTANE, sweep=machines))
    assert optane.parameters != expander.parameters
    assert optane.seed == expander.seed


def test_what_is_decided_is_what_is_simulated() -> None:
    assert point().content == point(log_device="pmem", commits="single").content
    assert point().content != point(log_device="ssd").content


@pytest.mark.parametrize(
    ("kind", "given", "key"),
    [
        ("oltp", {"log_device": "pmem"}, "log_device"),
        ("system", {"service": "engine", "engine": "three-tier", "log_device": "pmem"}, "log_device"),
        ("restart", {}, "pmem_capacity"),
        ("system", {"study": "restart", "service": "engine"}, "pmem_capacity"),
        ("system", {"study": "restart", "service": "log"}, "service"),
    ],
)
def test_nothing_durable_is_asked_of_a_volatile_expander(kind: str, given: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=f"parameters.{key}: pmem of platform 'spr-cxl' is volatile"):
        point("spr-cxl", kind, **given)
    with pytest.raises(ConfigError, match=f"{key}: pmem of platform 'spr-cxl' is volatile"):
        pmsim.simulate_point(kind, "spr-cxl", given)


@pytest.mark.parametrize(
    ("platform", "given", "lost"),
    [
        *(
            ("spr-cxl", {"engine": engine}, f"{engine}, its pages and logs on spr-cxl")
            for engine in ("nvm-direct", "nvm-undo")
        ),
        (
            "spr-cxl",
            {"engine": "fptree", "workload": "lookup8"},
            "fptree, its pages and logs on spr-cxl",
        ),
        ("spr-cxl", {"engine": "basic-nvm-bm"}, "basic-nvm-bm, its pages on spr-cxl"),
        ("spr-cxl", {"engine": "three-tier"}, "three-tier, its pages on spr-cxl"),
        ("spr-cxl", {"engine": "three-tier", "pmem_capacity": 0}, ""),
        ("spr-cxl", {"engine": "three-tier", "log_device": "none"}, ""),
        ("spr-cxl", {"engine": "ssd-bm"}, ""),
        ("spr-cxl", {"engine": "main-memory"}, ""),
        ("spr-cxl", {"engine": "main-memory", "ssd_capacity": 0}, "main-memory, its checkpoints on spr-cxl"),
        (BATTERY, {"engine": "nvm-direct"}, ""),
        (OPTANE, {"engine": "nvm-direct"}, ""),
    ],
)
def test_what_an_engine_would_restart_from_is_lost_on_a_volatile_expander(
    platform: object, given: dict[str, Any], lost: str
) -> None:
    asked = point(platform, **given)
    assert find_kind("oltp").lost_without_power(asked.platform, asked.parameters, {}) == lost


def test_an_engine_of_a_server_and_its_log_too() -> None:
    asked = point("spr-cxl", "system", service="engine", engine="nvm-undo")
    told = find_kind("system").lost_without_power(asked.platform, asked.parameters, {})
    assert told == "nvm-undo, its pages and logs on spr-cxl"
    log = {"service": "log", "study": "load", "rate": 100_000, "requests": 100, "workers": 1}
    (failure,) = pmsim.run(Scenario(kind="system", platform="spr-cxl", parameters=log), jobs=1).not_durable
    assert failure.message == "kind system, on spr-cxl"


@pytest.mark.parametrize(
    ("kind", "given", "lost"),
    [
        ("log", {}, 1),
        ("log", {"memory": "dram"}, 0),
        ("page-flush", {"pages": 64}, 1),
        ("in-place", {"operation": "write", "region_size": "1 MiB"}, 1),
        ("in-place", {"operation": "read", "region_size": "1 MiB"}, 0),
        ("latency", {}, 0),
    ],
)
def test_what_blocks_flush_to_a_volatile_expander_is_lost(kind: str, given: dict[str, Any], lost: int) -> None:
    for platform, expected in (("spr-cxl", lost), (BATTERY, 0)):
        result = pmsim.run(Scenario(kind=kind, platform=platform, parameters=given), jobs=1)
        assert len(result.not_durable) == expected


def test_who_runs_an_engine_without_persistence_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = tmp_path / "volatile.toml"
    scenario.write_text(
        'kind = "oltp"\nplatform = "spr-cxl"\n[parameters]\ndata_size = "16 MiB"\n'
        'operations = 100\nwarmup = 1\n[sweep]\nengine = ["ssd-bm", "nvm-direct"]\n'
    )
    assert main(["run", str(scenario), "--jobs", "1", "--out", str(tmp_path / "out")]) == 0
    told = "in 1 of 2 points pmem is volatile, and a power failure takes along what was to survive it"
    assert told in capsys.readouterr().err
    assert told in (tmp_path / "out" / "report.html").read_text()


def test_checkpoints_of_pages_in_dram_do_not_restart_from_a_volatile_expander() -> None:
    given = {"study": "restart", "service": "engine", "engine": "main-memory", "pmem_capacity": 0}
    machine = {"base": "spr-cxl", "block_device": "nvme-p4510"}
    with pytest.raises(
        ConfigError, match=r"^ssd_capacity: pmem of .* is volatile, .* choose what the rows take"
    ):
        pmsim.simulate_point("system", machine, given)
