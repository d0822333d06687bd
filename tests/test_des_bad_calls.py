"""Calls of `pmsim.des` that cannot be are told in one line, at once and by the name of the argument."""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from simpy.events import Event

from pmsim import ConfigError, _native
from pmsim.des import (
    Ask,
    BlockLogPart,
    Bursty,
    Checkpoints,
    ClosedPool,
    DirtyPages,
    EnginePart,
    Environment,
    GroupCommit,
    Load,
    LogPart,
    NativeLoad,
    Paced,
    PagePropagation,
    PagesPart,
    Poisson,
    RecordedPart,
    Request,
    Server,
    Tenant,
    TraceDriven,
    power_failures,
    slow_periods,
    stalls,
)


@pytest.fixture
def server() -> Server:
    return Server(Environment(), [LogPart()], platform="tum-6212u", workers=2)


@pytest.fixture
def load() -> NativeLoad:
    return NativeLoad(server_of(workers=2), [Tenant("all", Poisson(1e6), [Ask("log.append")])])


SERVER: dict[str, tuple[Callable[[Server], Any], str]] = {
    "a stall of a drive that is not there": (
        lambda s: s.stall("block", "1 us"),
        "device: platform 'tum-6212u' has no block device; choose another device",
    ),
    "a slow drive that is not there": (lambda s: s.slow_down("block", 200), "device: .* has no block device"),
    "a stall of a kind of device": (
        lambda s: s.stall("ssd", 1),
        "device: 'ssd' is unknown; choose pmem or block",
    ),  # type: ignore[arg-type]
    "a stall of nothing": (lambda s: s.stall(None, 1), "device: None is not text"),  # type: ignore[arg-type]
    "a slow nothing": (lambda s: s.slow_down(None, 200), "device: None is not text"),  # type: ignore[arg-type]
    "a stall of a time before": (lambda s: s.stall("pmem", -1), "duration: -1 ps is out of range"),
    "stalls at no distance": (
        lambda s: stalls(s, "pmem", mean=0, duration=1),
        "^mean: 0 ps is too short; choose at least 1 ps",
    ),
    "stalls of a time before": (lambda s: stalls(s, "pmem", mean=1, duration=-1), "^duration: -1 ps is out"),
    "power failures at no distance": (lambda s: power_failures(s, mean=0), "^mean: 0 ps is too short"),
    "a power failure at a time before": (
        lambda s: s.env.run(s.env.process(power_failures(s, at=[-5]))),
        "^at: -5 ps is out of range",
    ),
    "power failures without a restart": (
        lambda s: power_failures(s, mean=1, restart_after=-1),
        "^restart_after: -1 ps is out of range",
    ),
    "a slow period at no time": (
        lambda s: s.env.run(s.env.process(slow_periods(s, "pmem", [("x", "2 us", 200)]))),
        "^periods: ",
    ),
    "the loss of a kind of device": (
        lambda s: s.power_failure(lost="ssd"),
        "^lost: 'ssd' is unknown; choose pmem",
    ),  # type: ignore[arg-type]
    "the loss of a number": (lambda s: s.power_failure(lost=5), "^lost: 5 is not text"),  # type: ignore[arg-type]
    "the loss of a drive that is not there": (
        lambda s: s.power_failure(lost="block"),
        "^lost: platform 'tum-6212u' has no block device",
    ),
    "power failures at no time": (lambda s: power_failures(s), "at: no power failure is asked for"),
    "no group": (lambda _: GroupCommit(server_of().main, size=0, timeout=1), "size: 0 is too few"),
    "a group as text": (
        lambda _: GroupCommit(server_of().main, size="x", timeout=1),
        "size: 'x' is not a whole",
    ),  # type: ignore[arg-type]
    "a buffer of half a page": (lambda s: DirtyPages(s.env, 0.5), r"limit: 0\.5 is not a whole number"),  # type: ignore[arg-type]
    "a target that is the limit": (
        lambda s: PagePropagation(DirtyPages(s.env, 4), s.main, target=4),
        "target: 4 is too much; choose at most 3",
    ),
    "no writers": (
        lambda s: PagePropagation(DirtyPages(s.env, 4), s.main, target=1, writers=0, flush="log.append"),
        "writers: 0 is too few",
    ),
    "checkpoints without a pause": (
        lambda s: Checkpoints(s.env, period=0, logs=[server_of().main]),
        "period: 0 ps between two checkpoints; choose at least 1 ps",
    ),
    "a first that is negative": (lambda s: s.main.execute("log.append", -1), "first: -1"),
    "a count that is negative": (lambda s: s.main.execute("log.append", 0, -1), "count: -1"),
    "a first that is text": (lambda s: s.execute("log.append", "x"), "first: 'x' is not a whole number"),  # type: ignore[arg-type]
    "a first with a fraction": (lambda s: s.execute("log.append", 1.5), r"first: 1\.5 is not a whole number"),  # type: ignore[arg-type]
    "a first of 71 bits": (
        lambda s: s.execute("log.append", 2**70),
        "first: 1180591620717411303424 is too much",
    ),
    "a group beyond the largest": (
        lambda s: s.execute("log.append", 0, 257),
        "count: 257 entries at once; choose at most largest_group = 256",
    ),
    "a commit of a group beyond the largest": (
        lambda _: GroupCommit(server_of().main, size=257, timeout=1),
        "size: 257 is too much; choose at most 256",
    ),
    "no count": (lambda s: s.execute("log.append", 0, None), "count: None is not a whole number"),  # type: ignore[arg-type]
    "a count in a request": (lambda s: s.execute(Request("log.append", 0, "x")), "count: 'x' is not"),  # type: ignore[arg-type]
    "a number of no kind": (lambda s: s.execute(99), "kind: 99 is too much; choose at most 1"),
    "a kind that is negative": (lambda s: s.execute(-1), "kind: -1 is too few"),
    "a kind with a fraction": (lambda s: s.execute(1.0), r"kind: 1\.0 is not a whole number"),  # type: ignore[arg-type]
    "no kind": (lambda s: s.execute(None), "kind: None is not a whole number"),  # type: ignore[arg-type]
    "no percent": (lambda s: s.slow_down("pmem", 0), "percent: 0 is too few"),
    "too many percent": (lambda s: s.slow_down("pmem", 10**30), "percent: .* is too much"),
    "percent as a text": (lambda s: s.slow_down("pmem", "200 %"), "percent: .* is not a whole number"),  # type: ignore[arg-type]
    "a seed that is negative": (lambda s: s.power_failure(seed=-1), "seed: -1 is too few"),
    "a power failure nobody asked for": (lambda s: s.power_failure(), "cannot be crashed; .* crash=True"),
}


