"""A server's pool is a SimPy resource that other processes may use, too."""

import pytest
import simpy

from pmsim import des
from pmsim.errors import ConfigError

PLATFORM = "ucsd-8260"


def pooled(pool_class, workers=1):
    env = des.Environment()
    pool = pool_class(env, capacity=workers)
    part = des.LogPart(log_size="64 KiB")
    server = des.Server(env, [part], platform=PLATFORM, workers=workers, crash=True, pool=pool)
    return env, pool, server


def clients(env, server, count, answered):
    def client():
        number = 0
        while True:
            try:
                yield server.execute("log.append", number)
                answered.append(env.now)
            except des.PowerFailureError:
                pass
            number += 1

    for _ in range(count):
        env.process(client())


@pytest.mark.parametrize("pool_class", [simpy.Resource, simpy.PriorityResource])
def test_a_maintenance_process_keeps_its_place_in_the_pool_over_a_power_failure(pool_class):
    env, pool, server = pooled(pool_class)
    answered = []
    clients(env, server, 3, answered)
    had = []

    def maintenance():
        with pool.request() as place:
            yield place
            had.append(env.now)
            yield env.timeout("5 us")
            had.append(env.now)

    env.process(maintenance())  # behind the first requests of the clients
    env.run("300 ns")
    server.power_failure(restart_after="1 us")
    waiting = server.waiting
    env.run("1 ms")
    assert waiting == 0  # the one that waits is not the server's
    began, ended = had
    assert ended - began == 5 * des.US
    assert not any(began < at < ended for at in answered)
    assert answered[-1] > 990 * des.US


def test_a_maintenance_process_that_has_a_worker_has_it_until_it_gives_it_back():
    env, pool, server = pooled(simpy.Resource, workers=2)
    answered = []
    until = 2_000 * des.US

    def maintenance():
        with pool.request() as place:
            yield place
            yield env.timeout(until)

    env.process(maintenance())
    clients(env, server, 2, answered)
    env.run("1 us")
    assert (server.busy, server.waiting, pool.count) == (1, 1, 2)
    recovery = server.power_failure(restart_after="1 us")
    assert (server.busy, server.waiting, pool.count) == (0, 0, 2)
    env.run("1500 ns")
    assert server.waiting == 2  # requests that have come meanwhile
    ready = env.run(recovery).ready
    env.run(until)
    after = [at for at in answered if at > ready]
    assert len(after) > 10
    assert (server.busy, server.waiting, pool.count) == (1, 1, 2)
    env.run(until + 10 * des.US)
    assert (server.busy, server.waiting, pool.count) == (2, 0, 2)


def test_a_request_that_gets_a_place_in_the_pool_during_an_outage_waits_for_the_server():
    env, pool, server = pooled(simpy.PriorityResource)
    place = pool.request()
    env.run("1 us")
    recovery = server.power_failure(restart_after="1 us")
    request = server.execute("log.append", 0, priority=-1)
    env.run("1500 ns")
    pool.release(place)
    env.run("1600 ns")
    assert (server.busy, server.waiting) == (0, 1)
    ready = env.run(recovery).ready
    done = env.run(request)
    assert done.granted == ready
    env.run("1 s")
    assert (server.busy, server.waiting, pool.count) == (0, 0, 0)


def test_a_second_power_failure_in_an_outage_leaves_the_pool_as_the_first_did():
    env, pool, server = pooled(simpy.Resource, workers=2)
    place = pool.request()
    requests = [server.execute("log.append", number) for number in range(3)]
    env.run("100 ns")
    server.power_failure(restart_after="1 ms")
    requests += [server.execute("log.append", number) for number in range(3)]
    env.run("1 us")
    pool.release(place)  # so one of them gets a place, while the server is down
    env.run("2 us")
    recovery = server.power_failure(restart_after="1 us")
    assert (server.waiting, pool.count) == (0, 2)
    last = server.execute("log.append", 0)
    ready = env.run(recovery).ready
    assert env.run(last).granted == ready
    assert not any(request.ok for request in requests)
    env.run("1 s")
    assert (server.busy, server.waiting, pool.count) == (0, 0, 0)


def test_a_pool_of_two_servers_is_refused_while_both_serve():
    env, pool, server = pooled(simpy.Resource)
    with pytest.raises(ConfigError, match=r"pool: another server has it; give each its own"):
        des.Server(env, [des.LogPart()], platform=PLATFORM, pool=pool)
    server.close()
    assert des.Server(env, [des.LogPart()], platform=PLATFORM, pool=pool).pool is pool
