"""Counters in C++, as the command line names them."""

from pmsim.prototype import CppPrototype


class Counters(CppPrototype):
    """Four counters, each of which survives."""

    source = "counters.hpp"
    latched = True

    def expected(self, done):
        return {number: sum(1 for other, _ in done if other == number) for number in range(4)}

    def draw(self, random):
        return random.randrange(4), self.latched


class Unlatched(Counters):
    """The same without their latch."""

    program = "Counters"
    latched = False


class Backwards(Counters):
    """One whose promise is another one."""

    program = "Counters"

    def expected(self, done):
        return {number: -counted for number, counted in super().expected(done).items()}
