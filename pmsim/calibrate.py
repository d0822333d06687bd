"""Fitting a platform profile to this machine, from its own microbenchmarks.

The order is that of docs/calibration.md: what the operating system states; clock, caches and translation, each
read off one benchmark; idle latencies; one thread's parallelism; how persists follow each other. A search never
sees the engines, the blocks or the benchmarks of several threads: they are predictions.
"""

import datetime
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmsim.calibrate_caches import fit_last_level
from pmsim.errors import ConfigError
from pmsim.fields import fields
from pmsim.fitting import Candidate, search
from pmsim.host_machine import HostMachine, this_machine
from pmsim.host_subjects import DeviceSubjects
from pmsim.host_timing import DISTURBED, FULL, QUICK, Effort, Subject, Timing, chase, time_benchmark
from pmsim.platforms import Parameter, Platform, find_field
from pmsim.profiles import load_platform

_KIB = 2**10
_SMALL_PAGE = 4 * _KIB
_LARGE_PAGE = 2**21
_LINE = 64
#: One line of each page, and never the same cache set: what is left is translation.
_PAGE_AND_LINE = _SMALL_PAGE + _LINE
#: Pages that a second-level TLB holds, and far more than the first level does.
_FEW_PAGES = 256
#: Beyond the second-level TLB, while the lines fit into L2.
_MANY_PAGES = 8192
_INSTRUCTIONS = 1000  # of an operation of benchmark "compute"
_ROUNDS = 5
_ROUND_TRIP = (
    "assumed: a posted write leaves its buffer early; core.fence_latency holds the rest of a persist, "
    "until it is acknowledged"
)
#: What a machine need not show at all.
_OPTIONAL = ("core.stream_delay", "core.fence_recovery", "dram.reread_delay")


@dataclass(frozen=True)
class Step:
    """Parameters that are searched together, and the subjects that identify them."""

    title: str
    parameters: tuple[str, ...]
    subjects: tuple[str, ...]
    #: Values that the search starts from [base units]; the others start from the base platform.
    start: Mapping[str, int]


@dataclass(frozen=True)
class Row:
    """A subject measured on this machine, beside the prediction of the fitted profile.

    Attributes
    ----------
    subject : Subject
        What was measured.
    timing : Timing
        How it went.
    predicted : float
        In the metric of the subject.
    fitted : bool
        The search saw it; otherwise it is a prediction.
    """

    subject: Subject
    timing: Timing
    predicted: float
    fitted: bool

    @property
    def measured(self) -> float:
        """In the metric of the subject."""
        return self.subject.value(self.timing)

    @property
    def ratio(self) -> float:
        """Predicted over measured."""
        return self.predicted / self.measured


@dataclass(frozen=True)
class Calibration:
    """A fitted platform, what it was fitted to, and how well."""

    platform: Platform
    machine: HostMachine
    rows: tuple[Row, ...]
    warnings: tuple[str, ...]


def base_of(machine: HostMachine) -> str:
    """Name the shipped profile whose values stand for what is not measured: core widths, channels, queues."""
    golden_cove = any(flag.startswith("amx") for flag in machine.flags) or machine.has("avx_vnni")
    return "spr-cxl" if golden_cove else "tum-6212u"


