"""Does the Optane machine behave as published: what is faster than what, and where does more harm?"""

import functools

import pytest

import pmsim
from pmsim import _native

PLATFORM = "tum-6212u"
GIB = 1 << 30


@functools.cache
def bandwidth(memory: str, operation: str, access_size: int, threads: int, prefetcher: bool = True) -> float:
    parameters = {
        "memory": memory,
        "operation": operation,
        "pattern": "random",
        "access_size": access_size,
        "threads": threads,
        "prefetcher": prefetcher,
    }
    return pmsim.simulate_point("bandwidth", PLATFORM, parameters, 1)["bandwidth_gb_s"]


def peak(operation: str) -> float:
    return max(bandwidth("pmem", operation, 256, threads) for threads in (2, 4, 6))


def test_writes_to_pmem_are_fastest_streamed_and_slowest_left_to_eviction() -> None:
    assert peak("store") < peak("store+clwb") < peak("ntstore")


def test_writes_decline_past_their_peak_on_pmem_but_not_on_dram() -> None:
    assert bandwidth("pmem", "ntstore", 256, 24) < 0.9 * peak("ntstore")
    assert bandwidth("dram", "ntstore", 256, 24) >= 0.98 * bandwidth("dram", "ntstore", 256, 8)


def quarter(operation: str, threads: int, prefetcher: bool) -> float:
    lines, blocks = (bandwidth("pmem", operation, size, threads, prefetcher) for size in (64, 256))
    return lines / blocks


def test_random_lines_reach_a_quarter_of_the_bandwidth_of_blocks() -> None:
    assert quarter("ntstore", 4, True) == pytest.approx(0.25, rel=0.15)
    assert quarter("load", 24, False) == pytest.approx(0.25, rel=0.15)


def test_random_lines_read_a_quarter_of_blocks_with_the_prefetcher_on() -> None:
    assert quarter("load", 24, True) == pytest.approx(0.25, rel=0.15)


def test_prefetcher_harms_chunks_of_ten_lines_when_all_cores_read() -> None:
    assert bandwidth("pmem", "load", 640, 24, True) < 0.98 * bandwidth("pmem", "load", 640, 24, False)


def test_memory_mode_is_near_dram_for_a_small_region_and_near_pmem_for_a_large_one() -> None:
    def latency(memory: str, mode: str, region_size: int) -> float:
        parameters = {
            "memory": memory,
            "mode": mode,
            "region_size": region_size,
            "operation": "load",
            "pattern": "random",
        }
        return pmsim.simulate_point("latency", PLATFORM, parameters, 1)["latency_ns"]

    dram = latency("dram", "app-direct", 8 * GIB)
    pmem = latency("pmem", "app-direct", 360 * GIB)
    small = latency("pmem", "memory-mode", 8 * GIB)
    large = latency("pmem", "memory-mode", 360 * GIB)
    assert dram < small < 1.2 * dram
    assert small < 0.6 * large
    assert 0.7 * pmem < large < 1.2 * pmem


@pytest.mark.parametrize(("region_size", "level"), [("512 KiB", "l2_hits"), ("8 MiB", "llc_hits")])
@pytest.mark.parametrize(("kind", "rest"), [("latency", {}), ("bandwidth", {"access_size": 64})])
def test_loads_of_a_region_that_fits_into_a_cache_find_it_there(
    kind: str, rest: dict[str, int], region_size: str, level: str
) -> None:
    region = {"memory": "dram", "operation": "load", "pattern": "random", "region_size": region_size}
    found = pmsim.simulate_point(kind, PLATFORM, region | rest, 1)
    assert found[f"counter.{level}"] > 0.85 * found["counter.loads"]
    assert found["counter.memory_reads"] < 0.005 * found["counter.loads"]


def test_same_seed_same_dictionary_and_another_seed_another() -> None:
    platform = pmsim.load_platform(PLATFORM).native()
    parameters = {
        "memory": "pmem",
        "operation": "ntstore",
        "pattern": "random",
        "access_size": 256,
        "stride": 0,
        "alignment": 0,
        "threads": 6,
        "shared_region": 1,
        "region_size": 1 << 24,
        "fence_every": 0,
        "flush_every": 64,
        "address_list": 0,
        "instructions": 0,
    }
    first, again, other = (_native.simulate("bandwidth", [platform], parameters, seed) for seed in (3, 3, 4))
    assert first == again
    assert first != other
