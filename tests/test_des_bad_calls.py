"""Calls of `pmsim.des` that cannot be are told in one line, at once and by the name of the argument."""

from collections.abc import Callable
from typing import Any

import pytest

from pmsim import ConfigError, _native
from pmsim.des import (
    Ask,
    Bursty,
    ClosedPool,
    Environment,
    Load,
    LogPart,
    NativeLoad,
    Paced,
    Poisson,
    Server,
    Tenant,
)


@pytest.fixture
def server() -> Server:
    return Server(Environment(), [LogPart()], platform="tum-6212u", workers=2)


@pytest.fixture
def load(server: Server) -> NativeLoad:
    return NativeLoad(server, [Tenant("all", Poisson(1e6), [Ask("log.append")])])


SERVER: dict[str, tuple[Callable[[Server], Any], str]] = {
    "a first that is negative": (lambda s: s.main.execute("log.append", -1), "first: -1"),
    "a count that is negative": (lambda s: s.main.execute("log.append", 0, -1), "count: -1"),
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


def test_a_load_runs_into_the_future_only(load: NativeLoad) -> None:
    load.run("2 us")
    load.run("2 us")
    with pytest.raises(ConfigError, match=r"until: 1000000 ps .* 2000000 ps"):
        load.run("1 us")


@pytest.mark.parametrize("tenant", [-1, 1, True, 2**70])
def test_a_tenant_that_is_not_there(load: NativeLoad, tenant: int) -> None:
    with pytest.raises(ConfigError, match="tenant: "):
        load.summary(tenant)


APPEND = Ask("log.append")


def coming(arrivals: Any) -> Tenant:
    return Tenant("a", arrivals, [APPEND])


TENANTS: dict[str, tuple[Any, str]] = {
    "no distance": (coming(Paced(0)), "^interval: 0 ps is too short; choose at least 1 ps$"),
    "a distance of no time": (coming(Paced("0 ns")), "^interval: 0 ps is too short"),
    "a distance as a size": (coming(Paced("1 KiB")), "^interval: '1 KiB' is a size"),
    "no phase": (coming(Bursty(1e6, 0, "1 us")), "^on: 0 ps is too short"),
    "no pause": (coming(Bursty(1e6, "1 us", 0)), "^off: 0 ps is too short"),
    "no clients": (coming(ClosedPool(clients=0)), "^clients: 0 is too few; choose at least 1$"),
    "clients below 0": (coming(ClosedPool(clients=-1)), "^clients: -1 is too few"),
    "half a client": (coming(ClosedPool(clients=1.5)), r"^clients: 1\.5 is not a whole number"),
    "too many clients": (coming(ClosedPool(clients=2**40)), "^clients: 1099511627776 is too much"),
    "thoughts that are no time": (coming(ClosedPool(1, "x")), "^think: 'x' is not a time"),
}


@pytest.mark.parametrize("load_class", [Load, NativeLoad])
@pytest.mark.parametrize(("tenant", "message"), TENANTS.values(), ids=TENANTS)
def test_a_tenant_that_cannot_be(
    server: Server, load_class: type[Load | NativeLoad], tenant: Tenant, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        load_class(server, [tenant])
    assert "\n" not in str(refused.value)


def test_the_core_lets_no_time_stand_still(server: Server) -> None:
    """Clients who do not think have gaps of 0, and none is an open loop to the core: it had never returned."""
    arrivals = _native.Arrivals("paced", {"interval": 0.4}, [], 1)
    mix = _native.Mix([APPEND.native(server)], 1)
    with pytest.raises(ConfigError, match=r"^arrivals\.interval: 0 ps .*; choose at least 1 ps$"):
        _native.Driver(server.session, [(arrivals, mix, 0, 1_000)])
    _native.Driver(server.session, [(arrivals, mix, 1, 1_000)]).run(1_000_000)
