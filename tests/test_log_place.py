"""Where a scenario leaves open where the log is: what the machine makes of it."""

from typing import Any

import pytest

import pmsim
from pmsim import Scenario
from pmsim.errors import ConfigError
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
