"""Prototypes whose threads overlap while the power fails."""

import threading
from itertools import permutations
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pmsim
from pmsim.prototype import LATER, Prototype, after_crash, check
from pmsim.prototype import promise as promise_module
from pmsim.prototype.memory import Points
from pmsim.prototype.promise import Promise
from pmsim.prototype.subject import Subject


class Holes(Prototype):
    """Reserves a slot, then fills it. What is acknowledged behind a slot that is still empty is not found."""

    slots = 64

    def create(self, memory):
        self.base = memory.allocate("pmem", 64 * self.slots, "log")
        self.latch = memory.allocate("dram", 64, "latch")
        self.next = 0

    def run(self, memory, value):
        slot = self.reserve()
        memory.store(slot, value)
        memory.persist(slot, 8, "entry")

    def reserve(self):
        self.next += 1
        return self.base + 64 * (self.next - 1)

    def found(self, memory):
        self.base, self.latch = memory.region("log"), memory.region("latch")
        return [memory.load(self.base + 64 * slot) for slot in range(self.slots)]

    def recover(self, memory):
        values = self.found(memory)
        self.next = values.index(0)
        return values[: self.next]

    def expected(self, done):
        return list(done)

    def draw(self, random):
        return random.randrange(1, 1000)


class Latched(Holes):
    """One after the other."""

    def run(self, memory, value):
        with memory.latch(self.latch):
            super().run(memory, value)


class Bag(Holes):
    """Finds what is behind holes; in which order it came nobody knows."""

    def recover(self, memory):
        values = self.found(memory)
        self.next = 1 + max((slot for slot, value in enumerate(values) if value), default=-1)
        return sorted(value for value in values if value)

    def expected(self, done):
        return sorted(done)


class FenceOfAnother(Bag):
    """Who flushes first waits until the other one has fenced, which does nothing for its own line."""

    def create(self, memory):
        super().create(memory)
        self.inside = self.fences = 0

    def recover(self, memory):
        self.inside = self.fences = 0
        return super().recover(memory)

    def run(self, memory, value):
        slot, fences = self.reserve(), self.fences
        self.inside += 1
        memory.store(slot, value)
        memory.flush(slot, 8, site="entry")
        self.inside -= 1
        if self.inside:
            while self.fences == fences:
                memory.load(self.latch)  # a turn
        else:
            memory.sfence("entry")
            self.fences += 1


class Grouped(Bag):
    """Every second operation persists both."""

    def create(self, memory):
        super().create(memory)
        self.waiting = []

    def recover(self, memory):
        self.waiting = []
        return super().recover(memory)

    def run(self, memory, value):
        with memory.latch(self.latch):
            self.waiting.append(value)
            if len(self.waiting) < 2:
                return LATER
            slots = [self.reserve() for _ in self.waiting]
            for slot, each in zip(slots, self.waiting, strict=True):
                memory.store(slot, each)
                memory.persist(slot, 8, "entry")
            self.waiting = []
            return True


class Pipelined(Grouped):
    """Who comes while a group is being persisted joins the next one."""

    def run(self, memory, value):
        with memory.latch(self.latch):
            self.waiting.append(value)
            if len(self.waiting) < 2:
                return LATER
            group, self.waiting = self.waiting, []
            slots = [self.reserve() for _ in group]
            flushing = memory.latch(self.latch + 8)
            flushing.__enter__()
        for slot, each in zip(slots, group, strict=True):
            memory.store(slot, each)
            memory.persist(slot, 8, "entry")
        flushing.__exit__(None, None, None)
        return None


class OfItsOwn(Prototype):
    """A counter for each thread, in a line of its own."""

    def create(self, memory):
        self.base = memory.allocate("pmem", 4 * 64, "counters")

    def run(self, memory, step):
        THREADS.add(memory.thread)
        line = self.base + 64 * memory.thread
        memory.store(line, memory.load(line) + step)
        memory.persist(line, 8, "counter")

    def recover(self, memory):
        self.base = memory.region("counters")
        return sum(memory.load(self.base + 64 * thread) for thread in range(4))

    def expected(self, done):
        return sum(done)

    def draw(self, random):
        return random.randrange(1, 9)


class Torn(OfItsOwn):
    """Two words that should be the same, read while another thread writes them."""

    def run(self, memory, step):
        value = memory.read(self.base + 192, 16)
        if value[:8] != value[8:]:
            TORN.append(value)
        memory.write(self.base + 192, step.to_bytes(8, "little") * 2)
        super().run(memory, 1)

    def recover(self, memory):
        self.base = memory.region("counters")
        return


