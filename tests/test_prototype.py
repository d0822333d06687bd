"""Programs in Python on simulated memory: the crash checker tells right from wrong, and traces time them."""

import pytest

import pmsim
from pmsim import _native
from pmsim.prototype import LATER, Memory, Prototype, check, record
from pmsim.prototype.memory import Points
from pmsim.prototype.record import further

LINE = 64


class Pair(Prototype):
    """Sixteen bytes that change together, by copy on write."""

    def create(self, memory):
        self.base = memory.allocate("pmem", 3 * LINE, "pair")  # which copy counts, and two copies
        self.current = 0

    def run(self, memory, value):
        other = 1 - self.current
        memory.write(self.copy(other), value)
        memory.persist(self.copy(other), 16, "copy")
        memory.store(self.base, other)
        memory.persist(self.base, 8, "choice")
        self.current = other

    def recover(self, memory):
        self.base = memory.region("pair")
        self.current = memory.load(self.base)
        return memory.read(self.copy(self.current), 16)

    def expected(self, done):
        return done[-1] if done else bytes(16)

    def draw(self, random):
        return random.randbytes(16)

    def copy(self, number):
        return self.base + LINE * (1 + number)


ONE_PAIR = Pair()


class WithoutFence(Pair):
    def run(self, memory, value):
        other = 1 - self.current
        memory.write(self.copy(other), value)
        memory.flush(self.copy(other), 16)
        memory.store(self.base, other)
        memory.persist(self.base, 8)
        self.current = other


class Unacknowledged(Pair):
    """Durable only when the next operation fences."""

    def run(self, memory, value):
        other = 1 - self.current
        memory.write(self.copy(other), value)
        memory.persist(self.copy(other), 16)
        memory.store(self.base, other)
        memory.flush(self.base, 8)
        self.current = other


class ForgetsItsChoice(Pair):
    """What it returns is right, what it goes on with is not."""

    def recover(self, memory):
        found = super().recover(memory)
        self.current = 0
        return found


class KeepsTheAddress(Pair):
    """Recovery has no attribute of the object that ran."""

    def recover(self, memory):
        return memory.read(self.copy(memory.load(self.base)), 16)


class CannotGoOn(Pair):
    def recover(self, memory):
        found = super().recover(memory)
        if any(found):
            del self.current
        return found


class Counter(Prototype):
    """A word whose recovery counts restarts in another one, of which nobody is told."""

    def create(self, memory):
        self.base = memory.allocate("pmem", LINE, "counter")
        self.formatted(memory)

    def formatted(self, memory):
        memory.store(self.base + 8, 1)
        memory.persist(self.base + 8, 8, "formatted")

    def run(self, memory, operation):
        memory.store(self.base, memory.load(self.base) + 1)
        memory.persist(self.base, 8, "count")

    def recover(self, memory):
        self.base = memory.region("counter")
        return memory.load(self.base) if memory.load(self.base + 8) else None

    def expected(self, done):
        return len(done)

    def draw(self, random):
        return "count"


class CountsRestarts(Counter):
    def recover(self, memory):
        count = super().recover(memory)
        if count is not None:
            memory.store(self.base, count + 1)
            memory.persist(self.base, 8, "restart")
        return count


def test_a_right_program_keeps_its_promise_and_needs_each_of_its_points():
    result = check(Pair)
    assert result.ok
    assert result.block.title == "Sixteen bytes that change together, by copy on write."
    assert [mutant.point.name for mutant in result.mutants] == [
        "copy: clwb",
        "copy: sfence",
        "choice: clwb",
        "choice: sfence",
    ]
    assert result.score == 1
    assert result.check.states >= 10_000
    assert result.check.resumed_crashes > 0


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (WithoutFence, "promised is"),
        (Unacknowledged, "promised is"),
        (ForgetsItsChoice, "promised is"),
        (KeepsTheAddress, "recover() raised AttributeError: 'KeepsTheAddress' object has no attribute 'base'"),
        (CannotGoOn, "after a recovery, raised AttributeError"),
        (CountsRestarts, "promised is"),
    ],
)
def test_a_wrong_program_is_found_out(wrong, why):
    violation = check(wrong).check.violation
    assert violation is not None
    assert why in violation.message
    assert violation.message in violation.counterexample


