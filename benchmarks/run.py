"""Speed of pmsim itself, in CPU time of this process: `make bench`.

Each figure is the median of several runs. A rate is that of timed micro-operations: what a point measures more
when it is measured longer, over the CPU time that it takes more. Beside it stands the rate of what a point
measures over all of its CPU time, with set-up and warm-up, of which most is not timed.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time

import pmsim
from pmsim import _native, crash
from pmsim.kinds import find_kind

PLATFORM = "ucsd-8260"
SEED = 7
BASE: dict[str, int | str] = {
    "memory": "pmem",
    "operation": "load",
    "pattern": "random",
    "access_size": 256,
    "stride": 0,
    "alignment": 0,
    "threads": 1,
    "shared_region": 1,
    "region_size": 8 << 30,
    "fence_every": 0,
    "flush_every": 64,
    "address_list": 0,
    "instructions": 0,
}
POINTS: dict[str, dict[str, int | str]] = {
    "1 thread, loads that hit L1": {"memory": "dram", "region_size": 16 << 10, "access_size": 64},
    "1 thread, random 256 B loads, PMem": {},
    "1 thread, random 256 B ntstore, PMem": {"operation": "ntstore"},
    "24 threads, random 256 B loads, PMem": {"threads": 24},
    "24 threads, random 256 B ntstore, PMem": {"threads": 24, "operation": "ntstore"},
}
CRASH_STATES = 200_000
CRASH_BLOCKS = [block["name"] for block in _native.crash_blocks()]
#: Whole engines check their tables after every state: a tenth of the states takes long enough.
SLOW_TO_CRASH = ("engine-", "pages-")
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
#: Engine and data size at scale 1/16, with 2 GiB of DRAM and 10 GiB of PMem (HyMem, Fig. 8).
OLTP_PLATFORM = "sep-e5-4620v2"
OLTP_POINTS: dict[str, dict[str, object]] = {
    "main-memory": {"engine": "main-memory", "data_size": "1 GiB"},
    "nvm-direct, PMem area": {"engine": "nvm-direct", "data_size": "10 GiB"},
    "three-tier, DRAM area": {"engine": "three-tier", "data_size": "1 GiB"},
    "three-tier, PMem area": {"engine": "three-tier", "data_size": "10 GiB"},
}
OLTP_OPERATIONS = 200_000
OLTP_WARMUP = 200_000
LONGER = 4  #: a longer point measures so many times as much
LANE_LATENCIES_NS = (165, 250, 350, 500, 700, 900, 1300, 1800)

Values = dict[str, dict[str, int]]


def run(lanes: list[Values], parameters: dict[str, int | str]) -> tuple[float, int]:
    """CPU seconds of one call, and the micro-operations that it measures."""
    begin = time.process_time()
    row = _native.simulate("bandwidth", lanes, BASE | parameters, SEED)[0]
    seconds = time.process_time() - begin
    return seconds, row["micro_ops"]


def rates(platform: Values, parameters: dict[str, int | str], runs: int) -> tuple[float, float]:
    """Millions of micro-operations per second of CPU time: timed ones, and measured ones of a whole point."""
    samples = []
    for _ in range(runs):
        seconds, measured = run([platform], parameters)
        longer_seconds, longer = run([platform], parameters | {"length": LONGER})
        timed = (longer - measured) / (longer_seconds - seconds)
        samples.append((timed / 1e6, measured / seconds / 1e6))
    return statistics.median(s for s, _ in samples), statistics.median(m for _, m in samples)


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


def oltp_rates(given: dict[str, object], runs: int) -> tuple[float, float]:
    """Transactions of YCSB-RO per second of CPU time, simulated and native; without loading and warm-up."""
    kind = find_kind("oltp")
    point = kind.prepared(pmsim.load_platform(OLTP_PLATFORM), given)
    machine, common = point.machine.native(), point.parameters.native()
    run = {"warmup": OLTP_WARMUP, "batches": 1, "wear": 0, "check": 0, "breakdown": 0, "ssd_in_file": 0}

    def simulated(operations: int) -> float:
        begin = time.process_time()
        _native.simulate("oltp", [machine], common | run | {"operations": operations}, SEED)
        return time.process_time() - begin

    samples = []
    for _ in range(runs):
        # The timed warm-up is a tenth of the measured part, too.
        seconds = simulated(2 * OLTP_OPERATIONS) - simulated(OLTP_OPERATIONS)
        samples.append(1.1 * OLTP_OPERATIONS / seconds)
    host = common | {"warmup": OLTP_WARMUP, "seed": SEED}
    native = _native.host_measure("oltp", host, large_pages=False, repetitions=runs, seconds=0.1)
    return statistics.median(samples), statistics.median(native["operations_per_s"])


def crash_rate(block: str, runs: int) -> tuple[float, float]:
    """Crash states per second of CPU time, and recoveries (second crashes and repetitions among them)."""
    states = CRASH_STATES // (10 if block.startswith(SLOW_TO_CRASH) else 1)
    samples = []
    for _ in range(runs):
        begin = time.process_time()
        check = crash.check_block(block, states=states, mutate=False, jobs=1).check
        seconds = time.process_time() - begin
        samples.append((check.states / seconds, check.recoveries / seconds))
    return statistics.median(s for s, _ in samples), statistics.median(r for _, r in samples)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9, help="runs of which the median counts (default 9)")
    options = parser.parse_args()
    platform = pmsim.load_platform(PLATFORM).native()
    print("million micro-operations per second: timed, and measured ones of a whole point")
    for name, parameters in POINTS.items():
        timed, measured = rates(platform, parameters, options.runs)
        print(f"{name:42s} {timed:8.1f} {measured:8.1f}", flush=True)
    print("\nmillion log appends per second")
    for name, parameters in LOG_POINTS.items():
        print(f"{name:42s} {append_rate(platform, parameters, options.runs):8.2f}", flush=True)
    print("\nthousand YCSB-RO transactions per second: simulated, native, and their ratio")
    for name, given in OLTP_POINTS.items():
        simulated, native = oltp_rates(given, min(options.runs, 3))
        ratio = native / simulated
        print(f"{name:42s} {simulated / 1e3:8.0f} {native / 1e3:8.0f} {ratio:6.1f}", flush=True)
    print("\ncost of 8 latency lanes in one pass, one lane = 1")
    for name in list(POINTS)[1:]:
        print(f"{name:42s} {lane_cost(platform, POINTS[name], options.runs):8.2f}", flush=True)
    print("\nthousand crash states per second, and recoveries that ran for them")
    for block in CRASH_BLOCKS:
        states, recoveries = crash_rate(block, max(1, options.runs // 3))
        print(f"{block:42s} {states / 1e3:8.0f} {recoveries / 1e3:8.0f}", flush=True)


if __name__ == "__main__":
    main()
