"""The microbenchmarks that this machine and the simulator have in common."""

from dataclasses import dataclass
from typing import Any

from pmsim.host_machine import HostMachine
from pmsim.host_timing import COLD_REGION, Effort, Subject, chase

#: Lines that are persisted one at a time stay in L2.
_PERSIST_REGION = 256 * 2**10
#: Idle time before each single persist, so that none waits for the one before.
_GAP_NS = 500
#: Beyond the pairs of lines that processors fetch together.
_SPACING = 256
#: Instructions between random reads, beside those of the loop.
_APART = (32, 96)
#: Instructions of an access on this machine, as counted by single-stepping the loop (x86-64, GCC 12, -O3).
INSTRUCTIONS = {"load": 21, "store": 60, "ntstore": 60, "store+clwb": 80}
#: Instructions of a simulated access: it, and `kChunkInstructions` in `native/src/workloads/bandwidth.cpp`.
_SIMULATED = {"random": 13, "sequential": 1}


@dataclass(frozen=True)
class DeviceSubjects:
    """The subjects of one memory, by name."""

    machine: HostMachine
    effort: Effort
    memory: str = "dram"

    def all(self) -> dict[str, Subject]:
        """Return every subject, in the order in which a report lists them."""
        cores = self.machine.cores
        flush = f"store+{self.machine.flush()}"
        one = [
            self._idle_read(),
            self._persist("persist ntstore", "ntstore", "sequential"),
            self._persist("persist flush", flush, "sequential"),
            self._persist("persist flush, random", flush, "random"),
            *([self._same_line()] if self.machine.has("clflushopt") else []),
        ]
        one += [
            self._bandwidth(f"read {apart} instructions apart", "load", "random", 1, apart=apart)
            for apart in _APART
        ]
        for threads in dict.fromkeys((1, cores)):
            one += [
                self._bandwidth("read", "load", "random", threads),
                self._bandwidth("read", "load", "sequential", threads),
                self._bandwidth("write", "ntstore", "sequential", threads),
                self._bandwidth("write", "ntstore", "random", threads),
                self._bandwidth("write", flush, "sequential", threads),
                self._bandwidth("write", flush, "random", threads),
                self._bandwidth("write", "store", "sequential", threads),
                self._bandwidth("write", "store", "random", threads),
                self._bandwidth("persists", "ntstore", "sequential", threads, fence=64),
                self._bandwidth("persists", flush, "sequential", threads, fence=64),
                self._bandwidth("persists", flush, "random", threads, fence=64),
            ]
        if self.memory == "dram":
            one += [contention(1)]
            one += [contention(2, work=200)] if cores > 1 else []
        return {subject.name: subject for subject in one}

    def _idle_read(self) -> Subject:
        return Subject(
            name="idle read",
            block="latency",
            benchmark="chase",
            host=chase(COLD_REGION, _SPACING, cold=True, memory=self.memory),
            kind="latency",
            simulated={
                "memory": self.memory,
                "operation": "load",
                "pattern": "random",
                "region_size": COLD_REGION,
            },
            metric="latency_ns",
            cold=True,
        )

    def _persist(self, name: str, operation: str, pattern: str) -> Subject:
        common = {"memory": self.memory, "pattern": pattern, "region_size": _PERSIST_REGION}
        return Subject(
            name=name,
            block="latency",
            benchmark="latency",
            host={**common, "operation": operation, "gap_ns": _GAP_NS},
            kind="latency",
            simulated={**common, "operation": operation},
            metric="latency_ns",
        )

    def _same_line(self) -> Subject:
        return self._persist("persist same line, clflushopt", "store+clflushopt", "same-line")

    def _bandwidth(
        self, what: str, operation: str, pattern: str, threads: int, *, fence: int = 0, apart: int = 0
    ) -> Subject:
        host = {
            **random_reads(self.effort.region, apart, self.memory),
            "operation": operation,
            "pattern": pattern,
            "threads": threads,
            "fence_every": fence,
        }
        # Here as there each thread has a part of the region. The simulated machine knows no other flush for
        # bandwidth; whether clwb keeps the line is a parameter.
        named = "store+clwb" if operation.startswith("store+") else operation
        further = INSTRUCTIONS[named] - _SIMULATED[pattern]
        simulated = {
            **host,
            "operation": named,
            "shared_region": False,
            "instructions": apart + further,
        }
        return Subject(
            name=f"{what}, {operation} {pattern}, {threads} thread{'s' if threads > 1 else ''}",
            block="bandwidth",
            benchmark="bandwidth",
            host=host,
            kind="bandwidth",
            simulated=simulated,
            metric="bandwidth_gb_s",
            cold=True,
        )


def random_reads(region: int, apart: int, memory: str = "dram") -> dict[str, Any]:
    """Return the parameters of lines that one thread reads without order, so many instructions apart."""
    return {
        "memory": memory,
        "operation": "load",
        "pattern": "random",
        "threads": 1,
        "access_size": 64,
        "fence_every": 0,
        "region_size": region,
        "instructions": apart,
    }


def contention(
    threads: int, *, work: int = 0, operation: str = "counter", read_percent: int = 0, readers: str = "shared"
) -> Subject:
    """Return one counter, or one line of data under a latch, that threads have in common, in DRAM."""
    parameters: dict[str, int | str] = {
        "operation": operation,
        "read_percent": read_percent,
        "readers": readers,
        "objects": 1,
        "lines": 1,
        "work": work,
        "threads": threads,
    }
    what = operation if operation == "counter" else f"latch, {read_percent} % {readers} readers"
    return Subject(
        name=f"{what}, work {work}" + (f", {threads} threads" if threads > 1 else ""),
        block="contention",
        benchmark="contention",
        host=parameters,
        kind="contention",
        simulated=parameters,
        metric="ops_per_s",
    )