def test_a_counterexample_names_regions_points_and_operations():
    told = check(WithoutFence).check.violation.counterexample
    assert "pair+0x80, 16 bytes" in told
    assert "WithoutFence.run, line " in told
    assert "of test_prototype.py: clwb" in told
    assert "b'" in told  # the operation


def test_recovery_has_the_points_of_its_own_and_a_crash_may_leave_nothing_created():
    result = check(Counter)
    assert result.ok
    assert result.check.recovery_crashes == 0  # it stores nothing


class GroupedLog(Prototype):
    """Entries of one line, three for a fence."""

    room = 64
    group = 3

    def create(self, memory):
        self.base = memory.allocate("pmem", self.room * LINE, "log")
        self.next = 0

    def run(self, memory, entry):
        memory.stream(self.base + LINE * self.next, entry.to_bytes(8, "little"))
        self.next += 1
        if self.next % self.group:
            return LATER
        memory.sfence("group")
        return True

    def recover(self, memory):
        self.base = memory.region("log")
        found = []
        while len(found) < self.room and (entry := memory.load(self.base + LINE * len(found))):
            found.append(entry)
        for behind in range(len(found), self.room):  # of a group that was cut short
            if memory.load(self.base + LINE * behind):
                memory.stream(self.base + LINE * behind, bytes(8))
        memory.sfence("clean")
        self.next = len(found)
        return found

    def expected(self, done):
        return list(done)

    def draw(self, random):
        return random.randrange(1, 2**63)


class AcknowledgedEarly(GroupedLog):
    def run(self, memory, entry):
        super().run(memory, entry)


class LeavesTheRest(GroupedLog):
    """Entries behind the first that is missing come back once that has been written."""

    def recover(self, memory):
        self.base = memory.region("log")
        found = []
        while len(found) < self.room and (entry := memory.load(self.base + LINE * len(found))):
            found.append(entry)
        self.next = len(found)
        return found


class Switch(Counter):
    """Counts up; an operation that is never drawn forgets to flush."""

    def run(self, memory, operation):
        count = memory.load(self.base) + 1
        memory.store(self.base, count)
        if operation != "seldom":
            memory.flush(self.base, 8)
        memory.sfence()


def test_programs_of_ones_own_do_what_random_ones_would_not():
    assert check(Switch, states=500).check.violation is None
    seldom = [["count"], ["count", "seldom", "count"]]
    violation = check(Switch, states=500, programs=seldom).check.violation
    assert "seldom" in violation.counterexample
    assert check(Switch, states=500, programs=[["count"] * 3]).check.violation is None


def test_operations_may_be_acknowledged_in_groups():
    result = check(GroupedLog, states=2000)
    assert result.ok
    assert [mutant.point.name for mutant in result.mutants if mutant.caught] == [
        "group: sfence",
        "clean: sfence",
    ]
    for wrong in (AcknowledgedEarly, LeavesTheRest):
        assert "promised is" in check(wrong, states=2000).check.violation.message


class Redo(Counter):
    """Two words that are equal; recovery makes them so."""

    def run(self, memory, operation):
        count = memory.load(self.base) + 1
        memory.store(self.base, count)
        memory.persist(self.base, 8, "first")
        memory.store(self.base + LINE, count)
        memory.persist(self.base + LINE, 8, "second")

    def create(self, memory):
        self.base = memory.allocate("pmem", 2 * LINE, "counter")
        self.formatted(memory)

    def recover(self, memory):
        count = super().recover(memory)
        if count is not None and memory.load(self.base + LINE) != count:
            memory.store(self.base + LINE, count)
            memory.persist(self.base + LINE, 8, "repair")
        return None if count is None else (count, memory.load(self.base + LINE))

    def expected(self, done):
        return len(done), len(done)


