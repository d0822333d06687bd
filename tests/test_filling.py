"""Whether tiers of a buffer manager were still filling while it was measured: `steady` of kind oltp."""

import pytest

import pmsim
from pmsim.kinds.filling import is_filling

FULL = {"engine.pages_loaded_ssd": 1000.0, "engine.evictions_dram": 1000.0}


@pytest.mark.parametrize(
    ("counted", "filling"),
    [
        ({}, False),
        (FULL, False),
        (FULL | {"engine.evictions_dram": 850.0}, True),
        (FULL | {"engine.evictions_dram": 920.0}, False),  # chance
        (FULL | {"engine.evictions_dram": 1500.0}, False),  # pages that have been made
        (FULL | {"engine.admissions": 200.0}, True),
        (FULL | {"engine.admissions": 200.0, "engine.evictions_pmem": 200.0}, False),
        (FULL | {"engine.admissions": 200.0, "engine.pages_allocated": 190.0}, False),  # the data grow
        (
            FULL | {"engine.admissions": 200.0, "engine.pages_allocated": 190.0, "engine.pages_released": 90.0},
            True,
        ),
        (FULL | {"engine.admissions": 15.0}, False),  # hardly any
        (FULL | {"engine.pages_ssd_to_pmem": 200.0}, True),
    ],
)
def test_a_tier_fills_where_it_takes_more_than_it_gives_up(counted: dict[str, float], filling: bool) -> None:
    assert is_filling(counted, 2_000) == filling


def test_a_point_whose_dram_still_takes_more_than_it_gives_up_is_not_steady() -> None:
    """Windows of a short warm-up have too few misses to tell that mini pages are taking the place of pages."""
    platform = {"base": "tum-6212u", "block_device": "nvme-p4510"}
    given = {"engine": "three-tier", "workload": "ycsb-c", "data_size": "16 GiB", "scale": "1/64"}
    given |= {"dram_capacity": "1 GiB", "pmem_capacity": "12 GiB", "operations": 2000}
    short, usual = (pmsim.simulate_point("oltp", platform, given | {"warmup": n}) for n in (4000, "auto"))
    assert short["warmup_transactions"] < 4000  # it has ended by itself
    taken = short["counter.engine.pages_loaded_pmem"] + short["counter.engine.pages_loaded_ssd"]
    assert taken > 2 * short["counter.engine.evictions_dram"]
    assert short["steady"] == 0
    assert usual["steady"] == 1


@pytest.mark.parametrize(("warmup", "steady"), [(2_000, 0), (100_000, 1)])
def test_a_server_whose_engine_was_loaded_a_moment_ago_is_not_steady(warmup: int, steady: int) -> None:
    """Its 99th percentile is the same in both halves, while mini pages take the place of pages in DRAM."""
    platform = {"base": "tum-6212u", "block_device": "nvme-p4510"}
    given = {"service": "engine", "engine": "three-tier", "workload": "ycsb-b", "rows": 50_000, "workers": 2}
    given |= {"dram_capacity": "16 MiB", "pmem_capacity": "96 MiB", "ssd_capacity": "1 GiB"}
    point = pmsim.simulate_point(
        "system", platform, given | {"rate": 400_000, "requests": 8_000, "warmup": warmup}
    )
    assert point["keeps_up"] == 1
    assert point["steady"] == steady