class TwoLatches(Holes):
    """Who has one latch wants the other one."""

    def run(self, memory, value):
        first = self.latch + 8 * (value % 2)
        with memory.latch(first), memory.latch(self.latch + 8 - (first - self.latch)):
            super().run(memory, value)


class Fails(Holes):
    def run(self, memory, value):
        super().run(memory, value)
        if value == 7:
            raise ValueError("seven")


class Stack(Prototype):
    """R. K. Treiber's stack (IBM RJ 5118, 1986), whose nodes are durable before they are linked."""

    nodes = 64
    redundant: ClassVar = {"node: sfence": "the exchange that links the node is a fence, too"}

    def create(self, memory):
        self.top = memory.allocate("pmem", 64 * self.nodes, "stack")  # nodes follow in the next lines
        self.free = memory.allocate("dram", 64, "free")
        memory.store(self.free, 1)

    def run(self, memory, value):
        number = memory.fetch_add(self.free)
        node = self.top + 64 * number
        memory.store(node, value)
        while True:
            top = memory.load(self.top)
            memory.store(node + 8, top)
            memory.persist(node, 16, "node")
            if memory.compare_exchange(self.top, top, number) == top:
                break
            FAILED_EXCHANGES.append(number)
        memory.persist(self.top, 8, "top")

    def recover(self, memory):
        self.top, self.free = memory.region("stack"), memory.region("free")
        number, found = memory.load(self.top), {}
        while number and number not in found:
            node = self.top + 64 * number
            found[number] = memory.load(node)
            number = memory.load(node + 8)
        memory.store(self.free, 1 + max(found, default=0))
        return list(reversed(found.values()))

    def expected(self, done):
        return list(done)

    def draw(self, random):
        return random.randrange(1, 1000)


#: Volatile: what other threads were faster in, who has run, and what was seen half written.
FAILED_EXCHANGES: list[int] = []
THREADS: set[int] = set()
TORN: list[bytes] = []


def test_one_thread_leaves_no_holes_and_two_do():
    assert check(Holes, states=1000).ok
    violation = check(Holes, states=1000, threads=2).check.violation
    assert violation is not None
    (told,) = [line for line in violation.counterexample.splitlines() if "  beside  " in line]
    assert " (in flight)  " in told
    assert " (acknowledged)  " in told
    assert told.endswith("  <- in flight")
    assert {"thread 0", "thread 1"} <= set(violation.counterexample.replace("  ", "\n").split("\n"))
    assert violation.message.startswith(f"recover() returned {Holes().recover(after_crash(violation))}; ")


@pytest.mark.parametrize("right", [Latched, Bag, Grouped, Pipelined])
@pytest.mark.parametrize("threads", [2, 3])
def test_right_programs_keep_their_promises(right, threads):
    result = check(right, states=1000, threads=threads)
    assert result.ok, result.problems
    assert {mutant.point.name for mutant in result.mutants} == {"entry: clwb", "entry: sfence"}


def test_a_stack_without_latches_is_crashed_where_exchanges_fail():
    FAILED_EXCHANGES.clear()
    result = check(Stack, states=2000, threads=3)
    assert result.ok, result.problems
    assert FAILED_EXCHANGES
    assert [mutant.point.name for mutant in result.needed] == ["node: clwb", "top: clwb", "top: sfence"]


def test_a_fence_is_for_the_flushes_of_its_own_thread():
    assert check(FenceOfAnother, states=1000).ok
    violation = check(FenceOfAnother, states=1000, threads=2).check.violation
    assert violation is not None


def test_an_operation_knows_its_thread():
    for threads in (1, 3):
        THREADS.clear()
        assert check(OfItsOwn, states=500, threads=threads).ok
        assert set(range(threads)) == THREADS


def test_others_come_between_the_words_of_an_access():
    for threads in (1, 2):
        TORN.clear()
        check(Torn, states=50, threads=threads, mutate=False)
        assert bool(TORN) == (threads == 2)


def test_threads_do_now_and_then_more_than_one_operation_while_another_does_one():
    told = check(Holes, threads=2, states=5000, programs=[[number] for number in range(1, 4)]).check
    assert told.violation is None  # a program of one operation has nobody beside it
    told = check(Holes, threads=2, programs=[[1, 2, 3]] * 40, mutate=False).check.violation
    assert told is not None
    subjects = [Subject(Holes, Points(), Holes(), range(16), seed=str(seed), threads=2) for seed in range(20)]
    described = [subject.describe(number) for subject in subjects for number in range(subject.count())]
    assert {text.count("beside") for text in described} <= {0, 1}
    assert any(", then " in text for text in described)
    dealt = [text.replace("beside", ",").replace("then", "").split(",") for text in described]
    assert sum(map(len, dealt)) == 20 * 16


