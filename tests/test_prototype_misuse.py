"""Prototypes in Python that are odd: the verdict is right all the same, or one line says what to do."""

import threading
from random import Random

import numpy as np
import pytest

import pmsim
from pmsim import _native
from pmsim.prototype import Memory, Prototype, check, record
from pmsim.prototype.memory import Points
from pmsim.prototype.subject import Subject

LINE = 64


class Word(Prototype):
    """A word that is stored anew, eight bytes in a list."""

    def create(self, memory):
        self.base = memory.allocate("pmem", 2 * LINE, "word")

    def run(self, memory, value):
        memory.write(self.base, value[0])
        memory.flush(self.base, 8, "word")
        memory.sfence("word")

    def recover(self, memory):
        self.base = memory.region("word")
        return memory.read(self.base, 8)

    def expected(self, done):
        return done[-1][0] if done else bytes(8)

    def draw(self, random):
        return [random.randbytes(8)]


def made(**methods):
    return type("Odd", (Word,), methods)


def test_a_flush_and_a_fence_of_one_name_are_two_points():
    """Taken away together, a needed one would answer for one that is not."""
    assert [mutant.point.name for mutant in check(Word, states=500).mutants] == ["word: clwb", "word: sfence"]


def test_a_run_that_takes_its_operation_apart_has_promised_it():
    def consumes(self, memory, value):
        Word.run(self, memory, [value.pop()])

    assert check(made(run=consumes), states=500).ok
    forgets = made(run=lambda self, memory, value: value.__setitem__(0, bytes(8)))
    assert "promised is" in check(forgets, states=500).check.violation.message


def test_a_model_may_take_apart_what_it_is_given_and_return_one_object_again_and_again():
    def pops(self, done):
        return done.pop().pop() if done else bytes(8)

    assert check(made(expected=pops), states=500).ok

    class Kept(Word):
        def __init__(self):
            self.model = [bytes(8)]

        def recover(self, memory):
            return [super().recover(memory)]

        def expected(self, done):
            self.model[0] = super().expected(done)
            return self.model

    assert check(Kept, states=500).ok


class Stack(Prototype):
    """Only its top is returned: a crash while an equal value is pushed leaves one of two stacks."""

    def create(self, memory):
        self.base = memory.allocate("pmem", 64 * LINE, "stack")
        self.size = 0

    def run(self, memory, value):
        if value:
            self.size += 1
            memory.store(self.base + LINE * self.size, value)
            memory.persist(self.base + LINE * self.size, 8, "value")
        elif self.size:
            self.size -= 1
        memory.store(self.base, self.size)
        memory.persist(self.base, 8, "size")

    def recover(self, memory):
        self.base = memory.region("stack")
        self.size = memory.load(self.base)
        return memory.load(self.base + LINE * self.size) if self.size else 0

    def expected(self, done):
        stack = [0]
        for value in done:
            if value:
                stack.append(value)
            elif len(stack) > 1:
                stack.pop()
        return stack[-1]

    def draw(self, random):
        return random.choice((0, 1, 1, 2))


def test_what_the_content_does_not_tell_apart_may_be_either():
    assert check(Stack, states=1000).ok


def test_a_recovery_without_an_end_is_a_violation():
    def turns(self, memory):
        while any(Word.recover(self, memory)):
            pass
        return bytes(8)

    violation = check(made(recover=turns), states=100).check.violation
    assert (
        "1,000,000 reads, or 1,000 locked instructions, in one call, which seems to have no end"
        in violation.message
    )


def test_a_lock_that_recovery_forgets_to_release_is_a_violation():
    class Locked(Word):
        def create(self, memory):
            self.lock = memory.allocate("pmem", 64, "lock")
            super().create(memory)

        def recover(self, memory):
            self.lock = memory.region("lock")
            return super().recover(memory)

        def run(self, memory, value):
            while memory.compare_exchange(self.lock, 0, 1):
                pass
            super().run(memory, value)
            memory.store(self.lock, 0)

    violation = check(Locked, states=100).check.violation
    assert (
        "1,000,000 reads, or 1,000 locked instructions, in one call, which seems to have no end"
        in violation.message
    )


