"""What a violation tells, and ``after_crash``: a recovery that went wrong, once more and by hand."""

import pytest

import pmsim
from pmsim.prototype import Prototype, after_crash, check


class Count(Prototype):
    """Counts in one word on pmem, beside one in DRAM and one on a device."""

    def create(self, memory):
        self.base = memory.allocate("pmem", 64, "count")
        self.volatile = memory.allocate("dram", 512, "volatile")
        device = memory.allocate("block", 512, "device")
        memory.write(self.volatile, b"formatted")
        memory.block_write(device, self.volatile, 512)
        memory.block_flush("format")

    def run(self, memory, step):
        count = memory.load(self.base) + step
        memory.store(self.volatile, count)
        memory.store(self.base, count)
        memory.persist(self.base, 8, "count")

    def recover(self, memory):
        try:
            self.base, self.volatile = memory.region("count"), memory.region("volatile")
            memory.block_read(memory.region("device"), self.volatile, 512)
        except pmsim.ConfigError:
            return None
        return memory.load(self.base) if memory.read(self.volatile, 9) == b"formatted" else None

    def expected(self, done):
        return sum(done)

    def draw(self, random):
        return random.randrange(1, 9)


class LosesOne(Count):
    """Acknowledges a step of seven before it is durable."""

    def run(self, memory, step):
        if step == 7:
            memory.store(self.base, memory.load(self.base) + step)
        else:
            super().run(memory, step)


class CountsRestarts(Count):
    """Each recovery adds one, after it has looked."""

    def recover(self, memory):
        count = super().recover(memory)
        if count:
            memory.store(self.base, count + 1)
            memory.persist(self.base, 8, "restart")
        return count


class StartsAgain(Count):
    """What recovery returns is right; the program that goes on counts from zero."""

    def run(self, memory, step):
        if getattr(self, "recovered", False):
            memory.store(self.base, 0)
        return super().run(memory, step)

    def recover(self, memory):
        self.recovered = True
        return super().recover(memory)


class Sector(Prototype):
    """A sector, nearly empty, whose write nobody flushes."""

    def create(self, memory):
        self.buffer = memory.allocate("dram", 512, "buffer")
        self.device = memory.allocate("block", 512, "device")

    def run(self, memory, word):
        memory.store(self.buffer, word)
        memory.block_write(self.device, self.buffer, 512)

    def recover(self, memory):
        buffer = memory.allocate("dram", 512, "buffer of recovery")
        memory.block_read(memory.region("device"), buffer, 512)
        return memory.load(buffer)

    def expected(self, done):
        return done[-1] if done else 0

    def draw(self, random):
        return random.randrange(1, 9)


def violation_of(prototype, programs):
    found = check(prototype, programs=programs, mutate=False).check.violation
    assert found is not None
    return found


def test_a_recovery_goes_wrong_as_it_did():
    violation = violation_of(LosesOne, [[2, 7]])
    memory = after_crash(violation)
    assert memory.load(memory.region("volatile")) == 0
    assert LosesOne().recover(memory) == 2
    assert violation.message == "recover() returned 2; promised is 9"
    assert not violation.second_recovery


def test_what_is_done_to_one_copy_is_not_in_the_next():
    violation = violation_of(LosesOne, [[2, 7]])
    for _ in range(2):
        recovered, memory = LosesOne(), after_crash(violation)
        assert recovered.recover(memory) == 2
        recovered.run(memory, 5)
        assert LosesOne().recover(memory) == 7


def test_a_second_recovery_follows_the_first():
    violation = violation_of(CountsRestarts, [[3]])
    assert violation.second_recovery
    memory = after_crash(violation)
    assert CountsRestarts().recover(memory) == 3
    assert CountsRestarts().recover(memory) == 4
    assert "recover() returned 4; " in violation.message


def test_each_failure_has_left_a_memory():
    violation = violation_of(StartsAgain, [[3]])
    assert (violation.failures, len(violation.left)) == (2, 2)
    recovered, memory = StartsAgain(), after_crash(violation, 1)
    assert recovered.recover(memory) in (0, 3)
    wrong = StartsAgain().recover(after_crash(violation, 2))
    assert wrong == StartsAgain().recover(after_crash(violation))
    assert violation.message.startswith(f"recover() returned {wrong}; ")


def test_mutants_have_left_one_too():
    result = check(Count, programs=[[3, 4]])
    assert result.ok
    told = 0
    for mutant in result.mutants:
        violation = mutant.check.violation
        if violation is not None and violation.message.startswith("recover() returned "):
            told += 1
            assert violation.message.startswith(
                f"recover() returned {Count().recover(after_crash(violation))}; "
            )
    assert told > 0


@pytest.mark.parametrize("failure", [0, 3, -1, 1.5])
def test_there_are_as_many_failures_as_the_violation_says(failure):
    with pytest.raises(pmsim.ConfigError, match=f"failure: {failure}"):
        after_crash(violation_of(StartsAgain, [[3]]), failure)


def test_a_sector_of_which_one_word_has_changed_is_lost_and_not_torn():
    violation = violation_of(Sector, [[3]])
    assert violation.lost_words == 1
    (write,) = [line for line in violation.counterexample.splitlines() if "block write" in line]
    assert write.endswith("[LOST]")


def test_a_store_that_was_durable_before_it_was_overwritten_is_not_lost():
    violation = violation_of(LosesOne, [[2, 7]])
    stores = [line for line in violation.counterexample.splitlines() if " store " in line]
    assert [line.rpartition("[")[2] for line in stores] == ["LOST]"]  # the one before it ends the story


def test_blocks_of_the_core_have_left_memory_too():
    result = pmsim.crash.check_block("inplace-word", states=200)
    violations = [mutant.check.violation for mutant in result.mutants if mutant.check.violation]
    assert violations
    assert all(len(violation.left) == violation.failures for violation in violations)
