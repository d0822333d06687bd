"""Popular rows: what Zipf's law asks for, and data that lie where such requests leave them."""

import math
from collections import Counter

import pytest

import pmsim
from pmsim import _native, des
from pmsim.errors import ConfigError

BELOW = 1_000
DRAWS = 100_000
MACHINE = {"base": "tum-6212u", "block_device": "nvme-p4510"}
#: A quarter of the rows fit into DRAM; all lie on the SSD at first.
PART = des.EnginePart(
    engine="ssd-bm",
    rows=20_000,
    row_size=1000,
    dram_capacity="8 MiB",
    pmem_capacity=0,
    ssd_capacity="64 MiB",
    log_device="ssd",
)
READS = des.Ask("engine.read", 3, first="zipf", below=PART.rows, zipf=0.9)
UPDATES = des.Ask("engine.update", 1, first="zipf", below=PART.rows, zipf=0.9)


def server_of(part=PART, **options):
    return des.Server(des.Environment(), [part], platform=MACHINE, workers=2, **options)


def drawn(zipf, *, seed=1, below=BELOW):
    """Return how often each number is drawn, of two kinds of requests."""
    mix = _native.Mix([(1, kind, "zipf", below, 1, 0.0, zipf) for kind in (0, 1)], seed)
    counts = (Counter(), Counter())
    for _ in range(DRAWS):
        kind, first, _ = mix.draw()
        counts[kind][first] += 1
    return counts


@pytest.mark.parametrize("zipf", [0.0, 0.9, 1.0, 1.2])
def test_the_most_popular_numbers_have_their_share(zipf):
    counts = sum(drawn(zipf), Counter())
    assert set(counts) <= set(range(BELOW))
    total = sum(rank**-zipf for rank in range(1, BELOW + 1))
    for rank, (_, count) in enumerate(counts.most_common(2), 1):
        share = rank**-zipf / total
        if zipf == 0:  # whichever comes first of equals
            share = 1 / BELOW
        deviation = math.sqrt(DRAWS * share * (1 - share))
        assert abs(count - DRAWS * share) < 5 * deviation


def test_what_is_read_most_is_written_most_whatever_the_seed():
    hottest = {counts.most_common(1)[0][0] for seed in (1, 2) for counts in drawn(1.0, seed=seed)}
    assert len(hottest) == 1
    # Neighbours in rank are none in the table: a page would hold all that is popular.
    order = [number for number, _ in drawn(1.2)[0].most_common(5)]
    assert max(order) - min(order) > 5


def test_simpy_and_the_core_ask_for_the_same_rows():
    logs = []
    for load_class in (des.Load, des.NativeLoad):
        server = server_of()
        des.warm_up(server, [READS, UPDATES], 1_000)
        load = load_class(server, [des.Tenant("all", des.Poisson(20_000), [READS, UPDATES])], keep_log=True)
        (server.env if load_class is des.Load else load).run(until="20 ms")
        logs.append(load.log)
    assert logs[0] == logs[1]
    assert len(logs[0]) > 100


@pytest.mark.parametrize("odd", [-0.1, 101, float("nan"), True, "1", None])
def test_what_is_no_exponent_is_refused(odd):
    with pytest.raises(ConfigError, match=r"^zipf: .* is no exponent; choose 0 to 100"):
        des.Ask("engine.read", first="zipf", below=1, zipf=odd).native(server_of())


def missed(requests):
    """Return the commands to read from the SSD for a request, after so many requests in no time."""
    server = server_of()
    des.warm_up(server, [READS, UPDATES], requests)
    assert server.env.now == 0
    assert not any(server.counters_at(0).values())
    load = des.NativeLoad(server, [des.Tenant("all", des.ClosedPool(2), [READS, UPDATES])])
    load.run("10 ms")  # a cold one does not become warm meanwhile
    return server.counters_at(load.now)["block_reads"] / load.summary()["count"]


def test_a_warm_server_has_in_dram_what_is_popular():
    cold, warm = missed(0), missed(20_000)
    # A quarter of uniform rows would be there.
    assert 0 < warm < 0.75 < cold <= 1.1


def test_a_server_is_warmed_up_before_anything_else():
    server = server_of()
    load = des.NativeLoad(server, [des.Tenant("all", des.ClosedPool(2), [READS])])
    load.run("1 ms")
    with pytest.raises(ConfigError, match=r"^server: it has served others before; warm up a fresh one"):
        des.warm_up(server, [READS], 10)


def test_the_kind_takes_both():
    shared = ("engine", "rows", "row_size", "dram_capacity", "pmem_capacity", "ssd_capacity", "log_device")
    given = {"service": "engine", "workers": 2, "rate": 5_000, "requests": 2_000, "update_percent": 20}
    given |= {name: getattr(PART, name) for name in shared}
    even, skewed, warm = (
        pmsim.simulate_point("system", MACHINE, given | options)["counter.block_reads"]
        for options in ({"warmup": 20_000}, {"zipf": 1.3}, {"zipf": 1.3, "warmup": 20_000})
    )
    # Three in four of uniform rows are not there; of skewed ones fewer, once they have been asked for.
    assert even == pytest.approx(0.75 * given["requests"], rel=0.1)
    assert warm < 0.8 * skewed
    assert skewed < 0.8 * even
