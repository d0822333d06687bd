"""Kind "bandwidth": strides that leave a few chunks for the caches are told, whatever else is not."""

from pathlib import Path
from typing import Any

import pytest

import pmsim
from pmsim.commands.run_printed import print_result

#: Of tum-6212u, all threads (van Renen et al., Building Blocks, sec. 2): no single one on PMem has so much.
DRAM_PEAK_GB_S = 113.8
STRIDED = {"pattern": "strided", "access_size": 256, "region_size": "10 GiB"}


def run(given: dict[str, Any], **sweep: list[Any]) -> pmsim.Result:
    scenario = pmsim.Scenario(kind="bandwidth", platform="tum-6212u", parameters=given, sweep=sweep)
    return pmsim.run(scenario, jobs=1, progress=False)


def test_chunks_that_caches_hold_are_told_by_run_and_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run(STRIDED, stride=["1 GiB", "1 MiB"])
    held, read = result.frame["bandwidth_gb_s"]
    assert held > DRAM_PEAK_GB_S > read
    print_result(result, tmp_path)
    says = "in 1 of 2 points chunks far apart are so few that the caches hold them, and the bandwidth is"
    told = " ".join(capsys.readouterr().err.split())
    remedy = "raise region_size or shorten stride or alignment; the first is point 1 (stride = 1 GiB): "
    assert f"pmsim: {says} theirs; {remedy}" in told
    assert told.endswith("10 chunks of 256 B for each thread")
    assert says in result.html()


def test_means_over_seeds_are_told_as_well() -> None:
    scenario = pmsim.Scenario(
        kind="bandwidth", platform="tum-6212u", parameters=STRIDED | {"stride": "1 GiB"}, seeds=2
    )
    assert len(pmsim.run(scenario, jobs=1, progress=False).cached) == 1


@pytest.mark.parametrize("operation", ["store", "load+store"])
@pytest.mark.parametrize("memory", ["dram", "pmem"])
def test_stores_to_chunks_that_caches_hold_are_told(memory: str, operation: str) -> None:
    given = STRIDED | {"stride": "1 GiB", "memory": memory, "operation": operation, "threads": 2}
    (cached,) = run(given).cached
    assert cached.message == "5 chunks of 256 B for each thread"


@pytest.mark.parametrize(
    ("shared_region", "told"), [(True, "10 chunks of 256 B for all threads"), (False, "5")]
)
def test_aligned_chunks_that_caches_hold_are_told(shared_region: bool, told: str) -> None:
    given = {"pattern": "random", "alignment": "1 GiB", "threads": 2, "shared_region": shared_region}
    (cached,) = run(given).cached
    assert cached.message.startswith(told)


@pytest.mark.parametrize(
    "given",
    [
        STRIDED | {"stride": "1 GiB", "operation": "ntstore"},
        STRIDED | {"stride": "1 GiB", "operation": "store+clwb"},
        STRIDED | {"stride": "64 KiB", "threads": 8},
        STRIDED | {"stride": "64 KiB", "memory": "dram"},
        {"pattern": "sequential", "region_size": "16 KiB"},
        {"pattern": "random", "region_size": "16 KiB"},
        {"pattern": "random", "region_size": "16 KiB", "alignment": 64},
        {"pattern": "random", "alignment": "64 KiB"},
    ],
    ids=str,
)
def test_what_reaches_memory_or_asks_for_caches_is_not_told(given: dict[str, Any]) -> None:
    assert not run(given).cached
