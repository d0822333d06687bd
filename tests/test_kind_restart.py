"""Kind "restart": the peak is that of the engine, however the picture is cut."""

import itertools

import pytest

import pmsim
from pmsim.kinds.restart import peak_of, windows_of

GIVEN = {"engine": "main-memory", "data_size": "256 MiB", "dram_capacity": "1 GiB", "operations": 4_000}
GIVEN |= {"warmup": 2_000}
MS = 10**9


def test_the_peak_does_not_depend_on_the_windows_of_the_picture() -> None:
    few, many = (
        pmsim.simulate_point("restart", "sep-e5-4620v2", GIVEN | {"windows": windows}) for windows in (3, 500)
    )
    names = ("recovery_ms", "time_to_peak_ms", "peak_transactions_per_s")
    assert [few[name] for name in names] == [many[name] for name in names]
    assert few["recovery_ms"] > 0.5 * few["time_ms"]  # or else few windows would not have hidden it
    serving_s = (few["time_ms"] - few["recovery_ms"]) / 1e3
    assert 1 <= few["peak_transactions_per_s"] / (GIVEN["operations"] / serving_s) < 2
    assert few["recovery_ms"] < few["time_to_peak_ms"] < few["time_ms"]


@pytest.mark.parametrize("recovery", [0, 5 * MS, 5_000 * MS])
def test_the_peak_of_a_ramp_follows_from_its_batches(recovery: int) -> None:
    """Of 1,000 transactions in batches of ten the first half takes 3 ms, the second half 1 ms."""
    gaps = [*[3 * MS // 50] * 50, *[MS // 50] * 50]
    ends = [recovery + end for end in itertools.accumulate(gaps)]
    time_ms, peak = peak_of(recovery, ends, 1_000)
    assert peak == pytest.approx(500e3)
    # A hundredth of 4 ms behind the change.
    assert time_ms == pytest.approx(recovery / MS + 3 + 0.04)


def test_windows_begin_at_the_restart_and_hold_every_transaction() -> None:
    curve = windows_of(0, 3 * MS, [4 * MS, 6 * MS], 100, 6)
    assert [time for time, _ in curve] == pytest.approx([1, 2, 3, 4, 5, 6])
    assert [throughput / 1e3 for _, throughput in curve] == pytest.approx([0, 0, 0, 50, 25, 25])


def test_a_log_on_the_ssd_is_read_in_large_pieces_and_its_time_is_no_latency() -> None:
    machine = {"base": "tum-6212u", "block_device": "nvme-p4510"}
    given = {"engine": "three-tier", "workload": "ycsb-rw", "update_percent": 100, "data_size": "64 MiB"}
    given |= {"end": "crash", "log_device": "ssd", "warmup": 20_000, "operations": 500}
    found = pmsim.simulate_point("restart", machine, given)
    command_ms = pmsim.load_platform(machine).value("block", "read_latency") / MS
    assert found["recovery_ms"] < found["warmup_transactions"] * command_ms / 10  # each of which has an entry
    assert found["latency_max_ns"] < found["recovery_ms"] * 1e6 / 10
