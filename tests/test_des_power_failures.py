"""Power failures as a process: at given times, and then at random ones."""

from itertools import pairwise

from pmsim import des


def test_random_power_failures_follow_those_at_given_times_once_the_server_is_ready():
    env = des.Environment()
    server = des.Server(env, [des.LogPart(log_size="64 KiB")], platform="ucsd-8260", workers=1, crash=True)
    log = []
    # A distance is far shorter than an outage: counted from the failure it would end within it.
    env.process(
        des.power_failures(server, at=["10 us", "12 us"], mean="100 ns", restart_after="50 us", log=log)
    )
    env.run("400 us")
    assert log[0].failed == 10 * des.US
    assert log[0].restarted == 62 * des.US
    assert len(log) > 3
    for before, after in pairwise(log):
        assert before.ready < after.failed
        assert after.restarted == after.failed + 50 * des.US