def test_a_check_ends_within_eight_states_of_its_cancellation():
    """However slow a recovery is: a state has three at most, one of which is cut short."""
    monitor = _native.CrashMonitor()
    recoveries = []

    class Counts(Word):
        def recover(self, memory):
            recoveries.append(self)
            if len(recoveries) == 100:
                monitor.cancel()
            return super().recover(memory)

    points, random = Points(), Random(1)

    def make(seed, is_small):
        operations = [Counts().draw(random) for _ in range(3 if is_small else 16)]
        return Subject(Counts, points, Counts(), operations, seed=str(seed))

    check = _native.crash_check_program(
        "Counts",
        make,
        points.names,
        monitor=monitor,
    )
    assert check["stopped"]
    assert 100 <= len(recoveries) < 100 + 3 * 9


def test_what_compares_with_nothing_is_found_wherever_recovery_returns_it():
    odd = made(recover=lambda self, memory: np.zeros(8, np.uint8))
    assert "returned array(" in check(odd, states=100).check.violation.message


def test_several_threads_record_with_regions_found_by_name(tmp_path):
    class Opens(Word):
        def create(self, memory):
            super().create(memory)
            self.recover(memory)

    bases = set()

    class Tells(Opens):
        def create(self, memory):
            super().create(memory)
            bases.add(self.base)

    record(Tells, tmp_path / "word.trace", operations=10, warmup=0, threads=3)
    assert len(bases) == 3


def test_data_may_be_whatever_holds_bytes():
    for kind in (bytearray, memoryview, lambda data: np.frombuffer(data, np.uint8)):
        odd = made(run=lambda self, memory, value, kind=kind: Word.run(self, memory, [kind(value[0])]))
        assert check(odd, states=100).ok
    stores = made(run=lambda self, memory, value: memory.store(self.base, np.int64(5)))
    assert "promised is" in check(stores, states=100).check.violation.message


def test_checks_run_beside_each_other():
    results = []
    threads = [threading.Thread(target=lambda: results.append(check(Word, states=200))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [result.ok for result in results] == [True] * 3


class KeepsInTheClass(Word):
    kept = [bytes(8)]  # noqa: RUF012

    def run(self, memory, value):
        self.kept[0] = value[0]

    def recover(self, memory):
        return self.kept[0]


class CountsInTheClass(Word):
    ran = None

    def run(self, memory, value):
        CountsInTheClass.ran = True
        super().run(memory, value)


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        (CountsInTheClass, r"CountsInTheClass\.ran: has changed, and belongs to the class"),
        (KeepsInTheClass, r"InTheClass\.kept: has changed, and belongs to the class, .*; set it in"),
        (made(expected=lambda self, done: 0), "returned the same after all operations: there is no promise"),
        (made(expected=lambda self, done: float("nan")), r"returned nan, which is not equal \(==\) to a copy"),
        (made(expected=lambda self, done: np.zeros(2)), r"returned array\(.* is not equal \(==\) to a copy"),
        (made(expected=lambda self, done: object()), r"returned <object .* is not equal \(==\) to a copy"),
        (made(expected=lambda self, done: (_ for _ in done)), "returned <generator .* cannot be copied"),
        (made(redundant=["word: clwb"]), "Odd.redundant: .* is no dict"),
    ],
)
def test_an_odd_prototype_is_one_clear_line(odd, message):
    with pytest.raises(pmsim.ConfigError, match=message) as refused:
        check(odd, states=100)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda memory, base: memory.read(base, "8"), "memory.read: address = .*, size = '8': addresses"),
        (lambda memory, base: memory.load(float(base)), "memory.load: address = "),
        (lambda memory, base: memory.store(base, -1), "memory.store: .*word = -1: .* from 0 to"),
        (lambda memory, base: memory.store(base, 2**64), "memory.store: "),
        (lambda memory, base: memory.write(base, "text"), "memory.write: .*data = 'text': .* data is bytes"),
        (lambda memory, base: memory.allocate("pmem", -1, "x"), "memory.allocate: .*size = -1"),
        (lambda memory, base: memory.allocate("pmem", 64, 5), "name: 5 is not text"),
        (lambda memory, base: memory.sfence(3), "site: 3 is not text"),
        (lambda memory, base: memory.compute(1.5), "memory.compute: cycles = 1.5"),
    ],
)
def test_bad_arguments_of_memory_are_one_clear_line(call, message):
    with pytest.raises(pmsim.ConfigError, match=message) as refused:
        check(made(run=lambda self, memory, value: call(memory, self.base)), states=100)
    assert "\n" not in str(refused.value)


