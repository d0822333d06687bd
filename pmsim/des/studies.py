"""What kind "system" runs: one question per function, each a pure function of its arguments.

Every study returns plain numbers. Latencies are in picoseconds here, from the client's call to the
acknowledgement.
"""

import itertools
import math
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from simpy.events import Event

from pmsim import _native
from pmsim.des.arrivals import ClosedPool, Poisson, TraceDriven
from pmsim.des.asks import Ask, warm_up
from pmsim.des.background import DirtyPages, GroupCommit, PagePropagation
from pmsim.des.environment import Environment
from pmsim.des.faults import power_failures
from pmsim.des.load import NativeLoad, Tenant
from pmsim.des.long_run import LongRun
from pmsim.des.parts import LogPart, PagesPart, Part
from pmsim.des.request import PowerFailureError, Recovery
from pmsim.des.server import Server
from pmsim.des.times import S
from pmsim.errors import SimulationError
from pmsim.platforms import Platform
from pmsim.standing import stretch, watcher

#: Part of the requests of a study that are served before they count, and seconds between two tellings.
_WARM_UP = 1 / 11
_TELLING = 0.1
#: A queue has grown without end when so many of the requests are still there at the end of a run.
_BACKLOG = 0.01
#: Requests of one run of the bisection, and its steps: each halves the bracket of the saturation.
_PROBE = 20_000
_STEPS = 10
#: How far above the saturation found, and for how many times the requests, it is looked once more.
_WELL_ABOVE = 1.25
_LONGER = 3
_RUNS = 1 + 1 + _STEPS + _LONGER
#: Requests that the search serves, about.
SEARCH_REQUESTS = _RUNS * _PROBE

Summary = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """What serves: parts on a machine, and the mix that asks them."""

    machine: Platform = field(hash=False)  # compared all the same
    parts: tuple[Part, ...]
    workers: int
    mix: tuple[Ask, ...]
    seed: int
    warm_up: int = 0
    in_order: bool = False  # requests of an engine are acknowledged so, as where the power can fail

    def server(self, *, crash: bool = False, number: int = 0) -> Server:
        """Return a fresh server on a clock of its own; those with other numbers draw other numbers."""
        server = Server(
            Environment(),
            self.parts,
            platform=self.machine,
            workers=self.workers,
            seed=(self.seed + number) % 2**63,
            crash=crash,
            in_order=self.in_order,
        )
        if self.warm_up:
            # Other requests than those that count, but of the same popular rows.
            warm_up(server, self.mix, self.warm_up, seed=(self.seed + number + 2) % 2**63)
        return server


