"""Requests that nobody waits for any more: open loops, time-outs, and what is withdrawn."""

import pytest

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


def test_a_bad_append_ends_the_run_even_where_nobody_waits():
    env = des.Environment()
    _, _, standby = machines(env)
    standby.append(-1)
    with pytest.raises(ConfigError, match="first"):
        env.run()
