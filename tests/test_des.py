"""One clock for SimPy and the core: exact times, the order of events, and the closed loop of the native run."""

import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import simpy

import pmsim
from pmsim import _native, des
from pmsim.errors import ConfigError, SimulationError

PLATFORM = "ucsd-8260"
LOG = {
    "algorithm": "poplog",
    "layout": "padded",
    "entry_size": 112,
    "group_commit": 1,
    "dancing_fields": 8,
    "log_size": 1 << 22,
    "threads": 1,
    "cpu_cycles": 0,
    "memory": "pmem",
    "timed": 1,
}


def cycle_of(platform):
    """Picoseconds of a cycle, as the core has them."""
    return 10**12 // pmsim.load_platform(platform).value("core", "frequency")


@pytest.mark.parametrize(
    ("given", "expected"),
    [(7, 7), (np.int64(7), 7), (7.0, 7), (np.float64(7.0), 7), ("7 ns", 7_000), ("1.5 us", 1_500_000)],
)
def test_times_become_plain_integers(given, expected):
    value = des.picoseconds(given)
    assert value == expected
    assert type(value) is int


@pytest.mark.parametrize(
    "given", [0.1, float("nan"), float("inf"), -1, True, "7", "7 B", 2**63 - 1, Fraction(1, 2), None]
)
def test_times_that_are_not_whole_picoseconds_are_refused(given):
    with pytest.raises(ConfigError):
        des.picoseconds(given)


def test_the_clock_is_a_plain_integer_whatever_delays_are_made_of():
    env = des.Environment(np.int64(5))

    def process():
        yield env.timeout(np.int64(10))
        yield env.timeout("1 ns")
        yield env.timeout(2.0)
        yield simpy.Timeout(env, np.float64(3.0))

    env.process(process())
    env.run(np.int64(2_000))
    assert env.now == 2_000
    assert type(env.now) is int
    with pytest.raises(ConfigError, match="whole number of picoseconds"):
        env.timeout(0.5)
    with pytest.raises(ConfigError, match="whole number of picoseconds"):
        env.run(until=2_000.5)
    with pytest.raises(ConfigError):
        simpy.Timeout(env, 0.25)


def closed_loop(server, requests, log):
    def client(number):
        for _ in range(requests):
            done = yield server.execute(0)
            log.append((done.end, done.worker, done.begin, number))

    for number in range(server.workers):
        server.env.process(client(number))


@pytest.mark.parametrize("algorithm", ["poplog", "classic"])
def test_a_closed_loop_through_simpy_is_the_native_one_to_the_picosecond(algorithm):
    platform = pmsim.load_platform(PLATFORM)
    parameters = LOG | {"algorithm": algorithm}
    native = _native.simulate("log", [platform.native()], parameters, 9)[0]
    env = des.Environment()
    server = des.Server.of_workload(env, "log", parameters, platform=PLATFORM, workers=1, seed=9)
    log = []
    closed_loop(server, 12_000, log)
    env.run()
    # 2,000 of warm-up; the last of these retires when its end counts already, the very last one after the run.
    latencies = sorted(end - begin for end, _, begin, _ in log[1_999:11_999])
    assert native["latency"]["count"] == len(latencies)
    assert native["latency"]["mean_ps"] == sum(latencies) / len(latencies)
    assert native["latency"]["max_ps"] == latencies[-1]


def test_many_workers_through_simpy_complete_as_in_a_plain_loop_over_the_core():
    platform = pmsim.load_platform(PLATFORM).native()
    parameters = LOG | {"threads": 5}
    env = des.Environment()
    server = des.Server.of_workload(env, "log", parameters, platform=PLATFORM, workers=5, seed=9)
    through_simpy = []
    closed_loop(server, 300, through_simpy)
    env.process(ticks(env))  # events of somebody else stop the core everywhere
    env.run(until="10 s")

    session = _native.Session.of_workload("log", parameters, platform, workers=5, seed=9)
    plain = []
    left = [300] * 5
    for worker in range(5):
        session.submit(worker, 0, 0, 0, 1, 0)
    # Until the first worker has nothing left to do: from then on a client may go to another one than before.
    while all(left):
        at, due, _ = session.advance(2**62)
        for _, worker, begin, _ in due:
            plain.append((at, worker, begin))
            left[worker] -= 1
            if left[worker]:
                session.submit(worker, 0, 0, 0, 1, at)
    assert len(plain) > 1_000
    # A client stays with its worker only where ties do not swap two of them: clients do not count.
    assert [event[:3] for event in through_simpy[: len(plain)]] == plain


def ticks(env):
    delays = np.random.default_rng(4).integers(1, 3_000_000, 2_000)
    for delay in delays:
        yield env.timeout(delay)


