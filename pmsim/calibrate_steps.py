"""What is searched: few parameters at a time, in the order of docs/calibration.md."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pmsim.calibrate_draft import Draft, picoseconds
from pmsim.fitting import Candidate, search
from pmsim.host_machine import HostMachine
from pmsim.host_timing import Subject, Timing
from pmsim.kinds.types import LINE_BYTES
from pmsim.platforms import Platform, find_field

#: What a machine need not show at all.
_OPTIONAL = (
    "core.stream_delay",
    "core.flush_delay",
    "core.store_miss_interval",
    "core.flush_interval",
    "dram.reread_delay",
)


@dataclass(frozen=True)
class Step:
    """Parameters that are searched together, and the subjects that identify them."""

    title: str
    parameters: tuple[str, ...]
    subjects: tuple[str, ...]
    #: Values that the search starts from [base units]; the others start from the base platform.
    start: Mapping[str, int]
    #: Why those of them that are not searched are what they are.
    assumed: str = ""


def dram_steps(
    subjects: Mapping[str, Subject], timings: Mapping[str, Timing], machine: HostMachine
) -> list[Step]:
    flush = f"store+{machine.flush()}"
    flushed, streamed = (picoseconds(timings[f"persist {how}"].ns) for how in ("flush", "ntstore"))
    in_order = ("write, ntstore sequential, 1 thread", "write, store sequential, 1 thread")
    line = picoseconds(LINE_BYTES / max(subjects[name].value(timings[name]) for name in in_order))
    steps = [
        Step("idle read", ("core.shared_read_latency",), ("idle read",), {}),
        Step("parallel reads", ("core.line_fill_buffers",), ("read, load random, 1 thread",), {}),
        Step(
            "sequential reads",
            ("prefetcher.crosses_pages", "prefetcher.distance"),
            ("read, load sequential, 1 thread",),
            # A queue that is full drops lines, each a miss: what is under way depends on it by leaps.
            {"prefetcher.distance": 48, "prefetcher.queue": 256},
            "assumed: more than the distance, so that no line is dropped",
        ),
        # A streamed line takes its interval and holds a buffer for the longer of hold and round trip, which is
        # set short; a plain store to a line that the prefetcher has brought takes the interval alone. It is
        # searched from what is measured: anything shorter than the interval of the link changes nothing.
        Step(
            "stores in order without fences",
            ("core.line_interval", "core.stream_hold"),
            in_order,
            {
                "core.line_interval": line,
                "core.shared_write_latency": 20_000,
                "core.stream_delay": 0,
                "core.stream_hold": 20_000,
            },
            "assumed: a posted write leaves its buffer early; core.fence_latency holds the rest of a persist, "
            "until it is acknowledged",
        ),
        Step(
            "plain stores that miss",
            ("core.store_miss_interval",),
            ("write, store random, 1 thread",),
            {},
        ),
        Step(
            "flushing without fences",
            ("core.flush_interval",),
            (f"write, {flush} sequential, 1 thread",),
            {"core.flush_interval": 2000},
        ),
        Step(
            "single persists",
            ("core.fence_latency", "core.stream_delay", "core.flush_delay"),
            ("persist flush", "persist ntstore"),
            {
                "core.fence_latency": max(1000, min(flushed, streamed) // 2),
                "core.stream_delay": max(5_000, streamed - flushed),
                "core.flush_delay": max(5_000, flushed - streamed),
            },
        ),
    ]
    steps.append(Step("locked additions", ("core.atomic_latency",), ("counter, work 0",), {}))
    if (common := "counter, work 200, 2 threads") in subjects:
        steps.append(Step("a line from core to core", ("llc.transfer_latency",), (common,), {}))
    if "persist same line, clflushopt" in subjects:
        steps.append(
            Step(
                "rereading a flushed line",
                ("dram.reread_delay",),
                ("persist same line, clflushopt",),
                {"dram.reread_delay": 150_000},
            )
        )
    return steps


def tier_steps(machine: HostMachine) -> list[Step]:
    """Return the steps that fit the pmem tier to a file: the medium; the rest of the way is DRAM's."""
    threads = f"{machine.cores} thread{'s' if machine.cores > 1 else ''}"
    return [
        Step("idle read of the file", ("pmem.media_read_latency",), ("idle read",), {}),
        Step("reads of the file", ("pmem.media_read_service",), (f"read, load sequential, {threads}",), {}),
        Step(
            "writes of the file",
            ("pmem.media_write_service",),
            (f"write, ntstore sequential, {threads}",),
            {},
        ),
    ]


def fit_step(
    draft: Draft,
    step: Step,
    subjects: Mapping[str, Subject],
    timings: Mapping[str, Timing],
    rounds: int,
) -> None:
    start = draft.platform
    for key, value in step.start.items():
        section, _, name = key.partition(".")
        start = start.with_values({section: {name: value}}, source="start of a search")
    targets = [(subjects[name], subjects[name].value(timings[name])) for name in step.subjects]

    def cost_of(platform: Platform) -> float:
        # Not clipped, as there are no outliers to forgive: the start may be off by any factor.
        costs = [abs(math.log(max(subject.predict(platform), 1e-9) / value)) for subject, value in targets]
        return sum(costs) / len(costs)

    parameters = [_candidate(key) for key in step.parameters]
    found = search(start, parameters, cost_of, rounds)
    best, cost = found.platform, found.cost
    for parameter in parameters:
        # No factor leads to zero: a mechanism that this machine does not show is switched off.
        if parameter.key in _OPTIONAL:
            without = best.with_values({parameter.section: {parameter.name: 0}}, source="end of a search")
            if (now := cost_of(without)) <= cost:
                best, cost = without, now
    names = "; ".join(step.subjects)
    for key in step.start:
        if key not in step.parameters:
            section, _, name = key.partition(".")
            draft.set(key, best.value(section, name), step.assumed, "assumed")
    draft.take(best, step.parameters, f"fitted on {draft.date} to this machine: {names}")


def _candidate(key: str) -> Candidate:
    section, _, name = key.partition(".")
    field = find_field(section, name)
    return Candidate(section, name, field.quantity, field.minimum, field.maximum)