def test_a_forgotten_argument_is_told_as_python_does():
    with pytest.raises(TypeError, match=r"memory.read\(\): missing a required argument: 'size'"):
        check(made(run=lambda self, memory, value: memory.read(self.base)), states=100)


def test_a_recovery_that_ends_the_process_has_not_kept_the_promise():
    def leaves(self, memory):
        raise SystemExit(3)

    message = check(made(recover=leaves), states=10).check.violation.message
    assert message.startswith("recover() raised SystemExit: 3")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("found", "promised", "said"),
    [
        ([0] * 90 + [7] + [0] * 9, [0] * 100, " (at 90: 7, not 0)"),
        ([0] * 100, [0] * 99, " (at 99: 0, not nothing)"),
        (bytes(300), bytes(299) + b"x", " (at 299: 0, not 120)"),
        (dict.fromkeys(range(60), 0), dict.fromkeys(range(61), 0), " (at 60: nothing, not 0)"),
        (dict.fromkeys(range(60), 0), dict.fromkeys(range(60), 0) | {5: 1}, " (at 5: 0, not 1)"),
        ([1], [2], ""),  # both are shown whole
        ([0] * 100, "0" * 300, ""),
    ],
)
def test_of_long_contents_the_first_difference_is_told(found, promised, said):
    def recover(self, memory):
        return found if any(Word.recover(self, memory)) else "nothing yet"

    odd = made(recover=recover, expected=lambda self, done: promised if done else "nothing yet")
    message = check(odd, states=50, mutate=False).check.violation.message
    assert message.endswith(said) if said else "(at" not in message


@pytest.mark.parametrize(
    "locked",
    [
        lambda memory, at: memory.fetch_add(at),
        lambda memory, at: memory.compare_exchange(at, 0, 1),
        lambda memory, at: memory.latch(at).__enter__(),
    ],
)
def test_a_locked_access_that_is_not_aligned_is_one_clear_line(locked):
    memory = Memory(_native.SimMemory(), Points())
    base = memory.allocate("dram", 64, "words")
    with pytest.raises(
        pmsim.ConfigError, match="a locked access needs an aligned word; choose a multiple of 8"
    ):
        locked(memory, base + 4)


@pytest.mark.parametrize(
    "lets_go", [lambda memory, at: memory.store(at, 0), lambda memory, at: memory.release(at, 0)]
)
def test_a_latch_that_is_no_longer_held_is_one_clear_line(lets_go):
    memory = Memory(_native.SimMemory(), Points())
    latch = memory.allocate("dram", 64, "latch")
    message = "the latch is not held like that: it has been released before, or its word was stored to"
    with pytest.raises(pmsim.ConfigError, match=message), memory.latch(latch):
        lets_go(memory, latch)


def test_what_a_library_raises_is_told_by_the_line_that_called_it():
    def held(self, memory):
        latch = memory.allocate("pmem", 64, "latch")
        with memory.latch(latch), memory.latch(latch):
            pass

    message = check(made(recover=held), states=100).check.violation.message
    assert message.endswith("test_what_a_library_raises_is_told_by_the_line_that_called_it.<locals>.held")


def test_operations_that_undo_each_other_in_one_round_have_promised_something():
    class Set(Word):
        def run(self, memory, operation):
            memory.store(self.base, operation)
            memory.persist(self.base, 8, "word")

        def recover(self, memory):
            self.base = memory.region("word")
            return memory.load(self.base)

        def expected(self, done):
            return done[-1] if done else 0

        def draw(self, random):
            return random.randrange(2)

    assert check(Set, states=100, threads=2, programs=[[1, 0]]).ok


def test_a_program_that_does_not_do_the_same_again_is_told_so():
    runs = []

    programs = [[[bytes([number] * 8)] for number in range(1, 17)]]

    def persists(self, memory, value):
        memory.write(self.base, value[0])
        runs.append(value)
        if value != programs[0][0] or runs.count(value) != 2:  # the second time that it is done
            memory.persist(self.base, 8, "word")

    violation = check(made(run=persists), programs=programs, mutate=False).check.violation
    assert violation.message.startswith("recover() returned ")
    assert (
        "the program did not do the same once more: does it depend on chance or time?"
        in violation.counterexample
    )
