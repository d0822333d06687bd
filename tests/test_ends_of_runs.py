"""What threads of a storage engine do at the end of a run: they work until the measured number is complete."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pmsim
from pmsim.time_stack import CAUSES

PLATFORM = {"base": "tum-6212u", "block_device": "nvme-p4510"}
ON_SSD: dict[str, Any] = {"engine": "ssd-bm", "workload": "ycsb-c", "data_size": "2 GiB"}
ON_SSD |= {"dram_capacity": "256 MiB", "pmem_capacity": 0, "ssd_capacity": "16 GiB"}
ON_SSD |= {"warmup": 20_000, "log_size": "64 MiB"}
IN_DRAM: dict[str, Any] = {"engine": "main-memory", "dram_capacity": "1 GiB", "warmup": 1_000, "threads": 8}


def measure(given: dict[str, Any], seed: int = 0, **more: Any) -> dict[str, float]:
    return pmsim.simulate_point("oltp", PLATFORM, given | more, seed)


def charged(point: dict[str, float], threads: int) -> float:
    """Return the part of the time of all threads that has a cause; a thread that has ended has none."""
    causes = sum(point[f"counter.{name}"] for name in CAUSES.values())
    return causes / (threads * point["counter.elapsed_ps"])


@pytest.mark.parametrize(
    "given",
    [
        {"workload": "ycsb-e", "operations": 200, "data_size": "64 MiB"},
        {"workload": "ycsb-scan", "operations": 64, "scan_length": 1_000, "data_size": "64 MiB"},
        {"workload": "tpcc", "operations": 200, "warehouses": 16, "scale": "1/8", "dram_capacity": "8 GiB"},
    ],
    ids=lambda given: str(given["workload"]),
)
def test_threads_work_until_the_last_transaction_has_ended(given: dict[str, Any]) -> None:
    """In DRAM: a wait is charged at once, when it ends, and these are short beside a transaction."""
    point = measure(IN_DRAM | given)
    assert point["simulated_ops"] == given["operations"]
    assert charged(point, 8) == pytest.approx(1, abs=0.01)


def test_few_transactions_of_many_threads_are_as_frequent_as_many() -> None:
    """Eight transactions of each thread wait for a disk: those that ended first waited for the last ones."""
    given = ON_SSD | {"threads": 24}
    short = [1 / measure(given, seed, operations=200)["transactions_per_s"] for seed in range(16)]
    long = measure(given, operations=6_400)["transactions_per_s"]
    # Student's t of 15 degrees of freedom for 99.9 %.
    reach = 4.073 * float(np.std(short, ddof=1)) / math.sqrt(len(short))
    assert np.mean(short) == pytest.approx(1 / long, abs=reach)


def test_what_is_checked_is_the_end_and_moves_nothing() -> None:
    """A check reads all of the database, through the engine: transactions behind it would find another DRAM."""
    given = ON_SSD | {"threads": 8, "operations": 200}
    plain, checked = (measure(given, check=check) for check in (False, True))
    assert plain == checked


@pytest.mark.parametrize("further", [0, 100])
def test_recorded_requests_beyond_those_that_are_measured_follow(tmp_path: Path, further: int) -> None:
    """Where the file ends with them, threads that find none have ended."""
    file = tmp_path / "requests.csv"
    # 100 behind the warm-up are for the caches, 200 are measured.
    lines = [f"scan,{key * 7919 % 10_000},1000" for key in range(1_300 + further)]
    file.write_text("\n".join(("operation,key,rows", *lines)) + "\n")
    given = IN_DRAM | {"workload": "requests", "requests": str(file), "scale": 1, "data_size": "64 MiB"}
    point = measure(given, operations=200)
    assert point["simulated_ops"] == 200
    # Each thread has 25 of them, and is half of one from its end, in the mean, when the last one ends.
    assert charged(point, 8) == pytest.approx(1 if further else 0.98, abs=0.01)
