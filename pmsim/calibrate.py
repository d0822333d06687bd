"""Fitting a platform profile to this machine, from its own microbenchmarks.

The order is that of docs/calibration.md: what the operating system states; clock, caches and translation, each
read off one benchmark; idle latencies; one thread's parallelism; how persists follow each other. A search never
sees the engines, the blocks or the benchmarks of several threads: they are predictions.
"""

import datetime
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pmsim.calibrate_draft import Draft, base_of
from pmsim.calibrate_profile import profile_text
from pmsim.calibrate_reach import NEAR, is_reached, limits, shortfall
from pmsim.calibrate_read import (
    read_core,
    read_flush,
    read_last_level,
    read_link,
    read_topology,
    read_window,
)
from pmsim.calibrate_steps import Step, dram_steps, fit_step, tier_steps
from pmsim.calibrate_tier import dram_as_second_tier, modules_as_second_tier
from pmsim.errors import ConfigError
from pmsim.host_machine import HostMachine, this_machine
from pmsim.host_subjects import DeviceSubjects
from pmsim.host_timing import (
    DISTURBED,
    FULL,
    QUICK,
    Effort,
    Subject,
    Timing,
    check_file,
    emptied_afterwards,
    time_benchmark,
    try_file,
)
from pmsim.output_place import check_output_file, place_of
from pmsim.platforms import Platform
from pmsim.profiles import CALIBRATED, load_platform
from pmsim.toml_file import read_toml
from pmsim.whole_files import replace_file

