"""What all cores together get through one way to the controllers (docs/model/controllers-and-dram.md)."""

import pytest

import pmsim

MIB = 2**20
#: A line of 64 bytes takes 2 ns to the cores and 4 ns from them.
READ_GB_S, WRITE_GB_S = 32.0, 16.0


def bandwidth(operation: str, memory: str = "dram", **link: str) -> float:
    platform = {"base": "tum-6212u", "controller": link}
    point = {"memory": memory, "operation": operation, "pattern": "sequential", "threads": 8}
    return pmsim.simulate_point("bandwidth", platform, {**point, "region_size": 512 * MIB})["bandwidth_gb_s"]


BOTH = {"link_read_interval": "2 ns", "link_write_interval": "4 ns"}


@pytest.mark.parametrize(("operation", "limit"), [("load", READ_GB_S), ("ntstore", WRITE_GB_S)])
def test_cores_share_a_lane_of_the_link(operation, limit):
    assert bandwidth(operation) > 1.5 * limit
    assert bandwidth(operation, **BOTH) == pytest.approx(limit, rel=0.02)


def test_lines_of_modules_take_the_link_too():
    assert bandwidth("load", "pmem") > 1.5 * WRITE_GB_S
    assert bandwidth("load", "pmem", link_read_interval="4 ns") == pytest.approx(WRITE_GB_S, rel=0.02)


def test_stores_read_and_write_back_on_a_lane_each():
    """Each line that is stored to is read and written back: the slower lane is the limit, not both together."""
    assert bandwidth("store", **BOTH) == pytest.approx(WRITE_GB_S, rel=0.05)
    assert bandwidth("store", link_read_interval="2 ns") == pytest.approx(READ_GB_S, rel=0.05)


def test_a_link_adds_nothing_to_the_latency_of_who_is_alone():
    point = {"memory": "dram", "operation": "load", "pattern": "random", "region_size": 512 * MIB}
    free, linked = (
        pmsim.simulate_point("latency", {"base": "tum-6212u", "controller": link}, point)["latency_ns"]
        for link in ({}, BOTH)
    )
    assert linked == pytest.approx(free, rel=0.01)
