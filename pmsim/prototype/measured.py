"""Prototypes in C++ on this machine, beside the same operations in simulation."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

from pmsim import _native
from pmsim.arguments import whole
from pmsim.errors import ConfigError, SimulationError
from pmsim.host_timing import Effort, Subject, Timing, timing_of
from pmsim.messages import shown
from pmsim.platforms import Platform
from pmsim.prototype.cpp import CppPrototype
from pmsim.prototype.memory import Memory, Points
from pmsim.prototype.record import record
from pmsim.prototype.subject import told
from pmsim.trace.replay import replay

#: Of each region, which is aligned to 2 MiB.
_SLACK = 2**21
#: Of each medium, as a power of two: bits of an address that say where in it (native/.../micro_op.hpp).
_WINDOW = 44
#: Of persistent memory.
_PMEM = 2


@dataclass(frozen=True, kw_only=True)
class ProgramSubject(Subject):
    """A program that runs random operations: the ones that `record` draws from the seed 0.

    Attributes
    ----------
    program : type
        The prototype.
    memory : {"dram", "pmem"}
        What stands for its persistent memory, here and there.
    alone : bool
        Whether each operation finds the machine idle, and is timed on its own.
    """

    program: type[CppPrototype]
    memory: Literal["dram", "pmem"]
    alone: bool

    @classmethod
    def of(cls, program: type[CppPrototype], memory: str) -> "list[ProgramSubject]":
        """Return what is measured of a prototype: its throughput, and the median latency of an operation.

        Raises
        ------
        ConfigError : numbers of operations that are none.
        """
        program.renew()
        name = program.__name__
        counts = {
            "operations": whole(f"{name}.operations", program.operations, 1),
            "warmup": whole(f"{name}.warmup", program.warmup, 0),
        }
        medium: Literal["dram", "pmem"] = "pmem" if memory == "pmem" else "dram"
        return [
            cls(
                setup,
                name,
                "program",
                counts,
                "trace",
                metric=metric,
                program=program,
                memory=medium,
                alone=alone,
            )
            for setup, metric, alone in (("back to back", "ops_per_s", False), ("alone", "latency_ns", True))
        ]

    def time(self, likeness: Platform, effort: Effort, on: Path | None) -> Timing:
        """Run it on this machine, and see whether it has done what it should.

        Raises
        ------
        ConfigError : it fails here, or another object does not find what it has written.
        """
        program = self.program()
        random = Random("0/0")
        drawn = [program.draw(random) for _ in range(self.host["warmup"] + self.host["operations"])]
        name = self.program.__name__
        room = _room(program)
        _check_room(name, sum(bytes for medium, bytes in room.items() if on is None or medium == "dram"))
        try:
            run = self.program.module().HostRun(
                path="" if on is None else str(on),
                bytes=max(room.values(), default=_SLACK),
                operations=drawn,
                warmup=self.host["warmup"],
                alone=self.alone,
            )
            measured = run.measure(repetitions=effort.repetitions, seconds=effort.seconds)
            found = run.recover()
        except TypeError:
            raise ConfigError(f"{name}.draw() returned {shown(drawn[0])}, which run() does not take") from None
        except SimulationError as error:  # HostMemory takes wrong arguments for bugs of the blocks of the core
            said = str(error).removeprefix("pmsim bug: ")
            raise ConfigError(f"{name}: on this machine it raises ConfigError: {said}") from None
        except Exception as error:
            raise ConfigError(f"{name}: on this machine it raises {told(error)}") from None
        kept = range(run.acknowledged, run.done + 1)
        if all(found != program.expected(drawn[:count]) for count in kept):
            raise ConfigError(
                f"{name}: on this machine recover() returned {shown(found)} after {run.done} operations;"
                f" promised is {shown(program.expected(drawn[: run.done]))}"
            )
        ns, rates, shares = zip(*measured, strict=True)
        return timing_of(ns, rates, shares, size=0, is_dax=run.is_dax)

    def predict(self, platform: Platform, seed: int = 0) -> float:
        """Simulate it on a platform."""
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / f"{self.block}.trace"
            record(self.program, trace, seed=seed, pmem=self.memory, alone=self.alone, **self.host)
            total = replay(trace, platform).total
            return total.latency.p50_ps / 1000 if self.alone else total.operations_per_s


def _room(program: CppPrototype) -> dict[str, int]:
    """Return how much memory its regions take on this machine, by medium [B]."""
    memory = Memory(_native.SimMemory(persistence="none"), Points())
    program.create(memory)
    used: dict[str, int] = {}
    for lines in memory.lines():
        medium = "pmem" if lines.start >> _WINDOW == _PMEM else "dram"
        used[medium] = used.get(medium, 0) + len(lines) * 64 + _SLACK
    return used


def _check_room(name: str, needed: int) -> None:
    room = _native.host_room()
    if room is not None and needed > room[1]:  # all of it is written to before each repetition
        raise ConfigError(
            f"{name}: its regions take {needed / 2**30:,.1f} GiB, and this machine has"
            f" {room[1] / 2**30:,.1f} GiB of memory left; make them smaller"
        )