class _Profile:
    """A platform under construction: every value starts as that of the base, marked as assumed."""

    def __init__(self, base: Platform, machine: HostMachine, name: str, date: str) -> None:
        self.date = date
        parameters = {
            section: {
                parameter: Parameter(value.value, f"as {base.name}, not measured: {value.source}", "assumed")
                for parameter, value in values.items()
            }
            for section, values in base.parameters.items()
        }
        none = "the machine as pmsim calibrates it has no block device"
        parameters["block"] = {
            parameter: Parameter(field.minimum, none, "assumed")
            for parameter, field in fields()["block"].items()
        }
        self.platform = Platform(
            name=name,
            title=f"{machine.cpu}, {machine.cores} cores{', virtual' if machine.virtual else ''}",
            kind="machine",
            latency_definition="idle dependent load through the caches",
            notes="",
            parameters=parameters,
        )

    def set(self, key: str, value: int, source: str, origin: str = "measured") -> None:
        """Set a value in base units; it is moved into the range that the core accepts."""
        section, _, name = key.partition(".")
        field = find_field(section, name)
        bounded = min(max(value, field.minimum), field.maximum)
        values = {section: dict(known) for section, known in self.platform.parameters.items()}
        values[section][name] = Parameter(bounded, source, origin)
        self.platform = Platform(
            name=self.platform.name,
            title=self.platform.title,
            kind=self.platform.kind,
            latency_definition=self.platform.latency_definition,
            notes=self.platform.notes,
            parameters=values,
        )

    def take(self, platform: Platform, keys: Sequence[str], source: str) -> None:
        """Take over values that a search has found."""
        for key in keys:
            section, _, name = key.partition(".")
            self.set(key, platform.value(section, name), source, "fitted")


def calibrate(
    *,
    name: str = "this-machine",
    quick: bool = False,
    progress: Callable[[str], None] = lambda doing: None,
) -> Calibration:
    """Measure this machine and fit a profile to it.

    Parameters
    ----------
    name : str
        Of the profile.
    quick : bool
        A few seconds instead of a minute, and coarser.
    progress : callable
        Takes what is being done.

    Raises
    ------
    ConfigError : not a machine that can be measured.
    """
    machine = this_machine()
    effort = QUICK if quick else FULL
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    profile = _Profile(load_platform(base_of(machine)), machine, name, date)
    _state(profile, machine)
    progress("clock and caches")
    _clock(profile, machine, effort)
    idle = DeviceSubjects(machine, effort).all()["idle read"]
    memory_ns = time_benchmark(idle.benchmark, idle.host, effort).ns
    _caches(profile, machine, effort, memory_ns)
    subjects = DeviceSubjects(machine, effort).all()
    timings: dict[str, Timing] = {}
    for subject in subjects.values():
        progress(subject.name)
        timings[subject.name] = time_benchmark(subject.benchmark, subject.host, effort)
    _flush(profile, machine, effort)
    for step in _steps(subjects, timings, machine):
        progress(f"fitting {step.title}")
        _fit(profile, step, subjects, timings)
    _second_tier(profile)
    profile.platform.check()
    seen = {subject for step in _steps(subjects, timings, machine) for subject in step.subjects}
    rows = []
    for subject in subjects.values():
        progress(f"predicting {subject.name}")
        predicted = subject.predict(profile.platform)
        rows.append(Row(subject, timings[subject.name], predicted, subject.name in seen))
    warnings = _warnings(machine, rows)
    platform = _with_notes(profile.platform, machine, date, warnings)
    return Calibration(platform, machine, tuple(rows), tuple(warnings))


