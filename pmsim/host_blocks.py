"""What ``pmsim measure`` can run on this machine: one row per block."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pmsim import _native
from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.host_engines import engines
from pmsim.host_machine import HostMachine
from pmsim.host_subjects import DeviceSubjects, contention
from pmsim.host_timing import Effort, Subject
from pmsim.kinds import KINDS
from pmsim.kinds.in_place import METHODS
from pmsim.kinds.logs import HAS_ENTRIES, LAYOUTS
from pmsim.messages import shown
from pmsim.platforms import Platform
from pmsim.prototype.cpp import CppPrototype
from pmsim.prototype.load import load_prototype, names_prototype
from pmsim.prototype.measured import ProgramSubject

_PAGE = 16 * 2**10
#: Instructions of a read in place on this machine beyond those of a simulated one, as counted by
#: single-stepping (x86-64, GCC 12, -O3): HostMemory checks every address. Between reads that wait for nothing
#: they decide how many are under way; whoever persists waits for that.
_READS_IN_PLACE = {"cow": 158, "log": 113, "fam": 205}


@dataclass(frozen=True)
class HostBlock:
    """A block with a driver for this machine.

    Attributes
    ----------
    name : str
        What ``--blocks`` chooses by; where it is one, the name of the kind of experiment.
    title : str
        For people.
    benchmarks, kinds : tuple of str
        The native benchmarks and the kinds of experiment that it needs.
    subjects : callable
        Machine, effort and memory to the subjects.
    """

    name: str
    title: str
    benchmarks: tuple[str, ...]
    kinds: tuple[str, ...]
    subjects: Callable[[HostMachine, Effort, str], list[Subject]]


def _device(block: str) -> Callable[[HostMachine, Effort, str], list[Subject]]:
    def subjects(machine: HostMachine, effort: Effort, memory: str) -> list[Subject]:
        known = DeviceSubjects(machine, effort, memory).all()
        return [subject for subject in known.values() if subject.block == block]

    return subjects


def _log(machine: HostMachine, effort: Effort, memory: str) -> list[Subject]:
    """Every log in every layout by one thread, as in Fig. 8 at 512 bytes; some at more sizes and threads."""
    setups = [
        (algorithm, layout, 512, 1)
        for algorithm, has_entries in HAS_ENTRIES.items()
        for layout in (LAYOUTS if has_entries else LAYOUTS[:1])
    ]
    setups += [("poplog", "padded", size, 1) for size in (64, 1024)]
    if machine.cores > 1:
        setups += [("poplog", "padded", 512, machine.cores), ("classic", "padded", 512, machine.cores)]
    return [
        _block_subject(
            "log",
            f"{algorithm}, {layout}, {size} B" + _by(threads),
            {
                "algorithm": algorithm,
                "layout": layout,
                "entry_size": size,
                "group_commit": 1,
                "dancing_fields": 64,
                "threads": threads,
                "memory": memory,
                "log_size": effort.region // 2,
            },
        )
        for algorithm, layout, size, threads in setups
    ]


def _page_flush(machine: HostMachine, effort: Effort, memory: str) -> list[Subject]:
    """Pages of 16 KiB, all or some of their lines dirty, as in Fig. 7. The slots are in the pmem window.

    The hybrid chooses here by the figures of the same profile that its simulation has.
    """
    setups = [("cow", 256, 1), ("cow", 16, 1), ("cow-load", 16, 1), ("cow-invalidate", 256, 1)]
    setups += [("microlog", dirty, 1) for dirty in (1, 16, 64, 256)]
    setups += [("hybrid", dirty, 1) for dirty in (16, 256)]
    setups += [("checksum", 256, 1), ("crc32c", 256, 1)]
    if machine.cores > 1:
        setups += [("cow", 256, machine.cores), ("microlog", 16, machine.cores)]
    return [
        _block_subject(
            "page-flush",
            f"{technique}, {dirty} dirty" + _by(threads),
            {
                "technique": technique,
                "dirty_lines": dirty,
                "threads": threads,
                "page_size": _PAGE,
                "pages": effort.region // 2 // _PAGE,
                "write": "ntstore",
            },
            from_profile=_page_flush_costs if technique == "hybrid" else None,
        )
        for technique, dirty, threads in setups
    ]


def _in_place(machine: HostMachine, effort: Effort, memory: str) -> list[Subject]:
    """Updates of 16 and 64 bytes and reads of what they maintain, as in Fig. 10."""
    setups = [
        (algorithm, "write", pattern, size, 1)
        for algorithm in METHODS
        if algorithm != "word"  # has 8 bytes
        for pattern in ("sequential", "random")
        for size in (16, 64)
    ]
    setups += [
        (algorithm, operation, "random", 16, 1)
        for algorithm in _READS_IN_PLACE
        for operation in ("read", "dependent-read")
    ]
    if machine.cores > 1:
        setups += [("fam", "write", "random", 16, machine.cores)]
    return [
        _block_subject(
            "in-place",
            f"{algorithm}, {operation} {size} B {pattern}" + _by(threads),
            {
                "algorithm": algorithm,
                "operation": operation,
                "pattern": pattern,
                "update_size": size,
                "threads": threads,
                "memory": memory,
                "region_size": effort.region,
            },
            further={"extra_instructions": _READS_IN_PLACE[algorithm]} if operation == "read" else {},
            cold=pattern == "random",
        )
        for algorithm, operation, pattern, size, threads in setups
    ]


def _interleave(machine: HostMachine, effort: Effort, memory: str) -> list[Subject]:
    """Lookups and inserts, plain and in groups of 20, as in Fig. 12."""
    setups = [("lookup", "none", "sfence", 1), ("lookup", "reads", "sfence", 20)]
    setups += [
        ("insert", interleave, fence, 1 if interleave == "none" else 20)
        for interleave in ("none", "reads", "writes", "both")
        for fence in ("sfence", "mfence")
    ]
    return [
        _block_subject(
            "interleave",
            f"{operation}, {'plain' if interleave == 'none' else interleave}"
            + (f", {fence}" if operation == "insert" else ""),
            {
                "operation": operation,
                "interleave": interleave,
                "group_size": group,
                "fence": fence,
                "threads": 1,
                "memory": memory,
                "region_size": effort.region,
            },
            cold=True,
        )
        for operation, interleave, fence, group in setups
    ]


def _contention(machine: HostMachine, effort: Effort, memory: str) -> list[Subject]:
    """A counter and a latch of one core, and those that all cores have in common; data are in DRAM."""
    counts = list(dict.fromkeys((1, machine.cores)))
    subjects = [contention(threads, work=work) for threads in counts for work in (0, 20, 50, 200, 1000)]
    for threads in counts:
        for percent, readers in (
            (0, "shared"),
            (95, "shared"),
            (95, "optimistic"),
            (100, "shared"),
            (100, "optimistic"),
        ):
            subjects.append(
                contention(threads, work=200, operation="latch", read_percent=percent, readers=readers)
            )
    return subjects


def _by(threads: int) -> str:
    return f", {threads} threads" if threads > 1 else ""


def _page_flush_costs(platform: Platform) -> dict[str, int]:
    return _native.page_flush_costs(platform.native())


def _block_subject(
    block: str,
    name: str,
    parameters: dict[str, int | str],
    from_profile: Callable[[Platform], dict[str, int]] | None = None,
    further: Mapping[str, int] = MappingProxyType({}),
    cold: bool = False,
) -> Subject:
    """Return a block with equal parameters here and there; `further` are those of its simulation alone."""
    return Subject(
        name=name,
        block=block,
        benchmark=block,
        host=parameters,
        kind=block,
        simulated={**parameters, **further},
        metric="ops_per_s",
        from_profile=from_profile,
        cold=cold,
    )


#: In the order of reports. A new driver: its benchmark in native/src/host, its row here.
HOST_BLOCKS: tuple[HostBlock, ...] = (
    HostBlock(
        "latency", "idle reads and single persists", ("chase", "latency"), ("latency",), _device("latency")
    ),
    HostBlock(
        "bandwidth", "lines read and written back to back", ("bandwidth",), ("bandwidth",), _device("bandwidth")
    ),
    HostBlock("log", "appends to transaction logs", ("log",), ("log",), _log),
    HostBlock("page-flush", "pages written from DRAM", ("page-flush",), ("page-flush",), _page_flush),
    HostBlock(
        "in-place", "failure-atomic updates in place, and reads", ("in-place",), ("in-place",), _in_place
    ),
    HostBlock("interleave", "lookups and inserts in leaves", ("interleave",), ("interleave",), _interleave),
    HostBlock(
        "contention",
        "counters and latches that cores have in common",
        ("contention",),
        ("contention",),
        _contention,
    ),
    HostBlock("engines", "transactions on storage engines", ("oltp",), ("oltp",), engines),
)


def host_blocks() -> dict[str, HostBlock]:
    """Return the blocks that this build can both measure and simulate."""
    benchmarks = _native.host_benchmarks()
    return {
        block.name: block
        for block in HOST_BLOCKS
        if set(block.benchmarks) <= set(benchmarks) and set(block.kinds) <= set(KINDS)
    }


def chosen_blocks(
    names: Iterable[str | type[CppPrototype]], progress: Callable[[str], None] = lambda doing: None
) -> list[HostBlock]:
    """Return the named blocks, or all where none is named.

    A prototype in C++ is ``FILE.py:CLASS``, or the class. It is compiled, of which `progress` is told.

    Raises
    ------
    ConfigError : unknown block, or a prototype that is none, is in Python, or does not compile.
    """
    known = host_blocks()
    chosen: dict[str, HostBlock] = {}
    for name in names:
        for part in [part.strip() for part in name.split(",")] if isinstance(name, str) else [name]:
            if not isinstance(part, str) or names_prototype(part):
                block = _program(part, progress)
                chosen[block.name] = block
            elif part in known:
                chosen[part] = known[part]
            else:
                raise ConfigError(f"--blocks: unknown block '{part}'; {nearest(part, known)}")
    return list(chosen.values()) or list(known.values())


def _program(prototype: str | type[CppPrototype], progress: Callable[[str], None]) -> HostBlock:
    program = load_prototype(prototype) if isinstance(prototype, str) else prototype
    if not (isinstance(program, type) and issubclass(program, CppPrototype)):
        raise ConfigError(
            f"--blocks: {shown(prototype)} is no CppPrototype; what is in Python cannot be timed here"
        )
    program.module(progress)
    name = program.__name__
    title = (program.__doc__ or name).partition("\n")[0]
    return HostBlock(
        name, title, (), (), lambda machine, effort, memory: list(ProgramSubject.of(program, memory))
    )