def closed_throughput(setting: Setting, *, clients: int | None = None, requests: int = _PROBE) -> float:
    """Return the throughput [1/s] of clients that never think, by default two for each worker."""
    pool = ClosedPool(2 * setting.workers if clients is None else clients)
    load = NativeLoad(setting.server(), [Tenant("all", pool, setting.mix, "1 s")], seed=setting.seed)
    with stretch(0, _WARM_UP):
        _run_requests(load, requests // 10)
    load.restart_statistics()
    with stretch(_WARM_UP, 1):
        _run_requests(load, requests)
    found = load.summary()
    load.server.close()
    return float(found["count"] * S / found["elapsed_ps"])


@lru_cache(maxsize=256)
def saturation(setting: Setting) -> float:
    """Return the largest rate [1/s] of Poisson arrivals whose queue does not grow, by bisection.

    A queue counts as growing where more than 1 % of the requests of a run are still in the system at its end.
    The bracket begins at the throughput of a closed pool. A single stall late in such a run looks the same; so
    where a longer run keeps up with a rate well above the one found, it is sought once more by longer runs.
    The points of a curve over the load share one search: it takes several times as long as a point.
    """
    doing = "seeking the saturation"
    with stretch(0, 1 / _RUNS, doing):
        closed = closed_throughput(setting)
    with stretch(1 / _RUNS, 1 - _LONGER / _RUNS, doing):
        found = _largest_rate(setting, 0.0, closed, _PROBE)
    above = _WELL_ABOVE * found
    with stretch(1 - _LONGER / _RUNS, 1, doing):
        if _keeps_up(setting, above, _LONGER * _PROBE):
            found = _largest_rate(setting, above, 2 * above, _LONGER * _PROBE)
    return found


def _largest_rate(setting: Setting, low: float, high: float, requests: int) -> float:
    """Return the largest rate [1/s] that runs of so many requests keep up with; they do with `low`."""
    runs = 1 + _STEPS
    left = 1 / runs
    while True:
        # Nobody knows how often it doubles: each time half of what is left of this step.
        with stretch(1 / runs - left, 1 / runs - left / 2):
            if not _keeps_up(setting, high, requests):
                break
        low, high, left = high, 2 * high, left / 2
    for step in range(1, runs):
        middle = (low + high) / 2
        with stretch(step / runs, (step + 1) / runs):
            low, high = (middle, high) if _keeps_up(setting, middle, requests) else (low, middle)
    return low


def _keeps_up(setting: Setting, rate: float, requests: int) -> bool:
    load = NativeLoad(setting.server(), [Tenant("all", Poisson(rate), setting.mix, "1 s")], seed=setting.seed)
    load.run(round(requests / rate * S))
    found = load.summary()
    load.server.close()
    return keeps_up(found, setting.workers)


def keeps_up(found: Summary, served: float) -> bool:
    """Tell whether a queue has not grown: but for those that are served, 1 % are in the system at the end."""
    return bool(found["in_system"] <= _BACKLOG * found["submitted"] + served)


def _run_requests(load: NativeLoad, requests: int) -> None:
    # The rate is not known beforehand: ever longer pieces until enough have ended.
    piece = 1_000_000
    while (count := load.summary()["count"]) < requests:
        done = count / requests
        with stretch(done, min(1.0, 2 * done)):  # a piece is as long as those before it
            load.run(load.now + piece)
        piece *= 2
        if piece > 10**18:
            raise SimulationError("pmsim bug: a closed pool that serves nobody")


def open_load(setting: Setting, rate: float, requests: int, batches: int = 1) -> Summary:
    """Serve about so many requests that come at a rate [1/s], a tenth of them before they count.

    Like others it divides what counts into batches of the same length, and returns the latencies of each.
    """
    length = round(requests / rate * S)
    tenant = Tenant("all", Poisson(rate), setting.mix, _batch(length, batches))
    load = NativeLoad(setting.server(), [tenant], seed=setting.seed)
    with stretch(0, _WARM_UP):
        load.run(length // 10)
    load.restart_statistics()
    before = _so_far(load.server, load.now)
    with stretch(_WARM_UP, 1):
        load.run(length + length // 10)
    found = load.summary() | {"offered": rate} | _of_batches(load.recorder(), load.now, batches)
    return found | _last_of(load.server, load.now, before)


def recorded_load(setting: Setting, arrivals: npt.NDArray[np.int64]) -> Summary:
    """Serve requests that come at these times [ps] until all are answered.

    Latencies are those of the second half. What is counted over time (requests answered and in the system, what
    the machine does) is everything from the second half's first request on: the backlog of the first, too.
    """
    half = len(arrivals) // 2
    # Tenants of their own: what the first half has left waiting has other latencies than the second.
    halves = [
        Tenant(name, TraceDriven(times.tolist()), [replace(ask, below=first) for ask in setting.mix], "1 s")
        for name, times, first in (("first", arrivals[:half], 0), ("second", arrivals[half:], half))
    ]
    load = NativeLoad(setting.server(), halves, seed=setting.seed)
    begin, end = int(arrivals[half]), int(arrivals[-1])
    with stretch(0, 0.5):
        load.run(begin)
    load.restart_statistics()
    before = _so_far(load.server, load.now)
    with stretch(0.5, 0.9):
        load.run(end)
    found = load.summary("second")
    waiting = found["in_system"] + load.summary("first")["in_system"]
    kept_up = keeps_up(found | {"in_system": waiting}, setting.workers)
    with stretch(0.9, 1):  # where it keeps up, they are few
        load.finish()
    found, backlog = load.summary("second"), load.summary("first")
    offered = (found["submitted"] - 1) * S / (end - begin)  # as many as there are gaps
    found |= {"offered": offered, "keeps_up": kept_up}
    # Workers are busy with the backlog in the same time, so a rate of the second half alone is no throughput.
    found |= {key: found[key] + backlog[key] for key in ("count", "mean_in_system")}
    return found | _last_of(load.server, load.now, before)


def two_tenants(
    setting: Setting, rate: float, scans: Ask, scanners: int, requests: int, batches: int = 1
) -> Summary:
    """Serve requests at a rate [1/s] beside clients who scan without a pause."""
    length = round(requests / rate * S)
    tenants = [Tenant("all", Poisson(rate), setting.mix, _batch(length, batches))]
    if scanners:
        tenants.append(Tenant("scans", ClosedPool(scanners), [scans], "1 s"))
    load = NativeLoad(setting.server(), tenants, seed=setting.seed)
    with stretch(0, _WARM_UP):
        load.run(length // 10)
    load.restart_statistics()
    before = _so_far(load.server, load.now)
    with stretch(_WARM_UP, 1):
        load.run(length + length // 10)
    found = load.summary("all") | {"offered": rate} | _of_batches(load.recorder("all"), load.now, batches)
    if scanners:
        scanned = load.summary("scans")
        found["scans_per_s"] = scanned["count"] * S / scanned["elapsed_ps"]
    return found | _last_of(load.server, load.now, before)


def long_run(
    setting: Setting, rate: float, *, duration: int, segment: int, windows: int, state: Path | None
) -> tuple[Summary, list[Summary]]:
    """Serve requests at a rate [1/s] for hours; return the totals and the time windows.

    Each segment has a fresh server; the state between two of them is kept in a file, where one is given, so
    that an interrupted run goes on with its last segment and ends as one that was not (`LongRun`).
    """
    tenants = [Tenant("all", Poisson(rate), setting.mix, -(-duration // windows))]
    run = LongRun(
        lambda number: setting.server(number=number),
        tenants,
        segment=segment,
        state=state,
        seed=setting.seed,
    )
    run.run(duration)
    found = run.load.summary() | {"offered": rate, "counters": run.counters()}
    # Requests that are served at the end are finished, maybe behind the last window: they are in the totals.
    return found, list(run.load.recorder().windows(run.load.now))[:windows]


def _teller(env: Environment, end: float) -> Callable[[], None]:
    """Return what a process of a study calls for each request: it tells now and then where the study stands.

    No process of its own: that would be events.
    """
    watch, told = watcher(), 0.0

    def tell() -> None:
        nonlocal told
        if watch is not None and (now := time.monotonic()) - told >= _TELLING:
            told = now
            watch("measuring", min(1.0, env.now / end))

    return tell


def _so_far(server: Server, now: int) -> Summary:
    """Return what machine and parts have counted."""
    return {"counters": server.counters_at(now), "facts": server.facts()}


def _last_of(server: Server, now: int, before: Summary | None = None) -> Summary:
    """Return what machine and parts have counted since a warm-up, and give the memory back."""
    last = _so_far(server, now)
    server.close()
    if before is None:
        return last
    return {key: {name: value - before[key].get(name, 0) for name, value in last[key].items()} for key in last}


def _batch(length: int, batches: int) -> int:
    """Return how long [ps] a batch is."""
    return max(1, -(-length // max(1, batches)))


def _of_batches(recorder: _native.Recorder, now: int, batches: int) -> Summary:
    """Return the latencies of each; what comes behind the last one, as the run does, belongs to none."""
    counts, edges, sums = recorder.latencies(now)
    return {"batches": (counts[:batches], edges, sums[:batches])}


def _length(requests: float, rate: float) -> int:
    """Return how long [ps] about so many requests take to come; SimPy knows no run of no time."""
    return max(1, round(requests / rate * S))


def group_commit(
    machine: Platform,
    log: Part,
    *,
    size: int,
    timeout: int,
    rate: float,
    requests: int,
    seed: int,
    batches: int = 1,
) -> Summary:
    """Let transactions come at a rate [1/s], whose entries are made durable in groups by one thread."""
    env = Environment()
    server = Server(env, [log], platform=machine, workers=1, seed=seed)
    commit = GroupCommit(server.main, size=size, timeout=timeout, append=f"{log.name}.append")
    recorder = _native.Recorder(_batch(_length(requests, rate), batches))
    gaps = Poisson(rate).native(seed)

    tell = _teller(env, 1.1 * requests / rate * S)

    def transactions() -> Generator[Event, Any, None]:
        while True:  # as many as come until the end, not as many as are expected
            yield env.timeout(gaps.next())
            tell()
            began = env.now
            recorder.submitted(began)
            _, durable = commit.append()
            durable.callbacks.append(ender(began))

    def ender(began: int) -> Callable[[Event], None]:
        def ended(event: Event) -> None:
            # Until the group is closed is waiting, too.
            recorder.completed(began, event._value.begin, env.now)

        return ended

    env.process(transactions())
    env.run(_length(requests / 10, rate))
    recorder.restart(env.now)
    gathered, counted = (commit.groups, commit.entries), _so_far(server, env.now)
    env.run(env.now + _length(requests, rate))
    groups, entries = commit.groups - gathered[0], commit.entries - gathered[1]
    found = recorder.summary(env.now)
    # One group is appended while the next one gathers: no queue, however large they are.
    mean = entries / groups if groups else 0.0
    largest = max(min(size, 1 + rate * timeout / S), mean)
    return (
        found
        | {"offered": rate, "entries_per_group": mean}
        | {"keeps_up": keeps_up(found, 2 * largest)}
        | _of_batches(recorder, env.now, batches)
        | _last_of(server, env.now, counted)
    )


def propagation(
    machine: Platform,
    *,
    log: LogPart,
    pages: PagesPart,
    background: Literal["none", "writers"],
    workers: int,
    writers: int,
    limit: int,
    target: int,
    rate: float,
    requests: int,
    seed: int,
    batches: int = 1,
) -> Summary:
    """Let transactions change a page each and append to the log, with or without background writers.

    Without, a transaction that finds the buffer full of dirty pages writes the oldest one back itself, on the
    worker that would have served somebody else's transaction.
    """
    env = Environment()
    groups = {"clients": workers, "writers": writers} if background == "writers" else {"clients": workers}
    server = Server(env, [log, pages], platform=machine, workers=groups, seed=seed)
    dirty = DirtyPages(env, limit)
    if background == "writers":
        PagePropagation(dirty, server["writers"], target=target)
    recorder = _native.Recorder(_batch(_length(requests, rate), batches))
    gaps = Poisson(rate).native(seed)
    choose = _native.Mix([(1, 0, "uniform", pages.pages, 1, 0.0, 0.0)], seed + 1)
    append = server.kind("log.append")
    flush = server.kind("pages.flush")

    tell = _teller(env, 1.1 * requests / rate * S)

    def arrivals() -> Generator[Event, Any, None]:
        for number in itertools.count():
            yield env.timeout(gaps.next())
            tell()
            env.process(transaction(number))

    def transaction(number: int) -> Generator[Event, Any, None]:
        began = env.now
        recorder.submitted(began)
        page = choose.draw()[1]
        if background == "writers":
            yield from dirty.change(page)
        else:
            yield from dirty.change_and_evict(page, server.main, flush)
        done = yield server.execute(append, number)
        recorder.completed(began, done.granted, done.end)

    env.process(arrivals())
    env.run(_length(requests / 10, rate))
    recorder.restart(env.now)
    stalls, counted = dirty.stalls, _so_far(server, env.now)
    env.run(env.now + _length(requests, rate))
    found = recorder.summary(env.now) | {"offered": rate} | _of_batches(recorder, env.now, batches)
    found |= _last_of(server, env.now, counted)
    return found | {"stalled_ratio": (dirty.stalls - stalls) / max(1, found["count"])}


def restart_under_load(
    setting: Setting,
    rate: float,
    *,
    crash_at: int,
    restart_after: int,
    duration: int,
    windows: int,
) -> tuple[Summary, list[Summary]]:
    """Let the power fail under open load; return the totals and the time windows.

    The requests that the failure cuts off are asked again by their clients at once, and count from their first
    call; what comes while the server is down waits.
    """
    server = setting.server(crash=True)
    env = server.env
    window = -(-duration // windows)
    recorder = _native.Recorder(window)
    gaps = Poisson(rate).native(setting.seed)
    mix = _native.Mix([ask.native(server) for ask in setting.mix], setting.seed + 1)

    tell = _teller(env, duration)

    def arrivals() -> Generator[Event, Any, None]:
        while True:
            yield env.timeout(gaps.next())
            tell()
            env.process(client())

    def client() -> Generator[Event, Any, None]:
        began = env.now
        recorder.submitted(began)
        asked = mix.draw()
        while True:
            try:
                done = yield server.execute(*asked)
            except PowerFailureError:
                continue
            recorder.completed(began, done.granted, done.end)
            return

    log: list[Recovery] = []
    env.process(arrivals())
    env.process(power_failures(server, at=[crash_at], restart_after=restart_after, seed=setting.seed, log=log))
    env.run(duration)
    found = recorder.summary(env.now) | {"offered": rate} | _last_of(server, env.now)
    # Without an entry the recovery, or the power failure, has not come to its end within the run.
    found["recovery"] = log[0].ready - log[0].restarted if log else math.nan
    found["cut_off"] = log[0].lost if log else math.nan
    return found, list(recorder.windows(env.now))


__all__: Sequence[str] = (
    "Setting",
    "closed_throughput",
    "group_commit",
    "keeps_up",
    "long_run",
    "open_load",
    "propagation",
    "recorded_load",
    "restart_under_load",
    "saturation",
    "two_tenants",
)
