"""Faults: nothing acknowledged is lost."""

import random
from contextlib import suppress
from typing import get_args

import pytest
import simpy

import pmsim
from pmsim import des
from pmsim.des.parts import PageTechnique
from pmsim.errors import ConfigError
from pmsim.kinds.machine_options import with_options

PLATFORM = {"base": "ucsd-8260", "block_device": "nvme-p4510"}


def crashable(parts, workers=2, seed=1):
    env = des.Environment()
    return des.Server(env, parts, platform=PLATFORM, workers=workers, seed=seed, crash=True)


PARTS = {
    "poplog": des.LogPart(log_size="64 KiB"),
    "classic": des.LogPart(log_size="64 KiB", algorithm="classic", layout="dram-tail"),
    "block": des.BlockLogPart(log_size="256 KiB"),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_ledger_over_random_power_failures_finds_every_acknowledged_entry_once(name):
    """1,000 failures over the three logs, many of them in the middle of a recovery."""
    draw = random.Random(name)
    part = PARTS[name]
    uncertain = survived = 0
    for trial in range(67):
        server = crashable([part], workers=draw.randint(1, 3), seed=trial)
        env = server.env
        acknowledged, unknown = [], []
        numbers = iter(range(10**6))

        def client(server=server, acknowledged=acknowledged, unknown=unknown, numbers=numbers):
            while True:
                number = next(numbers)
                try:
                    yield server.execute(f"{part.name}.append", number)
                    acknowledged.append(number)
                except des.PowerFailureError:
                    unknown.append(number)

        for _ in range(draw.randint(1, 4)):
            env.process(client())
        for failure in range(5):
            length = 60 * des.US if name == "block" else 6 * des.US
            env.run(env.now + draw.randint(1, length))
            ready = server.power_failure(restart_after=draw.randint(0, 1_000), seed=1_000 * trial + failure)
            if failure % 2:
                env.run(env.now + draw.randint(1_000, length))
                ready = server.power_failure(seed=draw.getrandbits(30))  # often in the recovery
            env.run(ready)
            found = server.present()
            assert len(found) == len(set(found)), "an entry is there twice"
            missing = set(acknowledged) - set(found)
            assert not missing, f"trial {trial}, failure {failure}: {sorted(missing)} acknowledged and gone"
            assert set(found) <= set(acknowledged) | set(unknown), "an entry that nobody has sent"
        uncertain += len(unknown)
        survived += len(set(unknown) & set(server.present()))
    assert uncertain > 300
    assert 0 < survived < uncertain, "of what was in flight, some must survive and some not"


@pytest.mark.parametrize("technique", get_args(PageTechnique))
def test_no_page_is_torn_and_no_acknowledged_version_is_lost(technique):
    draw = random.Random(technique)
    torn = 2**64 - 1
    in_flight = 0
    for trial in range(25):
        part = des.PagesPart(technique=technique, page_size=512, pages=4, dirty_lines=3, spare_slots=2)
        server = crashable([part], workers=2, seed=trial)
        env = server.env
        versions = [0] * 4

        def client(server=server, versions=versions):
            while True:
                page = draw.randrange(2)
                try:
                    done = yield server.execute("pages.flush", page)
                except des.PowerFailureError:
                    continue
                versions[2 * done.worker + page] += 1

        env.process(client())
        env.process(client())
        for failure in range(6):
            env.run(env.now + draw.randint(1, 8 * des.US))
            ready = server.power_failure(seed=100 * trial + failure)
            cut_off = 1  # flushes of a page that may have become durable unacknowledged
            if failure % 3 == 2:
                cut_off = 2
                env.run(env.now + draw.randint(1, 4 * des.US))
                ready = server.power_failure(seed=draw.getrandbits(30))  # often in the recovery
            env.run(ready)
            found = server.present()
            assert torn not in found
            for page in range(4):
                assert versions[page] <= found[page] <= versions[page] + cut_off
                in_flight += found[page] > versions[page]
                versions[page] = found[page]
    assert in_flight > 10


@pytest.mark.parametrize("technique", get_args(PageTechnique))
def test_pages_of_a_lost_tier_begin_anew(technique):
    part = des.PagesPart(technique=technique, page_size=512, pages=2, dirty_lines=3, spare_slots=2)
    server = crashable([part], workers=1)
    for _ in range(3):
        server.env.run(server.execute("pages.flush", 1))
    server.env.run(server.power_failure(seed=1))
    assert server.present() == [0, 3]
    server.env.run(server.power_failure(lost="pmem"))
    assert server.present() == [0, 0]
    server.env.run(server.execute("pages.flush", 0))
    server.env.run(server.power_failure(seed=2))
    assert server.present() == [1, 0]


def test_requests_wait_while_the_server_is_down_and_go_on_afterwards():
    server = crashable([des.LogPart(log_size="64 KiB")], workers=1)
    env = server.env
    ends = []

    def client():
        yield env.timeout("12 us")  # the power is off
        done = yield server.execute("log.append", 0)
        ends.append(done)

    def fault():
        yield env.timeout("10 us")
        return (yield server.power_failure(restart_after="5 us", seed=1))

    env.process(client())
    recovery = env.run(env.process(fault()))
    env.run()
    assert recovery.failed == 10 * des.US
    assert recovery.restarted == 15 * des.US
    assert recovery.ready > recovery.restarted
    assert ends[0].granted == recovery.ready
    assert ends[0].submitted == 12 * des.US


def test_a_lost_tier_takes_its_log_with_it_and_the_other_one_is_whole():
    server = crashable([des.LogPart(log_size="64 KiB"), des.BlockLogPart(log_size="64 KiB")], workers=1)
    env = server.env

    def both():
        for number in range(20):
            yield server.execute("log.append", number)
            yield server.execute("block-log.append", number)

    env.run(env.process(both()))
    assert server.present() == list(range(20))  # the ledger is that of the first part: the log in PMem
    env.run(server.power_failure(lost="block"))
    assert server.present() == list(range(20))
    env.run(server.power_failure(lost="pmem"))
    assert server.present() == []
    env.run(server.execute("log.append", 7))
    assert server.present() == [7]


@pytest.mark.parametrize(
    ("part", "kind", "device"),
    [
        (des.PagesPart(technique="cow", pages=64), "pages.flush", "pmem"),
        (des.BlockLogPart(), "block-log.append", "block"),
    ],
)
def test_slow_devices_and_pauses_show_in_latency_and_pass(part, kind, device):
    env = des.Environment()
    machine = pmsim.load_platform(PLATFORM)
    machine = with_options(machine, dimms=1)  # so that one worker can feel the medium
    server = des.Server(env, [part], platform=machine, workers=1)
    latencies = {}

    def run():
        for phase in ("warm", "before", "slow", "pause", "after"):
            if phase == "slow":
                server.slow_down(device, 400)
            elif phase == "pause":
                server.slow_down(device, 100)
                server.stall(device, "2 ms")
            latencies[phase] = []
            for number in range(40):
                done = yield server.execute(kind, number)
                latencies[phase].append(done.end - done.granted)
            if phase in ("slow", "pause"):
                yield env.timeout("10 ms")

    env.run(env.process(run()))
    mean = {phase: sum(values) / len(values) for phase, values in latencies.items()}
    assert mean["slow"] > 1.5 * mean["before"]
    assert max(latencies["pause"]) > 1.5 * des.MS
    assert mean["after"] == pytest.approx(mean["before"], rel=0.2)
    with pytest.raises(ConfigError, match="choose pmem or block"):
        server.stall("dram", 1)


ALL_IN_MEMORY = {"pmem_capacity": "1 MiB", "dram_capacity": "1 MiB"}
#: 60 rows of 1,000 B are some 24 pages: more than the DRAM, and where there is an SSD than the PMem.
BUFFERED = {"row_size": 1_000, "dram_capacity": "48 KiB"}
THREE_TIERS = {"pmem_capacity": "64 KiB", "ssd_capacity": "1 MiB"}
OVER_SSD = {"pmem_capacity": 0, "ssd_capacity": "1 MiB"}
ENGINES = {
    "nvm-direct": {"row_size": 64, **ALL_IN_MEMORY},
    "nvm-undo": {"row_size": 64, **ALL_IN_MEMORY},
    "fptree": {"row_size": 8, **ALL_IN_MEMORY},
    "main-memory": {"row_size": 64, **ALL_IN_MEMORY},
    "basic-nvm-bm": BUFFERED | {"pmem_capacity": "1 MiB"},
    "file-bm": BUFFERED | {"pmem_capacity": "1 MiB"},
    "redirect-bm": BUFFERED | {"pmem_capacity": "1 MiB"},
    "three-tier": BUFFERED | THREE_TIERS,
    "spitfire": BUFFERED | THREE_TIERS,
    "ssd-bm": BUFFERED | OVER_SSD,
    "ssd-bm, in groups": BUFFERED | OVER_SSD | {"engine": "ssd-bm", "log_device": "ssd", "commits": "group"},
}
#: Longest time between two failures: some dozens of transactions, a restart at most.
SPANS = {"three-tier": 1_000, "spitfire": 1_000, "ssd-bm": 10_000, "ssd-bm, in groups": 10_000}
#: Engines whose transactions are seldom durable before somebody has been told: more failures have to be tried.
FEW_SURVIVE = ("main-memory", "nvm-direct", "nvm-undo", "spitfire")
#: Rows that a transaction of the ledger updates, and of which table.
ROWS_PER_TRANSACTION, ROWS = 3, 60


def keys_of(first):
    """The rows of a transaction, as the part scatters them (SplitMix64)."""
    mask = 2**64 - 1

    def mix(value):
        value = (value + 0x9E3779B97F4A7C15) & mask
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
        return value ^ (value >> 31)

    return [first % ROWS, *(mix((first * 64 + number) & mask) % ROWS for number in range(1, 3))]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_ledger_over_random_power_failures_finds_every_acknowledged_transaction_whole(engine, workers):
    """Thousands of failures over the engines.

    Two workers that become free at one time begin their next requests at one time; then the one with the
    smaller number is executed first, whichever request is older. So what counts is the order of
    acknowledgement, which is that of execution, and not that of the requests' numbers.
    """
    draw = random.Random(f"{engine} {workers}")
    span = SPANS.get(engine, 60) * des.US
    sizes = {"engine": engine, "rows": ROWS, "page_size": "4 KiB", "log_size": "128 KiB"}
    sizes |= ENGINES[engine] | {"cpu_cycles": 0, "transaction_cycles": 0}  # more failures find work half done
    in_flight = survived = 0
    # More for two workers with latches, too, whose locked instructions order what a transaction has written.
    for trial in range(75 if workers == 2 or engine in FEW_SURVIVE else 25):
        part = des.EnginePart(latches="none" if trial % 2 else "optimistic", **sizes)
        server = crashable([part], workers=workers, seed=trial)
        env = server.env
        known = {}  # keys of each transaction, in the order of acknowledgement or failure
        acknowledged = set()

        def client(server=server, known=known, acknowledged=acknowledged):
            while True:
                first = draw.getrandbits(20)
                if first % 16 == 0:
                    with suppress(des.PowerFailureError):  # what it writes back and truncates may be cut off
                        yield server.execute("engine.checkpoint")
                    continue
                asked = server.execute("engine.update", first, ROWS_PER_TRANSACTION)
                try:
                    done = yield asked
                    assert done.result == ROWS_PER_TRANSACTION
                    known[asked.number] = keys_of(first)
                    acknowledged.add(asked.number)
                except des.PowerFailureError:
                    if asked.granted < des.NEVER:
                        known[asked.number] = keys_of(first)

        for _ in range(workers + 1):
            env.process(client())
        for failure in range(4):
            env.run(env.now + draw.randint(1, span))
            ready = server.power_failure(seed=1_000 * trial + failure)
            if failure % 2:
                env.run(env.now + draw.randint(1, span // 2))
                ready = server.power_failure(seed=draw.getrandbits(30))
            env.run(ready)
            marks = server.present()
            numbers = [mark - 1 for mark in marks]  # of the transaction that wrote the row; -1: none
            order = {-1: -1} | {number: rank for rank, number in enumerate(known)}
            latest = dict.fromkeys(range(ROWS), -1)
            for number in known:
                if number in acknowledged:
                    latest |= dict.fromkeys(known[number], number)
            for key, number in enumerate(numbers):
                assert order[number] >= order[latest[key]], f"trial {trial}: row {key} has lost {latest[key]}"
                if number >= 0:
                    assert key in known[number]
                    # Whole: its other rows have it, or what came later.
                    assert all(order[numbers[other]] >= order[number] for other in known[number])
        unknown = set(known) - acknowledged
        in_flight += len(unknown)
        survived += len(unknown & set(numbers))
    assert in_flight > 30  # of at least 100 failures; others meet a checkpoint, which of main-memory is long
    assert survived > 0


def replicated(synchronous):
    env = des.Environment()
    primary, second = (
        des.Server(env, [des.LogPart(log_size="64 KiB")], platform=PLATFORM, seed=seed, crash=True)
        for seed in (1, 2)
    )
    standby = des.HotStandby(primary.main, second.main, network="5 us", synchronous=synchronous)
    acknowledged = {}

    def client():
        for number in range(1_000):
            began = env.now
            try:
                yield standby.append(number)
            except des.PowerFailureError:
                return
            acknowledged[number] = env.now - began

    env.process(client())
    env.run("100 us")
    primary.power_failure(restart_after="1 s", seed=1, lost="pmem")  # it takes its log with it
    return acknowledged, second, env


def test_a_synchronous_standby_has_every_acknowledged_entry_when_the_primary_is_gone():
    acknowledged, second, env = replicated(synchronous=True)
    assert len(acknowledged) > 5
    assert min(acknowledged.values()) > 10 * des.US  # there and back
    env.run("200 us")
    assert set(acknowledged) <= set(second.present())


def test_an_asynchronous_standby_answers_sooner_and_follows():
    acknowledged, second, env = replicated(synchronous=False)
    assert min(acknowledged.values()) < 2 * des.US
    # Function first: an entry that is on its way has not been executed there.
    assert not set(acknowledged) <= set(second.present())
    env.run("200 us")
    assert set(acknowledged) <= set(second.present())


def test_a_standby_on_the_same_machine_is_refused():
    env = des.Environment()
    server = des.Server(env, [des.LogPart()], platform=PLATFORM, workers={"one": 1, "two": 1})
    with pytest.raises(ConfigError, match="second server"):
        des.HotStandby(server["one"], server["two"], network="1 us")


@pytest.mark.parametrize("pooled", [False, True])
def test_what_ends_at_the_instant_of_a_power_failure_has_been_acknowledged(pooled):
    """Transactions of one engine often end together; here one of them takes the power away."""
    env = des.Environment()
    pool = simpy.Resource(env, capacity=4) if pooled else None
    part = des.EnginePart(engine="nvm-direct", rows=200, row_size=64, **ALL_IN_MEMORY)
    server = des.Server(env, [part], platform=PLATFORM, workers=4, crash=True, pool=pool)
    asked = answered = lost = beside = 0
    failed_at = -1

    def client(number):
        nonlocal asked, answered, lost, beside, failed_at
        for turn in range(240):
            asked += 1
            try:
                yield server.execute("engine.read" if turn % 2 else "engine.update", (7 * turn + number) % 200)
            except des.PowerFailureError:
                lost += 1
                continue
            answered += 1
            beside += env.now == failed_at
            if turn % 10 == 5 and number == turn // 10 % 4 and env.now != failed_at:
                failed_at = env.now
                server.power_failure(restart_after="1 us", seed=turn)

    for number in range(4):
        env.process(client(number))
    env.run()
    assert asked == answered + lost == 960
    assert beside > 1, "some end at the instant of a failure, behind the one that makes it"
    assert (server.busy, server.waiting) == (0, 0)


def test_a_failure_at_the_instant_at_which_the_server_is_ready_again_takes_it_down_again():
    """Another machine's answer, which comes first at that instant, takes the power away."""
    lone = crashable([PARTS["poplog"]])
    ready = lone.env.run(lone.power_failure(restart_after="1 us")).ready
    lone = crashable([PARTS["poplog"]])
    length = lone.env.run(lone.execute("log.append", 0)).latency

    env = des.Environment()
    other = des.Server(env, [PARTS["poplog"]], platform=PLATFORM, workers=2)
    server = des.Server(env, [PARTS["poplog"]], platform=PLATFORM, workers=2, crash=True)
    first = server.power_failure(restart_after="1 us")
    second = []

    def client():
        yield env.timeout(ready - length)
        yield other.execute("log.append", 0)
        assert env.now == ready
        assert first.triggered
        assert not first.processed
        second.append(server.power_failure(restart_after="2 us"))
        yield server.execute("log.append", 1)

    env.run(env.process(client()))
    assert first.value.ready == ready
    assert second[0].value.restarted == ready + 2 * des.US


def test_requests_that_nobody_waits_for_do_not_end_the_run_with_the_power():
    server = crashable([PARTS["poplog"]], workers=1)
    env = server.env
    heard = []

    def arrivals():
        for number in range(100):
            yield env.timeout("100 ns")
            request = server.execute("log.append", number)
            if number % 4 == 1:
                env.process(impatient(request))
            elif number % 4 == 2:
                env.process(late(request))

    def impatient(request):
        yield request | env.timeout("50 ns")

    def late(request):
        yield env.timeout("6 us")
        try:
            yield request
        except des.PowerFailureError:
            heard.append(env.now)

    env.process(arrivals())
    env.run("5050 ns")
    recovery = server.power_failure(restart_after="1 us")
    env.run("1 ms")
    assert recovery.value.lost > 20
    assert 5 < len(heard) <= recovery.value.lost, "who asks afterwards is told"
    request = server.execute("log.append")
    server.power_failure()
    with pytest.raises(des.PowerFailureError):
        env.run(request)


def test_a_failure_during_a_recovery_belongs_to_the_same_outage():
    server = crashable([PARTS["poplog"]], workers=1)
    env = server.env
    log, cut_off = [], []

    def client():
        while True:
            try:
                yield server.execute("log.append")
            except des.PowerFailureError:
                cut_off.append(env.now)

    for _ in range(3):
        env.process(client())
    times = ["10 us", "15 us", "1 ms"]
    env.process(des.power_failures(server, at=times, restart_after="10 us", log=log))
    env.run("2 ms")
    assert [(found.failed, found.restarted, found.lost) for found in log] == [
        (10 * des.US, 25 * des.US, 6),
        (des.MS, des.MS + 10 * des.US, 3),
    ]
    assert all(found.restarted < found.ready < found.restarted + des.MS for found in log)
    assert cut_off == [10 * des.US] * 3 + [15 * des.US] * 3 + [des.MS] * 3


def test_who_waits_for_several_requests_at_once_hears_of_a_power_failure_once():
    server = crashable([PARTS["poplog"]], workers=3)
    env, told = server.env, []

    def client():
        try:
            yield env.all_of([server.execute("log.append", number) for number in range(3)])
        except des.PowerFailureError:
            told.append(env.now)
            yield server.execute("log.append", 7)

    client_ends = env.process(client())
    env.run("100 ns")
    server.power_failure()
    env.run(client_ends)
    assert told == [100_000]
