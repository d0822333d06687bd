"""Latencies of operations that follow each other without a pause fill the time that their threads have."""

from pathlib import Path
from typing import Any

import pytest

import pmsim
from pmsim import Scenario, trace

PLATFORM = "sep-e5-4620v2"
SMALL = {"data_size": "256 MiB", "operations": 2_000, "warmup": 1_000}


@pytest.mark.parametrize(
    "given",
    [
        {"engine": "main-memory", "workload": "ycsb-ro"},
        {"engine": "nvm-direct", "workload": "ycsb-a"},  # fences, which the next transaction runs ahead of
        {"engine": "nvm-direct", "workload": "ycsb-a", "threads": 4},
        {"engine": "ssd-bm", "workload": "ycsb-a", "dram_capacity": "64 MiB"},
    ],
    ids=str,
)
def test_a_thread_has_one_transaction_under_way(given: dict[str, Any]) -> None:
    metrics = pmsim.simulate_point("oltp", PLATFORM, SMALL | given)
    under_way = metrics["transactions_per_s"] * metrics["latency_ns"] * 1e-9
    assert under_way == pytest.approx(given.get("threads", 1), rel=0.02)


def test_a_replayed_thread_has_one_operation_under_way(tmp_path: Path) -> None:
    appends = {"algorithm": "classic", "entry_size": 64}
    trace.record(Scenario(kind="log", platform="tum-6212u", parameters=appends), tmp_path / "a.trace")
    metrics = pmsim.simulate_point("trace", "tum-6212u", {"file": str(tmp_path / "a.trace")})
    assert metrics["operations_per_s"] * metrics["latency_ns"] * 1e-9 == pytest.approx(1, rel=0.02)