def test_a_completion_is_an_event_at_its_own_time_before_others_of_that_time():
    env = des.Environment()
    server = des.Server(env, [des.ComputePart()], platform=PLATFORM, workers=1)
    cycle = cycle_of(PLATFORM)
    order = []

    def client():
        yield env.timeout(500)
        done = yield server.execute("compute.run", 100 * cycle)
        order.append(("done", env.now))
        assert (done.submitted, done.begin, done.end) == (500, 500, 500 + 100 * cycle)

    def other(at, name):
        yield env.timeout(at)
        order.append((name, env.now))

    env.process(other(500 + 100 * cycle - 1, "before"))
    env.process(other(500 + 100 * cycle + 1, "after"))
    env.process(client())
    env.run()
    assert order == [("before", 499 + 100 * cycle), ("done", 500 + 100 * cycle), ("after", 501 + 100 * cycle)]


def test_two_machines_share_the_clock_exactly():
    """A request that the completion of one machine gives to another begins at that very time."""

    def run(first_seed):
        env = des.Environment()
        one = des.Server(env, [des.LogPart()], platform=PLATFORM, workers=2, seed=first_seed)
        two = des.Server(env, [des.LogPart(algorithm="classic")], platform=PLATFORM, workers=2, seed=2)
        log = []

        def client(number):
            for entry in range(200):
                here = yield one.execute("log.append", entry)
                there = yield two.execute("log.append", entry)
                assert there.submitted == here.end
                assert there.begin >= here.end
                log.append((number, here, there))

        for number in range(3):
            env.process(client(number))
        env.run()
        return log

    log = run(1)
    assert len(log) == 600
    assert log == run(1)


def test_priorities_and_back_pressure_come_from_simpys_resources():
    env = des.Environment()
    pool = simpy.PriorityResource(env, capacity=1)
    server = des.Server(env, [des.ComputePart()], platform=PLATFORM, workers=1, pool=pool)
    order = []

    def client(name, priority):
        yield server.execute("compute.run", 10_000_000, priority=priority)
        order.append(name)

    for name, priority in [("first", 5), ("low", 9), ("middle", 5), ("high", 0)]:
        env.process(client(name, priority))
    env.run(until=1)
    assert (server.busy, server.waiting) == (1, 3)
    env.run()
    assert order == ["first", "high", "middle", "low"]


def test_a_transaction_of_nvm_undo_pays_for_the_calls_of_its_library():
    def latency(**given):
        env = des.Environment()
        server = des.Server(env, [des.EnginePart(engine="nvm-undo", rows=1_000, **given)], platform=PLATFORM)
        log = []

        def client():
            for key in range(50):
                done = yield server.execute("engine.update", key, 1)
                log.append(done.end - done.begin)

        env.process(client())
        env.run()
        return sorted(log)[25]

    begin_range_commit = 3 * 1510 * cycle_of(PLATFORM)
    assert latency() - latency(library_cycles=0) == pytest.approx(begin_range_commit, rel=0.2)


def test_misuse_is_refused_with_the_remedy():
    env = des.Environment()
    with pytest.raises(ConfigError, match=re.escape("parts.log: algorithm")):
        des.Server(env, [("log", {"algorithm": "poplogg"})], platform=PLATFORM)
    with pytest.raises(ConfigError, match="did you mean 'log'"):
        des.Server(env, [("lg", {})], platform=PLATFORM)
    with pytest.raises(ConfigError, match="ssd_capacity: the engine keeps its pages on the SSD"):
        des.Server(env, [des.EnginePart(engine="three-tier")], platform=PLATFORM)
    with pytest.raises(ConfigError, match="hardware threads"):
        des.Server(env, [des.LogPart()], platform=PLATFORM, workers=1_000)
    with pytest.raises(ConfigError, match="it must be workers = 2"):
        des.Server(env, [des.LogPart()], platform=PLATFORM, workers=2, pool=simpy.Resource(env, capacity=3))
    with pytest.raises(ConfigError, match="nobody can be preempted; give a PriorityResource"):
        des.Server(env, [des.LogPart()], platform=PLATFORM, pool=simpy.PreemptiveResource(env, capacity=1))
    with pytest.raises(ConfigError, match=r"pmsim\.des\.Environment"):
        des.Server(simpy.Environment(), [des.LogPart()], platform=PLATFORM)
    server = des.Server(env, [des.LogPart()], platform=PLATFORM)
    with pytest.raises(ConfigError, match=r"log\.append"):
        server.execute("log.apend")
    with pytest.raises(ConfigError, match="PriorityResource"):
        server.execute("log.append", priority=3)
    with pytest.raises(ConfigError, match="crash"):
        server.power_failure()
    server.session.advance(1_000)
    with pytest.raises(SimulationError, match="in the past"):
        server.session.submit(0, 0, 0, 0, 1, 998)


def test_the_parts_of_python_are_those_of_the_core():
    assert tuple(des.PARTS) == tuple(_native.parts())


EXAMPLES = re.findall(
    r"```python\n(.*?)```\n\n```text\n(.*?)```",
    (Path(__file__).parents[1] / "docs" / "des.md").read_text(encoding="utf-8"),
    re.DOTALL,
)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_examples_of_the_guide_print_what_they_say(number, capsys):
    source, expected = EXAMPLES[number]
    exec(compile(source, f"docs/des.md example {number + 1}", "exec"), {"__name__": "example"})
    assert capsys.readouterr().out == expected


def test_the_guide_has_its_examples():
    assert len(EXAMPLES) >= 3