#: Rounds of each search: the step is x1.25, then halves.
_ROUNDS = 5
_QUICK_ROUNDS = 2


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
    limited_by : tuple of str
        Parameters that no search moves and that keep it from what was measured, where it is fitted and not
        reached; none are known of some.
    """

    subject: Subject
    timing: Timing
    predicted: float
    fitted: bool
    limited_by: tuple[str, ...] = ()

    @property
    def measured(self) -> float:
        """In the metric of the subject."""
        return self.subject.value(self.timing)

    @property
    def spread(self) -> float:
        """Distance of the quartiles of what was measured, over its median."""
        return self.subject.spread(self.timing)

    @property
    def ratio(self) -> float:
        """Predicted over measured."""
        return self.predicted / self.measured

    @property
    def missed(self) -> bool:
        """It was fitted to, and is farther off than a search is to leave it."""
        return self.fitted and not is_reached(self.ratio)


@dataclass(frozen=True)
class Calibration:
    """A fitted platform, what it was fitted to, and how well."""

    platform: Platform
    machine: HostMachine
    rows: tuple[Row, ...]
    warnings: tuple[str, ...]


def calibrate(
    *,
    name: str = "this-machine",
    on: Path | None = None,
    quick: bool = False,
    progress: Callable[[str], None] = lambda doing: None,
) -> Calibration:
    """Measure this machine and fit a profile to it.

    Parameters
    ----------
    name : str
        Of the profile.
    on : Path, optional
        New or empty file whose memory the pmem tier stands for, best on a DAX file system; by default that tier
        is DRAM.
    quick : bool
        A few seconds instead of a minute, and coarser.
    progress : callable
        Takes what is being done.

    Raises
    ------
    ConfigError : not a machine that can be measured, or an unusable file.
    """
    check_file(on)
    machine = this_machine()
    effort = QUICK if quick else FULL
    if on is not None:
        try_file(on, effort)  # what comes before the file is used takes a minute
    rounds = _QUICK_ROUNDS if quick else _ROUNDS
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    draft = Draft(load_platform(base_of(machine)), machine, name, date)
    read_topology(draft, machine)
    progress("clock and caches")
    read_core(draft, machine, effort)
    dram = DeviceSubjects(machine, effort).all()
    timings = _time(dram, effort, None, progress)
    read_window(draft, effort, timings["idle read"].ns)
    read_last_level(draft, machine, effort, timings["idle read"].ns)
    read_flush(draft, machine, effort)
    used = read_link(draft, machine, {name: dram[name].value(timings[name]) for name in dram})
    rows = _fit(draft, dram_steps(dram, timings, machine), dram, timings, progress, rounds, used)
    dram_as_second_tier(draft)
    if on is not None:
        tier = DeviceSubjects(machine, effort, "pmem").all()
        with emptied_afterwards(on):
            timings = _time(tier, effort, on, progress)
        if timings["idle read"].is_dax:
            modules_as_second_tier(draft)
        rows += _fit(draft, tier_steps(machine), tier, timings, progress, rounds)
    draft.platform.check()
    warnings = _warnings(machine, rows, on)
    notes = f"{CALIBRATED} on {date}; flushes with {machine.flush()}. " + " ".join(
        f"{warning[0].upper()}{warning[1:]}." for warning in warnings
    )
    return Calibration(replace(draft.platform, notes=notes.strip()), machine, tuple(rows), tuple(warnings))


def _time(
    subjects: Mapping[str, Subject], effort: Effort, on: Path | None, progress: Callable[[str], None]
) -> dict[str, Timing]:
    timings = {}
    for subject in subjects.values():
        progress(subject.name)
        timings[subject.name] = time_benchmark(subject.benchmark, subject.host, effort, on)
    return timings


def _fit(
    draft: Draft,
    steps: Sequence[Step],
    subjects: Mapping[str, Subject],
    timings: Mapping[str, Timing],
    progress: Callable[[str], None],
    rounds: int,
    used: Collection[str] = (),
) -> list[Row]:
    for step in steps:
        progress(f"fitting {step.title}")
        fit_step(draft, step, subjects, timings, rounds)
    seen = {*used, *(name for step in steps for name in step.subjects)}
    rows = {}
    for name, subject in subjects.items():
        progress(f"predicting {subject.name}")
        row = Row(subject, timings[name], subject.predict(draft.platform), name in seen)
        if row.missed:
            row = replace(row, limited_by=limits(draft.platform, subject, row.measured))
        rows[name] = row
    for step in steps:
        missed = [
            f"{name} comes out at {shortfall(rows[name].ratio, rows[name].limited_by)}"
            for name in step.subjects
            if rows[name].missed
        ]
        if missed:
            draft.remark(step.parameters, f"not reached: {'; '.join(missed)}")
    return [*rows.values()]


def _warnings(machine: HostMachine, rows: Sequence[Row], on: Path | None) -> list[str]:
    warnings = []
    if on is not None and not rows[-1].timing.is_dax:
        warnings.append(f"{on} is not on a DAX file system: the pmem tier is DRAM and the page cache")
    disturbed = [row for row in rows if row.timing.cpu_share < DISTURBED]
    if disturbed:
        least = min(row.timing.cpu_share for row in disturbed)
        warnings.append(
            f"other processes ran meanwhile: in {len(disturbed)} of {len(rows)} measurements a thread had less "
            f"than {100 * DISTURBED:.0f} % of its processor (least {100 * least:.0f} %); times are processor "
            "times, caches and bandwidth were shared all the same"
        )
    fitted, missed = ([row for row in rows if getattr(row, how)] for how in ("fitted", "missed"))
    if missed:
        told = "; ".join(
            f"{row.subject.name} comes out at {shortfall(row.ratio, row.limited_by)}" for row in missed
        )
        warnings.append(
            f"{len(missed)} of the {len(fitted)} microbenchmarks that were fitted to "
            f"{'is' if len(missed) == 1 else 'are'} not reached within a factor of {NEAR}: {told}"
        )
    if machine.virtual:
        warnings.append(
            "a virtual machine: caches and memory are shared with others, and translation goes through two "
            "page tables"
        )
    return warnings


def check_out(path: Path) -> None:
    """Refuse a profile that cannot be written, before a minute of measuring.

    Raises
    ------
    ConfigError : not a .toml file, none that can be written, or one that is no profile of a machine.
    """
    if path.suffix != ".toml":
        raise ConfigError(f"--out {path}: a profile's name ends in .toml; write --out NAME.toml")
    check_output_file(path)
    if path.exists() and path.stat().st_size and not _is_machine(path):
        raise ConfigError(f"--out {path}: exists and is no profile of a machine; choose another file")


def _is_machine(path: Path) -> bool:
    try:
        found = read_toml(path)
    except ConfigError:
        return False
    # Whoever derives a machine may leave its kind out. A scenario has a kind, too.
    return found.get("kind", "machine" if "base" in found else None) == "machine"


def write_profile(platform: Platform, path: Path) -> None:
    """Write a platform as a profile: every value with unit, source and origin.

    Raises
    ------
    ConfigError : the file cannot be written.
    """
    place_of(path)  # a pipe would be replaced by a file
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, profile_text(platform).encode())
    except OSError as error:
        raise ConfigError(f"--out {path}: cannot be written: {error.strerror}; choose another file") from None