def test_what_a_crash_cannot_tell_has_to_be_declared():
    result = check(Redo, states=2000)
    assert result.check.recovery_crashes > 0
    survivors = [mutant.point.name for mutant in result.mutants if not mutant.caught]
    # Every recovery writes the second word again, whatever it finds there, and the second fence waits for all
    # that was flushed before. Without both fences the first flush would be lost: one at a time is removed.
    needless = ["first: sfence", "second: clwb", "second: sfence", "repair: clwb", "repair: sfence"]
    assert survivors == needless
    assert len(result.problems) == len(survivors)

    class Declared(Redo):
        redundant = dict.fromkeys(needless, "recovery writes the second word again")

    assert check(Declared, states=2000).ok


def test_a_needed_point_that_is_declared_redundant_is_a_problem():
    class Wrong(Pair):
        redundant = {"copy: sfence": "who knows"}  # noqa: RUF012

    (problem,) = check(Wrong).problems
    assert "'copy: sfence' is declared redundant, but without it: recover() returned" in problem


def test_with_persistent_caches_flushes_are_not_needed():
    result = check(Pair, states=2000, eadr=True)
    assert result.ok
    assert not any(mutant.caught for mutant in result.mutants)


def test_an_exception_while_the_power_is_on_is_the_programs_own():
    class Raises(Pair):
        def run(self, memory, value):
            raise ZeroDivisionError("of the program")

    with pytest.raises(ZeroDivisionError, match="of the program"):
        check(Raises)
    with pytest.raises(ZeroDivisionError, match="of the program"):
        record(Raises, "never-written.trace")


def test_a_memory_is_lent_for_one_call():
    class Keeps(Pair):
        def create(self, memory):
            super().create(memory)
            self.kept = memory

        def run(self, memory, value):
            super().run(self.kept, value)

    with pytest.raises(pmsim.ConfigError, match="lent for one call, which has returned"):
        check(Keeps)


def test_the_same_seed_visits_the_same_states():
    first, again, other = (check(Pair, states=500, seed=seed, mutate=False).check for seed in (7, 7, 8))
    assert (first.states, first.distinct) == (again.states, again.distinct)
    assert (first.states, first.distinct) != (other.states, other.distinct)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check(Pair()), "prototype: .* makes no Prototype; give a subclass"),
        (lambda: check(dict), "prototype: .* makes no Prototype"),
        (lambda: check(lambda: ONE_PAIR), "prototype: returns the same object again"),
        (lambda: check(Pair, states=0), "states: 0"),
        (lambda: check(Pair, large=1.5), "large: 1.5"),
        (lambda: check(Pair, seed="1"), "seed: '1'"),
        (lambda: check(Pair, programs=[]), "programs: one without operations, or none"),
        (lambda: check(Pair, programs=[[b"x" * 16], []]), "programs: one without operations, or none"),
        (lambda: check(type("Nothing", (Pair,), {"expected": lambda *_: None})), "returned None"),
        (
            lambda: check(type("Named", (Pair,), {"redundant": {"copy: sfense": "slip"}})),
            "no point 'copy: sfense' was met; did you mean 'copy: sfence'",
        ),
        (lambda: record(Pair, "x.trace", operations=0), "operations: 0"),
        (lambda: record(Pair, "x.trace", threads=-1), "threads: -1"),
        (lambda: record(type("None", (Pair,), {"create": lambda *_: None}), "x.trace", warm=9), "warm: create"),
        (lambda: record(Pair, "/no/such/folder/x.trace"), "/no/such/folder"),
    ],
)
def test_bad_calls_are_one_clear_line(call, message):
    with pytest.raises(pmsim.ConfigError, match=message) as refused:
        call()
    assert "\n" not in str(refused.value)


def test_a_trace_has_what_the_program_does(tmp_path):
    described = record(Pair, tmp_path / "pair.trace", operations=100, warmup=50, threads=2)
    each = {"store": 2, "clwb": 2, "sfence": 2, "operation_begin": 1, "operation_end": 1}
    counted = {kind: count for kind, count in described.operations_by_kind.items() if count}
    assert counted == {kind: count * 2 * (150 + further(100)) for kind, count in each.items()}
    assert described.plan["warmup_operations"] == 100
    measured = pmsim.trace.replay(tmp_path / "pair.trace", "tum-6212u").total
    assert measured.operations == 200


