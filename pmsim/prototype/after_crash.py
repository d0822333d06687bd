"""Memory as the crash of a counter-example left it, to recover by hand."""

from pmsim.arguments import whole
from pmsim.crash import Violation
from pmsim.prototype.memory import Memory, Points
from pmsim.prototype.program import MakePrototype
from pmsim.prototype.subject import told


def after_crash(violation: Violation, failure: int | None = None) -> Memory:
    """Return a copy of what a power failure left, for ``recover`` of a new object: step by step in a debugger.

    Regions on "pmem" and "block" have the bytes that survived, those on "dram" zeros. ``memory.region`` finds
    them. A recovery that went wrong does so again; where ``violation.second_recovery`` says so, when another
    new object recovers once more.

    Parameters
    ----------
    violation : Violation
        What ``check`` has found, as ``result.check.violation`` or that of a mutant.
    failure : int, optional
        Which failure of the power, from 1; the last one, whose recovery went wrong, by default. After an
        earlier one the recovery was cut short, or the program went on, as the counter-example tells.

    Raises
    ------
    ConfigError : there was no such failure.
    """
    failures = len(violation.left)
    number = failures if failure is None else whole("failure", failure, 1, failures)
    # A crash of memory that nobody has used since leaves what there is.
    return Memory(violation.left[number - 1].crash_states(1)[0], Points())


def recover_in_debugger(make: MakePrototype, violation: Violation) -> None:
    """Stop at the first line of the recovery that went wrong, and let a person step through it.

    Parameters
    ----------
    make : callable
        Returns a new object of the prototype.
    violation : Violation
        What ``check`` has found.
    """
    import pdb  # here: it takes a while, and few want it

    memory = after_crash(violation)
    if violation.second_recovery:
        make().recover(memory)
    debugger = pdb.Pdb()
    try:
        returned = debugger.runcall(make().recover, memory)
    except Exception as error:
        debugger.message(f"recover() raised {told(error)}")
    else:
        if returned is not None:  # which it is, too, where a person has quit
            debugger.message(f"recover() returned {returned!r}")
    if violation.resumed_operation:
        debugger.message("The program had gone on after an earlier recovery: of after_crash(violation, 1).")