@pytest.mark.parametrize(("call", "message"), SERVER.values(), ids=SERVER)
def test_of_a_server(server: Server, call: Callable[[Server], Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        call(server)


def test_a_server_is_closed_as_often_as_one_likes(server: Server) -> None:
    server.close()
    server.close()


def test_a_closed_server_serves_nobody(server: Server) -> None:
    server.close()
    with pytest.raises(ConfigError, match="it is closed and serves nobody any more"):
        server.execute("log.append")


def test_the_core_drives_fresh_servers_only() -> None:
    """Its clock begins at 0: a request could come before what has been."""
    server = server_of()
    server.env.run(server.execute("log.append"))
    with pytest.raises(ConfigError, match="server: it has served others before"):
        NativeLoad(server, [Tenant("all", Poisson(1e6), [Ask("log.append")])])


DURING_A_NATIVE_LOAD: dict[str, Callable[[Server], Any]] = {
    "a request": lambda s: s.execute("log.append"),
    "a request by number": lambda s: s.execute(0),
    "a stall": lambda s: s.stall("pmem", "1 us"),
    "a slow device": lambda s: s.slow_down("pmem", 200),
    "a power failure": lambda s: s.power_failure(),
}


@pytest.mark.parametrize("call", DURING_A_NATIVE_LOAD.values(), ids=DURING_A_NATIVE_LOAD)
def test_a_native_load_has_its_server_for_itself(call: Callable[[Server], Any]) -> None:
    """They said that it was a bug of pmsim: to SimPy no time had passed."""
    server = server_of(crash=True)
    load = NativeLoad(server, [Tenant("all", Poisson(1e6), [Ask("log.append")])])
    load.run("2 us")
    with pytest.raises(ConfigError, match=r"a NativeLoad drives it, .* \(2000000 ps; .* 0 ps\); use Load"):
        call(server)
    assert server.busy == 0
    load.run("20 us")
    with pytest.raises(ConfigError, match="another NativeLoad drives it"):
        NativeLoad(server, [Tenant("all", Poisson(1e6), [Ask("log.append")])])
    server.close()
    with pytest.raises(ConfigError, match="it is closed"):
        server.execute("log.append")


def test_a_native_load_says_what_to_do_about_groups() -> None:
    server = server_of(workers={"one": 1, "two": 1})
    with pytest.raises(
        ConfigError, match=r"with their number, or use Load, whose tenants the first group serves"
    ):
        NativeLoad(server, [Tenant("all", Poisson(1e6), [Ask("log.append")])])


def test_a_device_may_be_slow_from_the_begin_of_a_native_load_on() -> None:
    means = []
    for percent in (100, 1_000):
        server = server_of()
        load = NativeLoad(server, [Tenant("all", Poisson(1e5), [Ask("log.append")])])
        server.slow_down("pmem", percent)
        load.run("1 ms")
        means.append(load.summary()["mean_ps"])
    assert means[1] > 1.01 * means[0]


def test_faults_in_the_past_are_refused() -> None:
    failing, slow = server_of(crash=True), server_of()
    failing.env.process(power_failures(failing, at=["5 us", "2 us"]))
    slow.env.process(slow_periods(slow, "pmem", [("5 us", "2 us", 200)]))
    for key, server in (("at", failing), ("periods", slow)):
        with pytest.raises(ConfigError, match=rf"{key}: '2 us' is over at 5000000 ps; .* ascending order"):
            server.env.run("30 us")


def test_a_load_runs_into_the_future_only(load: NativeLoad) -> None:
    load.run("2 us")
    load.run("2 us")
    with pytest.raises(ConfigError, match=r"until: 1000000 ps .* 2000000 ps"):
        load.run("1 us")


@pytest.mark.parametrize("tenant", [-1, 1, True, 2**70])
def test_a_tenant_that_is_not_there(load: NativeLoad, tenant: int) -> None:
    with pytest.raises(ConfigError, match="tenant: "):
        load.summary(tenant)


def test_a_request_that_cannot_be_leaves_the_server_as_it_was(server: Server) -> None:
    """It had taken a worker with it, or waited in the queue until the core refused it."""
    for _ in range(3):
        server.execute("log.append")
    for odd in ("x", 1.5, 2**70):
        with pytest.raises(ConfigError, match="first: "):
            server.execute("log.append", odd)  # type: ignore[arg-type]
    assert (server.busy, server.waiting) == (2, 1)
    server.env.run()
    assert (server.busy, server.waiting) == (0, 0)


@pytest.mark.parametrize("part", [LogPart(largest_group=4), BlockLogPart(largest_group=4)])
def test_a_client_can_catch_what_a_part_refuses_and_the_server_goes_on(part: LogPart | BlockLogPart) -> None:
    """The core refused it when a worker began: out of `run`, at each call of it, and the worker stayed busy."""
    server = server_of(parts=[part], platform={"base": "tum-6212u", "block_device": "nvme-p4510"})
    env, log = server.env, []

    def client(count: int) -> Generator[Event, Any, None]:
        try:
            done = yield server.execute(f"{part.name}.append", 0, count)
            log.append(done.result)
        except ConfigError:
            log.append(-count)

    for count in (4, 5, 3):  # the second finds the worker busy
        env.process(client(count))
    env.run()
    assert log == [-5, 4, 3]
    assert (server.busy, server.waiting) == (0, 0)


def test_a_recording_has_no_more_requests_than_it_has(tmp_path: Path) -> None:
    requests = tmp_path / "requests.csv"
    requests.write_text("operation,key\nread,1\nread,2\n")
    server = server_of(parts=[RecordedPart(requests=str(requests), rows=100)])
    with pytest.raises(ConfigError, match="first: 2 is too much; choose at most 1"):
        server.execute("recorded.request", 2)
    server.env.run(server.execute("recorded.request", 1))


def test_numbers_of_another_library_are_requests(server: Server) -> None:
    numpy = pytest.importorskip("numpy")
    largest = server.execute("log.append", numpy.uint64(2**64 - 1), numpy.int8(1))
    server.env.run()
    assert largest.ok


def server_of(**given: Any) -> Server:
    return Server(Environment(), **{"parts": [LogPart()], "platform": "tum-6212u"} | given)


MADE: dict[str, tuple[Callable[[], Any], str]] = {
    "a time as a size": (
        lambda: LogPart(entry_size="5 ns"),
        "^entry_size: '5 ns' is a time, not a size; write",
    ),
    "an unknown parameter": (lambda: LogPart(foo=1), "^foo: unknown key; known: algorithm"),
    "an unknown technique": (lambda: PagesPart(technique="crc32c"), "^technique: 'crc32c' is not one of"),
    "a missing parameter": (lambda: RecordedPart(), "^requests: missing; add it$"),
    "no text": (lambda: EnginePart(engine="\ud800"), "^engine: text that is not Unicode; correct"),
    "parts, one by name": (lambda: server_of(parts=["log"]), r"^parts: 'log' is no part; .* \(\"log\", {}\)$"),
    "parts, no list": (
        lambda: server_of(parts=LogPart()),
        "^parts: .* is not a list of parts; put it in brackets",
    ),
    "parts, a name": (lambda: server_of(parts="log"), "^parts: 'log' is not a list of parts"),
    "parts, a number": (lambda: server_of(parts=5), "^parts: 5 is not a list of parts"),
    "parts, a name that is none": (lambda: server_of(parts=[(5, {})]), "^parts: 5 is not text"),
    "parts, an unknown name": (lambda: server_of(parts=[("lgo", {})]), "^parts: unknown part 'lgo'"),
    "parts, no table": (lambda: server_of(parts=[("log", 5)]), r"^parts\.log: 5 is not a table"),
    "parts, a parameter": (
        lambda: server_of(parts=[("log", {"entry_size": 5})]),
        r"^parts\.log: entry_size: 5 is too small; choose at least 8 B$",
    ),
    "workers as text": (lambda: server_of(workers="a"), "^workers: 'a' is not a whole number"),
    "no workers": (lambda: server_of(workers=0), "^workers: 0 is too few"),
    "no group of workers": (lambda: server_of(workers={}), "^workers: there is no group"),
    "a group as text": (lambda: server_of(workers={"a": "b"}), r"^workers\.a: 'b' is not a whole number"),
    "a group without workers": (lambda: server_of(workers={"a": 1, "b": 0}), r"^workers\.b: 0 is too few"),
    "a seed with a fraction": (lambda: server_of(seed=1.5), r"^seed: 1\.5 is not a whole number"),
    "a crash that is none": (lambda: server_of(crash="yes"), "^crash: 'yes' is neither True nor False"),
}


@pytest.mark.parametrize(("make", "message"), MADE.values(), ids=MADE)
def test_what_cannot_be_made(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        make()
    assert "\n" not in str(refused.value)


APPEND = Ask("log.append")


def coming(arrivals: Any) -> Tenant:
    return Tenant("a", arrivals, [APPEND])


def asking(*mix: Any) -> Tenant:
    return Tenant("a", Poisson(1e6), mix)


TENANTS: dict[str, tuple[Any, str]] = {
    "no distance": (coming(Paced(0)), "^interval: 0 ps is too short; choose at least 1 ps$"),
    "a distance of no time": (coming(Paced("0 ns")), "^interval: 0 ps is too short"),
    "a distance as a size": (coming(Paced("1 KiB")), "^interval: '1 KiB' is a size"),
    "no phase": (coming(Bursty(1e6, 0, "1 us")), "^on: 0 ps is too short"),
    "no pause": (coming(Bursty(1e6, "1 us", 0)), "^off: 0 ps is too short"),
    "a time that is none": (coming(TraceDriven(["soon"])), "^times: 'soon' is not a time"),
    "no clients": (coming(ClosedPool(clients=0)), "^clients: 0 is too few; choose at least 1$"),
    "clients below 0": (coming(ClosedPool(clients=-1)), "^clients: -1 is too few"),
    "half a client": (coming(ClosedPool(clients=1.5)), r"^clients: 1\.5 is not a whole number"),
    "too many clients": (coming(ClosedPool(clients=2**40)), "^clients: 1099511627776 is too much"),
    "thoughts that are no time": (coming(ClosedPool(1, "x")), "^think: 'x' is not a time"),
    "arrivals that are none": (coming(5), "^arrivals: 5 says of no request when it comes"),
    "no window": (Tenant("a", Poisson(1e6), [APPEND], 0), "^window: 0 ps is too short"),
    "a mix that is a name": (Tenant("a", Poisson(1e6), "log.append"), "^mix: 'log.append' is not a list"),
    "a mix of names": (Tenant("a", Poisson(1e6), ["log.append"]), "^mix: 'log.append' is not of type Ask"),
    "a weight below 0": (asking(Ask("log.append", -1)), "^weight: -1 is too few"),
    "no weight": (asking(Ask("log.append", 0)), "^weight: 0 is too few; choose at least 1"),
    "a count beyond the largest group": (
        asking(Ask("log.append", count=257)),
        "^count: 257 is too much; choose at most 256",
    ),
    "a count below 0": (asking(Ask("log.append", count=-1)), "^count: -1 is too few"),
    "half a first": (asking(Ask("log.append", first=0.5)), r"^first: 0\.5 is not a whole"),
    "an unknown choice": (asking(Ask("log.append", first="uniformly")), "^first: unknown"),
    "a choice among none": (asking(Ask("log.append", first="uniform")), "^below: 0 is too"),
    "a mean of no time": (asking(Ask("log.append", mean=0)), "^mean: 0 ps is too short"),
    "a kind that is none": (asking(Ask(5)), "^kind: 5 is not text"),
    "no tenant": ("a", "^tenants: 'a' is not of type Tenant"),
}


@pytest.mark.parametrize("load_class", [Load, NativeLoad])
@pytest.mark.parametrize(("tenant", "message"), TENANTS.values(), ids=TENANTS)
def test_a_tenant_that_cannot_be(
    server: Server, load_class: type[Load | NativeLoad], tenant: Tenant, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        load_class(server, [tenant])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("load_class", [Load, NativeLoad])
@pytest.mark.parametrize(("seed", "message"), [(1.5, r"seed: 1\.5 is not"), (-1, "seed: -1 is too few")])
def test_a_seed_of_a_load(server: Server, load_class: type[Load | NativeLoad], seed: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_class(server, [Tenant("a", Poisson(1e6), [APPEND])], seed=seed)


def test_the_core_lets_no_time_stand_still(server: Server) -> None:
    """Clients who do not think have gaps of 0, and none is an open loop to the core: it had never returned."""
    arrivals = _native.Arrivals("paced", {"interval": 0.4}, [], 1)
    mix = _native.Mix([APPEND.native(server)], 1)
    with pytest.raises(ConfigError, match=r"^arrivals\.interval: 0 ps .*; choose at least 1 ps$"):
        _native.Driver(server.session, [(arrivals, mix, 0, 1_000)])
    _native.Driver(server.session, [(arrivals, mix, 1, 1_000)]).run(1_000_000)