def _state(profile: _Profile, machine: HostMachine) -> None:
    """What the operating system says."""
    source = f"{machine.cpu}: as Linux {machine.kernel} reports it"
    profile.set("core.cores", machine.cores, source)
    profile.set("core.threads_per_core", machine.threads_per_core, source)
    for level, section in ((1, "l1"), (2, "l2"), (3, "llc")):
        cache = machine.cache(level)
        if cache is not None:
            profile.set(f"{section}.size", cache.size, source)
            profile.set(f"{section}.ways", cache.ways or profile.platform.value(section, "ways"), source)
    if machine.cache(3) is None:
        profile.set("llc.size", profile.platform.value("l2", "size"), "no cache behind L2 reported", "assumed")
    profile.set("dram.capacity", machine.memory // _SMALL_PAGE * _SMALL_PAGE, source)


def _clock(profile: _Profile, machine: HostMachine, effort: Effort) -> None:
    """Clock and width of the core, latencies of L1 and L2, and translation."""
    at = f"on {profile.date}"
    add = time_benchmark("compute", {"instruction": "dependent-add"}, effort).ns
    nop = time_benchmark("compute", {"instruction": "nop"}, effort).ns
    profile.set(
        "core.frequency",
        round(_INSTRUCTIONS / add * 1000) * 10**6,
        f"measured {at}: rate of dependent additions, one per cycle",
    )
    profile.set(
        "core.dispatch_width",
        round(add / nop),
        f"measured {at}: {add / nop:.1f} instructions without operands per cycle",
    )
    l1, l2 = profile.platform.value("l1", "size"), profile.platform.value("l2", "size")
    l1_ns = _undisturbed(chase(l1 // 2, _LINE, cold=False), effort)
    l2_ns = _undisturbed(chase(max(2 * l1, l2 // 8), _LINE, cold=False), effort)
    profile.set("l1.latency", _ps(l1_ns), f"measured {at}: dependent loads over half of L1")
    profile.set("l2.latency", _ps(max(l2_ns, l1_ns)), f"measured {at}: dependent loads over an eighth of L2")
    few = _undisturbed(chase(_FEW_PAGES * _PAGE_AND_LINE, _PAGE_AND_LINE, cold=False), effort)
    many = _undisturbed(chase(_MANY_PAGES * _PAGE_AND_LINE, _PAGE_AND_LINE, cold=False), effort)
    translated = many > 2 * l2_ns
    how = (
        f"{_MANY_PAGES} lines in as many 4 KiB pages take {many:.1f} ns each, in L2 they take {l2_ns:.1f} ns: "
        + ("translated page by page" if translated else "2 MiB pages translate them")
        + f"; transparent huge pages: {machine.huge_pages}"
    )
    profile.set("tlb.page_size", _SMALL_PAGE if translated else _LARGE_PAGE, f"measured {at}: {how}")
    if translated:
        entries = 96 if base_of(machine) == "spr-cxl" else 64
        profile.set(
            "tlb.first_level_entries",
            entries,
            "Intel 64 and IA-32 Architectures Optimization Reference Manual: "
            f"{entries} entries for 4 KiB pages",
            "datasheet",
        )
        profile.set(
            "tlb.second_level_latency",
            _ps(max(0.0, few - l1_ns)),
            f"measured {at}: a line in each of {_FEW_PAGES} pages, less a hit of L1",
        )
        profile.set(
            "tlb.walk_latency",
            _ps(max(0.0, many - 2 * l2_ns)),
            f"measured {at}: a line in each of {_MANY_PAGES} pages, less two hits of L2: line and entry",
        )


def _caches(profile: _Profile, machine: HostMachine, effort: Effort, memory_ns: float) -> None:
    """Latency and effective size of the last-level cache."""
    stated = machine.cache(3)
    if stated is None:
        profile.set("llc.latency", profile.platform.value("l2", "latency"), "no cache behind L2", "assumed")
        return
    l2_size, l2_ns = profile.platform.value("l2", "size"), profile.platform.value("l2", "latency") / 1000
    regions = [factor * l2_size for factor in (2, 3, 4, 6, 8, 16) if factor * l2_size <= effort.region]
    chases = {region: _undisturbed(chase(region, _LINE, cold=False), effort) for region in regions}
    fit = fit_last_level(chases, l2_size=l2_size, l2_ns=l2_ns, memory_ns=memory_ns, largest=stated.size)
    shown = ", ".join(f"{region >> 20} MiB {ns:.0f} ns" for region, ns in chases.items())
    source = f"fitted on {profile.date} to chases of {shown} (memory: {memory_ns:.0f} ns)"
    profile.set("llc.latency", _ps(fit.latency_ns), source, "fitted")
    profile.set(
        "llc.size",
        fit.size,
        f"{source}; the processor states {stated.size >> 20} MiB, which others may share",
        "fitted",
    )


def _flush(profile: _Profile, machine: HostMachine, effort: Effort) -> None:
    """Whether clwb keeps the line."""
    common = {"memory": "dram", "region_size": _LINE, "pattern": "same-line", "gap_ns": 500}
    if not (machine.has("clwb") and machine.has("clflushopt")):
        profile.set("core.flush_keeps_line", 0, f"the CPU flushes with {machine.flush()}", "measured")
        return
    kept = time_benchmark("latency", {**common, "operation": "store+clwb"}, effort).ns
    dropped = time_benchmark("latency", {**common, "operation": "store+clflushopt"}, effort).ns
    profile.set(
        "core.flush_keeps_line",
        int(kept < 0.85 * dropped),
        f"measured on {profile.date}: persisting one line again and again takes {kept:.0f} ns with clwb, "
        f"{dropped:.0f} ns with clflushopt, which drops it",
    )


def _steps(subjects: Mapping[str, Subject], timings: Mapping[str, Timing], machine: HostMachine) -> list[Step]:
    flush = f"store+{machine.flush()}"
    steps = [
        Step("idle read", ("core.shared_read_latency",), ("idle read",), {}),
        Step("parallel reads", ("core.line_fill_buffers",), ("read, load random, 1 thread",), {}),
        Step(
            "sequential reads and plain stores",
            ("prefetcher.queue", "prefetcher.distance"),
            ("read, load sequential, 1 thread", "write, store sequential, 1 thread"),
            {"prefetcher.queue": 12},
        ),
        # Streaming writes hold a buffer for the longer of hold and round trip: the trip is set short.
        Step(
            "streaming without fences",
            ("core.stream_hold",),
            ("write, ntstore sequential, 1 thread",),
            {
                "core.shared_write_latency": 20_000,
                "core.stream_delay": 0,
                "core.stream_hold": 40_000,
            },
        ),
        Step(
            "flushing without fences",
            ("core.flush_interval",),
            (f"write, {flush} sequential, 1 thread",),
            {"core.flush_interval": 10_000},
        ),
        Step(
            "single persists",
            ("core.fence_latency", "core.stream_delay"),
            ("persist flush", "persist ntstore"),
            {
                "core.fence_latency": max(1000, _ps(timings["persist flush"].ns) // 2),
                "core.stream_delay": 5_000,
            },
        ),
        Step(
            "persists one after the other",
            ("core.fence_recovery",),
            ("persists, ntstore sequential, 1 thread", f"persists, {flush} sequential, 1 thread"),
            {"core.fence_recovery": 10_000},
        ),
    ]
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


def _fit(profile: _Profile, step: Step, subjects: Mapping[str, Subject], timings: Mapping[str, Timing]) -> None:
    start = profile.platform
    for key, value in step.start.items():
        section, _, name = key.partition(".")
        start = start.with_values({section: {name: value}}, source="start of a search")
    targets = [(subjects[name], subjects[name].value(timings[name])) for name in step.subjects]

    def cost_of(platform: Platform) -> float:
        # Not clipped, as there are no outliers to forgive: the start may be off by any factor.
        costs = [abs(math.log(max(subject.predict(platform), 1e-9) / value)) for subject, value in targets]
        return sum(costs) / len(costs)

    parameters = [_candidate(key) for key in step.parameters]
    found = search(start, parameters, cost_of, _ROUNDS)
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
            profile.set(key, best.value(section, name), _ROUND_TRIP, "assumed")
    profile.take(best, step.parameters, f"fitted on {profile.date} to this machine: {names}")


def _candidate(key: str) -> Candidate:
    section, _, name = key.partition(".")
    field = find_field(section, name)
    return Candidate(section, name, field.quantity, field.minimum, field.maximum)


def _second_tier(profile: _Profile) -> None:
    """The pmem tier of a machine without persistent memory: its DRAM once more, as HostMemory maps it."""
    dram, controller = profile.platform.parameters["dram"], profile.platform.parameters["controller"]
    source = "no persistent memory: the second tier is DRAM, as HostMemory maps it"
    values = {
        "dimms": controller["channels"].value,
        "capacity": dram["capacity"].value,
        "interleave": max(_LINE, controller["dram_interleave"].value),
        "block_size": _LINE,
        "buffer_latency": dram["row_hit_latency"].value,
        "media_read_latency": dram["row_miss_penalty"].value,
        "media_read_service": dram["read_burst"].value,
        "media_write_service": dram["write_burst"].value,
        "read_buffer_blocks": 1,
        "write_buffer_blocks": 1,
        "bus_read": 0,
        "bus_write": 0,
        "reads_per_write": 1,
        "reread_delay": dram["reread_delay"].value,
        "translation_entries": 1,
        "translation_page": _SMALL_PAGE,
        "translation_miss_latency": 0,
        "wear_stall_writes": 0,
        "wear_stall": 0,
    }
    for name, value in values.items():
        profile.set(f"pmem.{name}", value, source, "assumed")
    profile.set(
        "controller.pmem_write_queue",
        controller["dram_write_queue"].value,
        "as controller.dram_write_queue: the second tier is DRAM",
        "assumed",
    )
    for flag in ("eadr", "memory_mode"):
        profile.set(f"controller.{flag}", 0, source, "assumed")


def _warnings(machine: HostMachine, rows: Sequence[Row]) -> list[str]:
    warnings = []
    disturbed = [row for row in rows if row.timing.cpu_share < DISTURBED]
    if disturbed:
        least = min(row.timing.cpu_share for row in disturbed)
        warnings.append(
            f"other processes ran meanwhile: in {len(disturbed)} of {len(rows)} measurements a thread had less "
            f"than {100 * DISTURBED:.0f} % of its processor (least {100 * least:.0f} %); times are processor "
            "times, caches and bandwidth were shared all the same"
        )
    if machine.virtual:
        warnings.append(
            "a virtual machine: caches and memory are shared with others, and translation goes through two "
            "page tables"
        )
    return warnings


def _with_notes(platform: Platform, machine: HostMachine, date: str, warnings: Sequence[str]) -> Platform:
    notes = f"Written by pmsim calibrate on {date}; flushes with {machine.flush()}. " + " ".join(
        f"{warning[0].upper()}{warning[1:]}." for warning in warnings
    )
    return Platform(
        name=platform.name,
        title=platform.title,
        kind=platform.kind,
        latency_definition=platform.latency_definition,
        notes=notes.strip(),
        parameters=platform.parameters,
    )


def check_out(path: Path) -> None:
    """Refuse a profile that cannot be written, before a minute of measuring.

    Raises
    ------
    ConfigError : not a .toml file, a directory, or a folder without write permission.
    """
    if path.suffix != ".toml":
        raise ConfigError(f"--out {path}: a profile's name ends in .toml; write --out NAME.toml")
    if path.is_dir():
        raise ConfigError(f"--out {path}: is a directory; name a file in it")
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if (
        not folder.is_dir()
        or not os.access(folder, os.W_OK)
        or (path.exists() and not os.access(path, os.W_OK))
    ):
        raise ConfigError(f"--out {path}: cannot be written; choose another file")


def write_profile(platform: Platform, path: Path) -> None:
    """Write a platform as a profile: every value with unit, source and origin.

    Raises
    ------
    ConfigError : the file cannot be written.
    """
    from pmsim.calibrate_profile import profile_text

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(profile_text(platform), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--out {path}: cannot be written: {error.strerror}; choose another file") from None


def _undisturbed(parameters: Mapping[str, Any], effort: Effort) -> float:
    """Best time [ns] of a chase through the caches: what other processes evict can only add to it."""
    return time_benchmark("chase", parameters, effort).best_ns


def _ps(nanoseconds: float) -> int:
    """Picoseconds, three digits: more are noise."""
    return int(float(f"{nanoseconds * 1000:.3g}"))
