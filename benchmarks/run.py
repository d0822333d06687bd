"""Speed of pmsim itself, in CPU time of this process: `make bench`.

Each figure is the median of several runs. A rate is the measured micro-operations of a point over all of its
CPU time: set-up and the warm-up cost time but do not count, so rates are understated.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time

import pmsim
from pmsim import _native

PLATFORM = "ucsd-8260"
SEED = 7
BASE: dict[str, int | str] = {
    "memory": "pmem",
    "operation": "load",
    "pattern": "random",
    "access_size": 256,
    "stride": 0,
    "threads": 1,
    "shared_region": 1,
    "region_size": 8 << 30,
    "fence_every": 0,
}
POINTS: dict[str, dict[str, int | str]] = {
    "1 thread, loads that hit L1": {"memory": "dram", "region_size": 16 << 10, "access_size": 64},
    "1 thread, random 256 B loads, PMem": {},
    "1 thread, random 256 B ntstore, PMem": {"operation": "ntstore"},
    "24 threads, random 256 B loads, PMem": {"threads": 24},
    "24 threads, random 256 B ntstore, PMem": {"threads": 24, "operation": "ntstore"},
}
CRASH_STATES = 200_000
LOG: dict[str, int | str] = {
    "layout": "padded",
    "group_commit": 1,
    "dancing_fields": 64,
    "threads": 1,
    "memory": "pmem",
    "log_size": 1 << 30,
    "cpu_cycles": 0,
    "timed": 0,
}
LOG_POINTS: dict[str, dict[str, int | str]] = {
    "poplog, entries of 1 line": {"algorithm": "poplog", "entry_size": 48},
    "poplog, entries of 2 lines": {"algorithm": "poplog", "entry_size": 112},
    "rawl, entries of 1 line": {"algorithm": "rawl", "entry_size": 40},
    "classic, entries of 2 lines": {"algorithm": "classic", "entry_size": 48},
}
LANE_LATENCIES_NS = (165, 250, 350, 500, 700, 900, 1300, 1800)

Values = dict[str, dict[str, int]]


def run(lanes: list[Values], parameters: dict[str, int | str]) -> tuple[float, int]:
    """CPU seconds and measured micro-operations of one call."""
    begin = time.process_time()
    rows = _native.simulate("bandwidth", lanes, BASE | parameters, SEED)
    return time.process_time() - begin, rows[0]["micro_ops"]


def rate(platform: Values, parameters: dict[str, int | str], runs: int) -> float:
    """Millions of measured micro-operations per second of CPU time."""
    samples = []
    for _ in range(runs):
        seconds, micro_ops = run([platform], parameters)
        samples.append(micro_ops / seconds / 1e6)
    return statistics.median(samples)


def append_rate(platform: Values, parameters: dict[str, int | str], runs: int) -> float:
    """Millions of measured log appends per second of CPU time."""
    samples = []
    for _ in range(runs):
        begin = time.process_time()
        rows = _native.simulate("log", [platform], LOG | parameters, SEED)
        samples.append(rows[0]["operations"] / (time.process_time() - begin) / 1e6)
    return statistics.median(samples)


def lane_cost(platform: Values, parameters: dict[str, int | str], runs: int) -> float:
    """CPU time of eight latencies in one pass over that of the first of them alone."""
    lanes = []
    for latency in LANE_LATENCIES_NS:
        lane = copy.deepcopy(platform)
        lane["pmem"]["media_read_latency"] = latency * 1000
        lanes.append(lane)
    return statistics.median(run(lanes, parameters)[0] / run(lanes[:1], parameters)[0] for _ in range(runs))


def crash_rate(block: str, runs: int) -> tuple[float, float]:
    """Crash states per second of CPU time, and recoveries (second crashes and repetitions among them)."""
    samples = []
    for _ in range(runs):
        begin = time.process_time()
        row = _native.crash_check(block, states=CRASH_STATES, monitor=_native.CrashMonitor())
        seconds = time.process_time() - begin
        recoveries = row["states"] + row["recovery_crashes"] + row["second_recoveries"]
        samples.append((row["states"] / seconds, recoveries / seconds))
    return statistics.median(s for s, _ in samples), statistics.median(r for _, r in samples)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9, help="runs of which the median counts (default 9)")
    options = parser.parse_args()
    platform = pmsim.load_platform(PLATFORM).native()
    print("million micro-operations per second")
    for name, parameters in POINTS.items():
        print(f"{name:42s} {rate(platform, parameters, options.runs):8.1f}", flush=True)
    print("\nmillion log appends per second")
    for name, parameters in LOG_POINTS.items():
        print(f"{name:42s} {append_rate(platform, parameters, options.runs):8.2f}", flush=True)
    print("\ncost of 8 latency lanes in one pass, one lane = 1")
    for name in list(POINTS)[1:]:
        print(f"{name:42s} {lane_cost(platform, POINTS[name], options.runs):8.2f}", flush=True)
    print("\nthousand crash states per second, and recoveries that ran for them")
    for block in _native.crash_blocks():
        states, recoveries = crash_rate(block["name"], max(1, options.runs // 3))
        print(f"{block['name']:42s} {states / 1e3:8.0f} {recoveries / 1e3:8.0f}", flush=True)


if __name__ == "__main__":
    main()
