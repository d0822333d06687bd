"""Calls of `pmsim.des` that cannot be are told in one line, at once and by the name of the argument."""

from collections.abc import Callable
from typing import Any

import pytest

from pmsim import ConfigError
from pmsim.des import Ask, Environment, LogPart, NativeLoad, Poisson, Server, Tenant


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
