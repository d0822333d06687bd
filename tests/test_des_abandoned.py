"""Requests that nobody waits for any more: open loops, time-outs, and what is withdrawn."""

import pytest
import simpy

from pmsim import des
from pmsim.errors import ConfigError

PLATFORM = "ucsd-8260"


def log_server(env, **parameters):
    return des.Server(env, [des.LogPart(log_size="64 KiB")], platform=PLATFORM, crash=True, **parameters)


def machines(env, synchronous=True):
    primary, second = log_server(env), log_server(env)
    return (
        primary,
        second,
        des.HotStandby(primary.main, second.main, network="5 us", synchronous=synchronous),
    )


# The second has to be executing an append, which is a network's time away from the client.
@pytest.mark.parametrize(("fails", "at"), [("primary", "1 us"), ("second", "5100 ns")])
@pytest.mark.parametrize("time_out", ["nobody", "200 ns"])
def test_a_power_failure_that_cuts_off_an_abandoned_append_does_not_end_the_run(fails, at, time_out):
    env = des.Environment()
    primary, second, standby = machines(env)
    appends = []

    def client():
        for number in range(8):
            appends.append(standby.append(number))
            if time_out == "nobody":
                yield env.timeout("200 ns")
            else:
                yield appends[-1] | env.timeout(time_out)

    def fault():
        yield env.timeout(at)
        yield (primary if fails == "primary" else second).power_failure(restart_after="1 ms")

    env.process(client())
    failure = env.process(fault())
    env.run()
    assert failure.triggered
    cut_off = [append for append in appends if not append.ok]
    assert cut_off
    assert all(isinstance(append.value, des.PowerFailureError) for append in cut_off)


def test_who_waits_for_an_append_is_told_of_the_power_failure():
    env = des.Environment()
    primary, _, standby = machines(env)

    def client():
        with pytest.raises(des.PowerFailureError, match="power"):
            yield standby.append(0)
        return env.now

    waiting = env.process(client())
    env.run("100 ns")
    primary.power_failure()
    assert env.run(waiting) == 100_000


@pytest.mark.parametrize("synchronous", [False, True])
def test_a_standby_gets_what_its_power_failure_has_cut_off(synchronous):
    env = des.Environment()
    primary, second, standby = machines(env, synchronous)
    told = []

    def client():
        for number in range(100):
            try:
                yield standby.append(number)
            except des.PowerFailureError:
                told.append(number)

    env.process(client())
    env.run("5010 ns")
    failing = standby.behind
    assert second.busy == 1
    second.power_failure(restart_after="50 us", seed=1)  # takes the entry with it
    env.run(env.now + 1)
    assert standby.behind >= failing + synchronous  # whose client has been told, and goes on
    env.run("50 us")
    assert standby.behind >= failing  # as long as it is down
    env.run("10 ms")
    assert standby.behind == 0
    assert sorted(primary.present()) == list(range(100))
    assert set(second.present()) == set(range(100))  # maybe one twice, that was durable and not acknowledged
    assert told == ([0] if synchronous else [])


def test_a_bad_append_ends_the_run_even_where_nobody_waits():
    env = des.Environment()
    _, _, standby = machines(env)
    standby.append(-1)
    with pytest.raises(ConfigError, match="first"):
        env.run()


def served(env, pooled, workers=1):
    pool = simpy.PriorityResource(env, capacity=workers) if pooled else None
    return des.Server(env, [des.LogPart()], platform=PLATFORM, workers=workers, crash=True, pool=pool)


@pytest.mark.parametrize("pooled", [False, True])
def test_a_request_that_no_worker_has_begun_can_be_withdrawn(pooled):
    env = des.Environment()
    server = served(env, pooled)
    begun, abandoned, last = (server.execute("log.append", number) for number in range(3))
    env.run("1 ns")
    assert server.waiting == 2
    assert abandoned.cancel()
    assert server.waiting == 1
    assert not abandoned.cancel()
    done = env.run(last)
    assert done.granted == begun.value.end
    env.run("1 ms")
    assert not abandoned.triggered
    assert server.present() == [0, 2]
    assert (server.busy, server.waiting) == (0, 0)


@pytest.mark.parametrize("pooled", [False, True])
def test_a_request_that_a_worker_has_begun_is_not_withdrawn(pooled):
    env = des.Environment()
    server = served(env, pooled)
    begun = server.execute("log.append", 0)
    env.run("1 ns")
    assert not begun.cancel()
    env.run(begun)
    assert not begun.cancel()
    assert (server.busy, server.present()) == (0, [0])


def test_a_request_that_gets_its_worker_at_this_very_instant_can_be_withdrawn_from_the_pool():
    env = des.Environment()
    server = served(env, True)
    granted, last = server.execute("log.append", 0), server.execute("log.append", 1)
    assert granted.cancel()  # the pool has granted it, and nobody has been told
    done = env.run(last)
    assert done.granted == 0
    assert not granted.triggered
    assert (server.busy, server.pool.count) == (0, 0)


@pytest.mark.parametrize("pooled", [False, True])
def test_what_is_withdrawn_is_not_cut_off_by_a_power_failure(pooled):
    env = des.Environment()
    server = served(env, pooled)
    first, second = (server.execute("log.append", number) for number in range(2))
    env.run("1 ns")
    second.cancel()
    failure = server.power_failure(restart_after="1 us")
    early = server.execute("log.append", 2)
    late = server.execute("log.append", 3)
    env.run("2 ns")
    assert early.cancel()
    assert not first.cancel()  # it has been cut off
    recovery = env.run(failure)
    assert recovery.lost == 1
    assert env.run(late).granted == recovery.ready
    assert not second.triggered
    assert not early.triggered


def test_a_request_with_a_place_in_the_pool_of_a_server_without_power_can_be_withdrawn():
    env = des.Environment()
    server = served(env, True)
    place = server.pool.request()
    recovery = server.power_failure(restart_after="1 us")
    early, late = server.execute("log.append", 0), server.execute("log.append", 1)
    server.pool.release(place)
    env.run("1 ns")
    assert early.cancel()
    ready = env.run(recovery).ready
    assert env.run(late).granted == ready
    assert not early.triggered


def test_retries_after_time_outs_take_workers_unless_they_are_withdrawn():
    answered = {}
    for withdrawn in (False, True):
        env = des.Environment()
        server = served(env, False)
        answered[withdrawn] = 0

        def client(server=server, env=env, withdrawn=withdrawn):
            while True:
                request = server.execute("log.append", 0)
                yield request | env.timeout("900 ns")
                if request.triggered:
                    answered[withdrawn] += 1
                elif withdrawn:
                    request.cancel()

        for _ in range(5):
            env.process(client())
        env.run("200 us")
    assert answered[False] < answered[True] / 2
