"""Study "group-commit" of kind "system": a group that gathers is no queue."""

import math
from typing import Any

import pytest

import pmsim

GIVEN = {"study": "group-commit", "group_size": 1024, "timeout": "2 ms"}


def point(**given: Any) -> dict[str, Any]:
    return pmsim.simulate_point("system", "ucsd-8260", GIVEN | given)


@pytest.mark.parametrize("requests", [20_000, 50_000])
def test_large_groups_keep_up_where_all_are_served(requests: int) -> None:
    found = point(rate=1_000_000, requests=requests)
    assert found["in_system_at_end"] > 0.01 * requests + 1  # what would be a queue anywhere else
    assert found["keeps_up"] == 1
    # Waiting for the group to fill, half of 1.024 ms, is most of the latency.
    assert 0.4e6 < found["latency_ns"] < 0.8e6
    assert not math.isnan(found["latency_ns_low"])


def test_large_groups_do_not_keep_up_where_more_comes_than_is_served() -> None:
    found = point(rate=30_000_000, requests=50_000)
    assert found["throughput_per_s"] < 0.5 * found["offered_per_s"]
    assert found["keeps_up"] == 0


def test_a_group_that_times_out_is_as_large_as_what_comes_meanwhile() -> None:
    """Of 65,536 there are never so many: 10 us gather 300."""
    assert point(rate=30_000_000, group_size=65_536, timeout="10 us", requests=20_000)["keeps_up"] == 0


def test_a_time_out_that_is_shorter_than_an_append_costs_no_capacity() -> None:
    """A flush of the drive takes longer than 10 us, in which 4 entries come."""
    given = GIVEN | {"service": "block-log", "group_size": 64, "timeout": "10 us"}
    machine = {"base": "tum-6212u", "block_device": "nvme-p4510"}
    found = pmsim.simulate_point("system", machine, given | {"rate": 400_000, "requests": 5_000})
    assert found["throughput_per_s"] == pytest.approx(found["offered_per_s"], rel=0.05)
    assert found["entries_per_group"] > 8
    assert found["keeps_up"] == 1
