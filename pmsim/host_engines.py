"""Storage engines on this machine: the transactions that kind "oltp" simulates, in its DRAM."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pmsim
from pmsim.host_machine import HostMachine
from pmsim.host_timing import FULL, Effort, Subject, Timing, time_benchmark
from pmsim.kinds import find_kind
from pmsim.kinds.applies import LOGGED
from pmsim.platforms import DURABLE, Platform
from pmsim.profiles import load_block_device

#: With pages on the SSD, which the data of these runs never leave PMem for.
_OVER_SSD = ("three-tier", "spitfire")
_ENGINES = ("main-memory", "nvm-direct", "nvm-undo", "basic-nvm-bm", "redirect-bm", *_OVER_SSD)
_SEED = 1
_SSD = "nvme-p4510"


class EngineSubject(Subject):
    """An engine and a benchmark; `host` are the parameters of kind "oltp", as scenarios give them."""

    def time(self, likeness: Platform, effort: Effort, on: Path | None) -> Timing:
        """Load, warm up and time it on this machine."""
        kind = find_kind(self.kind)
        parameters = kind.prepared(_stand_in(likeness), self.host).parameters.native()
        run = {"warmup": self.host["warmup"], "seed": _SEED}
        return time_benchmark(self.benchmark, parameters | run, effort, on)

    def predict(self, platform: Platform, seed: int = _SEED) -> float:
        """Simulate it on a platform."""
        return float(pmsim.simulate_point(self.kind, _stand_in(platform), self.host, seed)[self.metric])


def engines(machine: HostMachine, effort: Effort, memory: str) -> list[Subject]:
    """Lookups and half updates of rows that PMem holds and DRAM, but for main-memory, a quarter of."""
    return [_subject(engine, workload, effort) for engine in _ENGINES for workload in ("ycsb-c", "ycsb-a")]


def _subject(engine: str, workload: str, effort: Effort) -> EngineSubject:
    data = 256 if effort is FULL else 16
    given: Mapping[str, Any] = {
        "engine": engine,
        "workload": workload,
        "data_size": f"{data} MiB",
        "dram_capacity": f"{4 * data if engine == 'main-memory' else data // 4} MiB",
        "pmem_capacity": f"{2 * data} MiB",
        "ssd_capacity": f"{2 * data if engine in _OVER_SSD else 0} MiB",
        "log_size": f"{data} MiB",
        "scale": "1",
        "warmup": 300_000 if effort is FULL else 3_000,
        "operations": 100_000 if effort is FULL else 3_000,
    }
    logged = {"log_device": "pmem"} if LOGGED.holds(engine) else {}
    return EngineSubject(
        name=f"{engine}, {workload}",
        block="engines",
        benchmark="oltp",
        host={**given, **logged},
        kind="oltp",
        metric="transactions_per_s",
    )


def _stand_in(platform: Platform) -> Platform:
    """Return the machine with what engines are promised here: a pmem window that lasts, and an SSD."""
    parameters = dict(platform.parameters)
    if platform.value("block", "capacity") == 0:
        parameters["block"] = load_block_device(_SSD).parameters
    return replace(platform, parameters=parameters, pmem_persistence=DURABLE)
