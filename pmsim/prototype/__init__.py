"""Algorithms on persistent memory as programs in Python: crashed at every step, and timed on any machine.

``docs/prototype.md`` begins with an example.
"""

from pmsim.prototype.after_crash import after_crash
from pmsim.prototype.check import check
from pmsim.prototype.cpp import CppPrototype
from pmsim.prototype.memory import Memory
from pmsim.prototype.program import LATER, Prototype
from pmsim.prototype.record import record

__all__ = ["LATER", "CppPrototype", "Memory", "Prototype", "after_crash", "check", "record"]
