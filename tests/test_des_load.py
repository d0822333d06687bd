"""Loads: queueing theory, the same results in SimPy and in the core, and the same bytes for the same seed."""

import math
import subprocess
import sys

import pytest

from pmsim import _native, des
from pmsim.errors import ConfigError

PLATFORM = "ucsd-8260"
SERVICE = 10 * des.US
LOG = des.LogPart(log_size="1 MiB")


def server_of(parts=(LOG,), workers=1, seed=3, **how):
    env = des.Environment()
    return des.Server(env, list(parts), platform=PLATFORM, workers=workers, seed=seed, **how)


def queue(arrivals, mix, *, workers=1, requests=1_000_000, rate):
    """Serve about so many requests natively, a tenth of them as warm-up."""
    load = des.NativeLoad(
        server_of([des.ComputePart()], workers=workers), [des.Tenant("all", arrivals, mix, "1 s")], seed=11
    )
    length = round(requests / rate * des.S)
    load.run(length // 10)
    load.restart_statistics()
    load.run(length)
    return load.summary()


def erlang_c(servers, offered):
    """Probability of waiting in M/M/c."""
    top = offered**servers / math.factorial(servers) * servers / (servers - offered)
    return top / (sum(offered**k / math.factorial(k) for k in range(servers)) + top)


EXPONENTIAL = [des.Ask("compute.run", mean=SERVICE)]
FIXED = [des.Ask("compute.run", first=SERVICE)]


def test_poisson_arrivals_and_exponential_service_wait_as_in_m_m_1():
    rate = 0.7 * des.S / SERVICE
    found = queue(des.Poisson(rate), EXPONENTIAL, rate=rate)
    assert found["waited_ps"] == pytest.approx(0.7 / (1 - 0.7) * SERVICE, rel=0.02)
    assert found["mean_ps"] == pytest.approx(SERVICE / (1 - 0.7), rel=0.02)


def test_poisson_arrivals_and_fixed_service_wait_as_in_m_d_1():
    rate = 0.8 * des.S / SERVICE
    found = queue(des.Poisson(rate), FIXED, rate=rate)
    assert found["waited_ps"] == pytest.approx(0.8 / (2 * (1 - 0.8)) * SERVICE, rel=0.02)


@pytest.mark.parametrize("workers", [2, 4, 8])
def test_several_workers_wait_as_in_m_m_c(workers):
    offered = 0.8 * workers
    rate = offered * des.S / SERVICE
    found = queue(des.Poisson(rate), EXPONENTIAL, workers=workers, rate=rate)
    expected = erlang_c(workers, offered) * SERVICE / (workers - offered)
    assert found["waited_ps"] == pytest.approx(expected, rel=0.02)


def test_littles_law_holds_for_a_real_log_under_bursts():
    """The time average of requests in the system is counted on its own, not from the latencies."""
    load = des.NativeLoad(
        server_of(workers=2),
        [des.Tenant("all", des.Bursty(4e6, "50 us", "100 us"), [des.Ask("log.append")], "1 ms")],
    )
    load.run("300 ms")
    found = load.summary()
    rate = found["count"] / found["elapsed_ps"]
    assert found["count"] > 100_000
    assert found["waited_ps"] > 100_000  # there was a queue
    assert found["mean_in_system"] == pytest.approx(rate * found["mean_ps"], rel=0.02)


@pytest.mark.parametrize("load_class", [des.Load, des.NativeLoad])
@pytest.mark.parametrize(
    "arrivals",
    [
        des.Poisson(rate=1e-6),
        des.Bursty(rate=1, on="1 us", off="3600 s"),
        des.Bursty(rate=1, on="1 ms", off="3600 s"),
        des.Bursty(rate=1e-3, on="1 us", off="1 us"),
        des.ClosedPool(clients=50, think="1e18 ps"),
    ],
)
def test_requests_that_are_days_away_do_not_come(load_class, arrivals):
    """Times beyond 2^63 ps had wrapped, to before the begin of the run, or took seconds to draw."""
    server = server_of()
    load = load_class(server, [des.Tenant("all", arrivals, [des.Ask("log.append")], "1 s")], seed=1)
    (server.env if load_class is des.Load else load).run(until="1 s")
    assert load.summary()["count"] <= 1


def test_a_closed_pool_obeys_the_response_time_law():
    """N = X (R + Z)."""
    clients, think = 6, 5 * des.US
    load = des.NativeLoad(
        server_of(workers=2), [des.Tenant("all", des.ClosedPool(clients, think), [des.Ask("log.append")])]
    )
    load.run("200 ms")
    found = load.summary()
    rate = found["count"] / found["elapsed_ps"]
    assert clients == pytest.approx(rate * (found["mean_ps"] + think), rel=0.02)


LOADS = {
    "poisson": ([des.Tenant("a", des.Poisson(1.8e6), [des.Ask("log.append")])], 2),
    "overload": ([des.Tenant("a", des.Poisson(20e6), [des.Ask("log.append")])], 2),
    "bursty": ([des.Tenant("a", des.Bursty(6e6, "20 us", "20 us"), [des.Ask("log.append", count=3)])], 3),
    "closed": ([des.Tenant("a", des.ClosedPool(7, "2 us"), [des.Ask("log.append")])], 3),
    "closed, nobody thinks": ([des.Tenant("a", des.ClosedPool(5), [des.Ask("log.append")])], 4),
    "ties everywhere": (
        [
            des.Tenant("a", des.Paced("1 us"), [des.Ask("compute.run", first=2_000_000)]),
            des.Tenant("b", des.Paced("1 us"), [des.Ask("compute.run", first=1_000_000)]),
            des.Tenant("c", des.ClosedPool(3, "1 us", exponential=False), [des.Ask("compute.run", first=10)]),
        ],
        2,
    ),
    "all at once": (
        [des.Tenant("a", des.TraceDriven([5] * 9 + [6] * 9 + [10**6] * 9), [des.Ask("log.append")])],
        4,
    ),
    "two tenants": (
        [
            des.Tenant("a", des.Poisson(1e6), [des.Ask("log.append", 3), des.Ask("table.lookup", 2)]),
            des.Tenant(
                "b",
                des.ClosedPool(3, "4 us"),
                [des.Ask("table.scan", first="uniform", below=1000, count=50)],
            ),
        ],
        3,
    ),
}


@pytest.mark.parametrize("name", LOADS)
def test_simpy_and_the_core_serve_a_load_identically(name):
    tenants, workers = LOADS[name]
    parts = [LOG, des.TablePart(rows=10_000), des.ComputePart()]
    through_simpy = des.Load(server_of(parts, workers), tenants, seed=5, keep_log=True)
    through_simpy.env.run("400 us")
    native = des.NativeLoad(server_of(parts, workers), tenants, seed=5, keep_log=True)
    native.run("123456789 ps")  # in two pieces
    native.run("400 us")
    assert len(native.log) > 20
    assert through_simpy.log == native.log
    for index in range(len(tenants)):
        assert through_simpy.summary(index) == native.summary(index)
        assert through_simpy.windows(index).equals(native.windows(index))


RUN = """
import hashlib
from pmsim import des
env = des.Environment()
server = des.Server(env, [des.LogPart(log_size="256 KiB")], platform="ucsd-8260", workers=3, seed=2, crash=True)
load = des.Load(server, [des.Tenant("a", des.Bursty(3e6, "10 us", "10 us"), [des.Ask("log.append")])],
                seed={seed}, keep_log=True)
env.process(des.power_failures(server, at=["60 us"], restart_after="10 us", seed=4))
env.run("3 ms")
print(hashlib.sha256(repr(load.log).encode()).hexdigest(), len(load.log), load.summary()["failed"])
"""


def test_the_same_seed_gives_the_same_event_log_in_another_process_byte_for_byte():
    def run(seed):
        source = RUN.format(seed=seed)
        done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
        return done.stdout

    assert run(7) == run(7)
    assert run(7) != run(8)
    assert int(run(7).split()[1]) > 1_000


def test_statistics_stay_bounded_and_keep_their_sums():
    recorder = _native.Recorder(1_000)
    for at in range(0, 3_000_000, 500):
        recorder.submitted(at)
        recorder.completed(at, at, at + 100)
    windows = recorder.windows(3_000_000)
    assert len(windows) <= 512
    assert sum(window["count"] for window in windows) == recorder.summary(3_000_000)["count"] == 6_000
    assert windows[0]["window_ps"] == 8_000
    assert [window["begin_ps"] for window in windows[:3]] == [0, 8_000, 16_000]


def test_waits_of_a_long_queue_add_up_to_more_than_a_picosecond_counter_holds():
    recorder, requests, end = _native.Recorder(10**16), 10_000, 10**15
    for _ in range(requests):
        recorder.submitted(0)
    for _ in range(requests):
        recorder.completed(0, end, end)
    found = recorder.summary(end)
    assert found["mean_ps"] == found["waited_ps"] == end
    assert recorder.latencies(end)[2].tolist() == [requests * end]


def test_windows_in_which_nothing_ends_are_there_at_the_end_as_they_are_in_between():
    recorder = _native.Recorder(1_000)
    assert recorder.windows(0) == []
    for at in (100, 2_100):
        recorder.submitted(at)
        recorder.completed(at, at, at + 50)
    assert [window["count"] for window in recorder.windows(3_000)] == [1, 0, 1]
    assert [window["count"] for window in recorder.windows(5_001)] == [1, 0, 1, 0, 0, 0]


def test_loads_that_cannot_be_are_refused():
    server = server_of()
    tenant = des.Tenant("a", des.Poisson(1e6), [des.Ask("log.append")])
    with pytest.raises(ConfigError, match="name of its own"):
        des.Load(server, [tenant, tenant])
    with pytest.raises(ConfigError, match="rate"):
        des.Load(server, [des.Tenant("a", des.Poisson(0), [des.Ask("log.append")])])
    with pytest.raises(ConfigError, match="ascend"):
        des.Load(server, [des.Tenant("a", des.TraceDriven([3, 2]), [des.Ask("log.append")])])
    with pytest.raises(ConfigError, match=r"log\.append"):
        des.Load(server, [des.Tenant("a", des.Poisson(1e6), [des.Ask("log.apend")])])
    with pytest.raises(ConfigError, match="mix"):
        des.Load(server, [des.Tenant("a", des.Poisson(1e6), [])])
    env = des.Environment()
    grouped = des.Server(env, [LOG], platform=PLATFORM, workers={"clients": 1, "writers": 1})
    with pytest.raises(ConfigError, match="one group"):
        des.NativeLoad(grouped, [tenant])


@pytest.mark.parametrize("engine", ["nvm-direct", "main-memory", "basic-nvm-bm"])
def test_a_short_transaction_does_not_wait_for_a_long_one_of_another_worker(engine):
    """An engine's workers had been free again in the order in which they began, where no power fails, too."""
    server = server_of([des.EnginePart(engine=engine, rows=50_000)], workers=2)
    ended = {}

    def client(kind, first, count, after):
        yield server.env.timeout(after)
        ended[kind] = yield server.execute(kind, first, count)

    server.env.process(client("engine.scan", 0, 5_000, 0))
    server.env.process(client("engine.read", 40_000, 1, "100 ns"))
    server.env.run()
    assert ended["engine.scan"].begin < ended["engine.read"].begin < ended["engine.read"].end
    assert ended["engine.read"].latency < ended["engine.scan"].latency / 10


def test_workers_that_never_meet_serve_so_many_times_as_many_transactions():
    def served(workers):
        part = des.EnginePart(engine="nvm-direct", rows=50_000, latches="none")
        server = server_of([part], workers=workers)
        mix = [des.Ask("engine.read", first="uniform", below=50_000)]
        des.warm_up(server, mix, 20_000 * workers)
        load = des.NativeLoad(server, [des.Tenant("all", des.ClosedPool(workers), mix)], seed=2)
        load.run("5 ms")
        return load.summary()["count"]

    assert served(4) == pytest.approx(4 * served(1), rel=0.05)


def test_counters_of_a_time_that_the_machine_is_beyond_are_one_clear_line():
    """A native load has a clock of its own, of which SimPy knows nothing."""
    server = server_of([des.TablePart(rows=1_000)], workers=1)
    load = des.NativeLoad(
        server, [des.Tenant("all", des.ClosedPool(1), [des.Ask("table.lookup", below=1_000)])]
    )
    load.run("10 us")
    with pytest.raises(ConfigError, match=r"^counters: at 0 ps, and the machine has acted up to \d+ ps; name"):
        server.counters()
    assert server.counters_at(load.now)["loads"] > 0


def test_workers_find_in_the_caches_what_others_have_read():
    """Each had read the table from memory for itself, and two workers that scan it were slower than one."""
    rows, lines_of_row = 8_000, 4  # two megabytes: more than L2, and the last-level cache holds it

    def scanned(workers):
        server = server_of([des.TablePart(rows=rows, row_size=64 * lines_of_row)], workers=workers)
        mix = [des.Ask("table.scan", first="uniform", below=rows, count=100)]
        load = des.NativeLoad(server, [des.Tenant("all", des.ClosedPool(workers), mix)], seed=2)
        load.run("1 ms")
        return load.summary()["count"], server.counters_at(load.now)["pmem_read_lines"]

    (one, _), (two, _), (four, read) = map(scanned, (1, 2, 4))
    assert read <= rows * lines_of_row  # each once; this machine prefetches nothing
    assert one < two < four


def test_the_saturation_that_a_power_failure_is_in_percent_of_is_that_of_the_server_that_fails():
    """Servers that can be crashed acknowledge in order; a search has no use for their second memory."""

    def found(**how):
        server = server_of([des.EnginePart(rows=50_000)], workers=4, **how)
        mix = [
            des.Ask("engine.read", 1, first="uniform", below=50_000),
            des.Ask("engine.update", 1, below=50_000),
        ]
        load = des.NativeLoad(server, [des.Tenant("all", des.ClosedPool(8), mix)], seed=2)
        load.run("1 ms")
        return load.summary()

    assert found(in_order=True) == found(crash=True)
    assert found(in_order=True)["count"] < found()["count"]
