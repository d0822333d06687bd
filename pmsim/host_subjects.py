"""The microbenchmarks that this machine and the simulator have in common."""

from dataclasses import dataclass, replace

from pmsim.host_machine import HostMachine
from pmsim.host_timing import Effort, Subject, chase

#: Lines that are persisted one at a time stay in L2.
_PERSIST_REGION = 256 * 2**10
#: Idle time before each single persist, so that none waits for the one before.
_GAP_NS = 500
#: Beyond the pairs of lines that processors fetch together.
_SPACING = 256
#: Instructions between random reads, such that few fit into a window, and such that more do.
FAR_APART, APART = 96, 32
#: Instructions of a random read on this machine (17 as GCC 12 compiles the loop for x86-64), beyond the 13 of a
#: simulated one.
_FURTHER = 4


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
        one += [self._random_read(apart) for apart in (APART, FAR_APART)]
        for threads in dict.fromkeys((1, cores)):
            one += [
                self._random_read(0, threads),
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
        region = self.effort.region // 2
        return Subject(
            name="idle read",
            block="latency",
            benchmark="chase",
            host=chase(region, _SPACING, cold=True, memory=self.memory),
            kind="latency",
            simulated={
                "memory": self.memory,
                "operation": "load",
                "pattern": "random",
                "region_size": region,
            },
            metric="latency_ns",
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

    def _random_read(self, apart: int, threads: int = 1) -> Subject:
        what = f"read {apart} instructions apart" if apart else "read"
        read = self._bandwidth(what, "load", "random", threads)
        return replace(
            read,
            host={**read.host, "instructions": apart},
            simulated={**read.simulated, "instructions": apart + _FURTHER},
        )

    def _bandwidth(self, what: str, operation: str, pattern: str, threads: int, fence: int = 0) -> Subject:
        host = {
            "memory": self.memory,
            "operation": operation,
            "pattern": pattern,
            "threads": threads,
            "access_size": 64,
            "fence_every": fence,
            "region_size": self.effort.region,
            "instructions": 0,
        }
        # Here as there each thread has a part of the region. The simulated machine knows no other flush for
        # bandwidth; whether clwb keeps the line is a parameter.
        named = "store+clwb" if operation.startswith("store+") else operation
        simulated = {**host, "operation": named, "shared_region": False}
        return Subject(
            name=f"{what}, {operation} {pattern}, {threads} thread{'s' if threads > 1 else ''}",
            block="bandwidth",
            benchmark="bandwidth",
            host=host,
            kind="bandwidth",
            simulated=simulated,
            metric="bandwidth_gb_s",
        )


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