def test_long_programs_of_many_threads_end():
    """Orders of rounds long past are no longer told apart: 24 in each round of four."""
    assert check(Latched, states=20, threads=4, large=32, mutate=False).ok


def test_threads_that_wait_for_each_other_are_told_of():
    with pytest.raises(pmsim.ConfigError, match=r"held, .* \(thread 0 for 0x\w+, thread 1 for 0x\w+\)"):
        check(TwoLatches, states=1000, threads=2, programs=[[2, 3]] * 20)
    assert check(TwoLatches, states=1000, programs=[[2, 3]]).ok


def test_what_a_thread_raises_is_raised_and_leaves_no_thread():
    before = threading.active_count()
    with pytest.raises(ValueError, match="seven"):
        check(Fails, threads=3, programs=[[1, 7, 2]], mutate=False)
    assert threading.active_count() == before


def test_a_round_may_have_fewer_operations_than_threads():
    result = check(Latched, threads=3, programs=[[1, 2, 3, 4]], mutate=False)
    assert result.ok
    found = check(Holes, threads=2, programs=[[1, 2, 3]], mutate=False).check.violation
    assert found.operation in (1, 2)


def test_the_same_seed_changes_threads_at_the_same_places():
    def counted(seed):
        report = check(Bag, states=200, seed=seed, threads=2, mutate=False).check
        return report.distinct, report.steps, report.states, report.resumed_crashes

    assert counted(1) == counted(1)
    assert counted(1) != counted(2)


def test_the_next_seed_runs_other_programs():
    drawn = []

    class Tells(Bag):
        def draw(self, random):
            values = next((values for one, values in drawn[-1] if one is random), None)
            if values is None:
                values = []
                drawn[-1].append((random, values))
            values.append(super().draw(random))
            return values[-1]

    for seed in (1, 2, 3):
        drawn.append([])
        check(Tells, states=50, seed=seed, small=4, large=4, mutate=False)
    # Those of a program are four, others are of what goes on after a recovery.
    programs = [{tuple(values) for _, values in of_seed if len(values) == 4} for of_seed in drawn]
    assert all(len(of_seed) > 3 for of_seed in programs)
    assert not programs[0] & programs[1]
    assert not programs[1] & programs[2]


def test_too_many_orders_are_refused(monkeypatch):
    monkeypatch.setattr(promise_module, "_MOST_HISTORIES", 20)
    with pytest.raises(pmsim.ConfigError, match="in more than 20 orders; choose fewer threads"):
        check(Latched, states=100, threads=4)
    assert check(Latched, states=100, threads=1, mutate=False).ok


@pytest.mark.parametrize("threads", [0, 9, 1.5])
def test_threads_are_few(threads):
    with pytest.raises(pmsim.ConfigError, match=f"threads: {threads}"):
        check(Bag, threads=threads)


@st.composite
def events(draw):
    """Operations of up to three threads: when each begins and returns, and whether that acknowledges it."""
    running, happened = [], []
    for index in range(draw(st.integers(1, 5))):
        while len(running) == 3 or (running and draw(st.booleans())):
            happened.append((running.pop(draw(st.integers(0, len(running) - 1))), draw(st.booleans())))
        running.append(index)
        happened.append((index, None))
    return happened[: draw(st.integers(1, len(happened)))]


def orders(happened):
    """All orders in which operations may have been done, straight from the definition."""
    begun = {index: at for at, (index, how) in enumerate(happened) if how is None}
    returned = {index: at for at, (index, how) in enumerate(happened) if how is not None}
    acknowledged = set()
    for index in (index for index, how in happened if how):
        acknowledged |= {index} | {one for one, end in returned.items() if end < begun[index]}

    def follows(order, at):
        """Whether all that had returned before this one began stand before it."""
        before = {one for one, end in returned.items() if end < begun[order[at]]}
        return before <= set(order[:at])

    return {
        order
        for count in range(len(begun) + 1)
        for order in permutations(begun, count)
        if acknowledged <= set(order) and all(follows(order, at) for at in range(count))
    }


@given(events())
def test_what_is_legal_is_what_the_definition_says(happened):
    exactly, sets = Promise(tuple, [[]]), Promise(sorted, [[]])
    for index, how in happened:
        for promise in (exactly, sets):
            if how is None:
                promise.begin(index, index)
            else:
                promise.end(index, how)
    legal = [history.content for history in exactly.legal]
    assert len(legal) == len(set(legal))
    assert set(legal) == orders(happened)
    assert {tuple(history.content) for history in sets.legal} == {tuple(sorted(o)) for o in orders(happened)}