@pytest.mark.parametrize(("size", "warm"), [(2**24, 0), (2**30, 500_000)])
def test_a_trace_is_timed_as_the_same_algorithm_of_the_core(size, warm, tmp_path):
    """A line is streamed to a random place, and a fence waits for it."""

    class Slots(Pair):
        def create(self, memory):
            self.base = memory.allocate("pmem", size, "slots")

        def run(self, memory, slot):
            memory.stream(self.base + slot * LINE, bytes(LINE))
            memory.sfence()

        def draw(self, random):
            return random.randrange(size // LINE)

    record(Slots, tmp_path / "slots.trace", operations=4000, warmup=2000, warm=warm, alone=True)
    measured = pmsim.trace.replay(tmp_path / "slots.trace", "tum-6212u").total.latency.mean_ps / 1000
    core = pmsim.simulate_point(
        "latency",
        "tum-6212u",
        {"memory": "pmem", "operation": "ntstore", "pattern": "random", "region_size": size},
    )
    assert measured == pytest.approx(core["latency_ns"], rel=0.05)


def test_a_dependent_load_waits_for_the_one_before(tmp_path):
    class Reads(Pair):
        dependent = False

        def create(self, memory):
            self.base = memory.allocate("pmem", 2**26, "records")

        def run(self, memory, place):
            memory.read(self.base + place, 16, dependent=self.dependent)

        def draw(self, random):
            return random.randrange(2**20) * LINE

    class Chain(Reads):
        dependent = True

    rates = []
    for reads in (Reads, Chain):
        record(reads, tmp_path / "reads.trace")
        rates.append(pmsim.trace.replay(tmp_path / "reads.trace", "tum-6212u").total.operations_per_s)
    assert rates[0] > 3 * rates[1]


class Tally(Pair):
    """What kind ``contention`` does: a word below a latch, and work."""

    def create(self, memory):
        self.latch = memory.allocate("dram", 3 * LINE, "latch and word")

    def run(self, memory, operation):
        memory.compute(instructions=8)
        memory.compute(800, instructions=600)
        word = self.latch + 2 * LINE
        with memory.latch(self.latch):
            memory.store(word, memory.load(word) + 1)


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_threads_on_one_object_meet_as_those_of_the_core(threads, tmp_path):
    record(Tally, tmp_path / "tally.trace", operations=4000, threads=threads, shared=True)
    measured = pmsim.trace.replay(tmp_path / "tally.trace", "tum-6212u").total.operations_per_s
    core = {"operation": "latch", "work": 200, "threads": threads}
    expected = pmsim.simulate_point("contention", "tum-6212u", core)["ops_per_s"]
    assert measured == pytest.approx(expected, rel=0.01)


def test_threads_with_objects_of_their_own_do_not_meet(tmp_path):
    rates = []
    for threads in (1, 8):
        record(Tally, tmp_path / "tally.trace", threads=threads)
        rates.append(pmsim.trace.replay(tmp_path / "tally.trace", "tum-6212u").total.operations_per_s)
    assert rates[1] == pytest.approx(8 * rates[0], rel=0.01)


def test_a_latch_that_is_held_is_not_waited_for():
    memory = Memory(_native.SimMemory(), Points())
    latch = memory.allocate("dram", LINE, "latch")

    def refused(shared):
        with pytest.raises(pmsim.ConfigError, match="the latch is held"), memory.latch(latch, shared=shared):
            pass

    with memory.latch(latch, shared=True), memory.latch(latch, shared=True):
        refused(shared=False)
    with memory.latch(latch):
        refused(shared=False)
        refused(shared=True)
    assert memory.fetch_add(memory.allocate("dram", 8, "count"), 5) == 0
    assert memory.load(memory.region("count")) == 5


def test_a_memory_of_ones_own_names_regions_once():
    memory = _native.SimMemory()
    base = memory.allocate("pmem", 64, "one")
    assert memory.region("one") == base
    memory.allocate("dram", 64, "one")
    with pytest.raises(pmsim.ConfigError, match="'one' is the name of several regions"):
        memory.region("one")
    with pytest.raises(pmsim.ConfigError, match="no region has the name 'two'"):
        memory.region("two")
