"""What ``pmsim measure`` can run on this machine: one row per block."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pmsim import _native
from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.host_machine import HostMachine
from pmsim.host_subjects import DeviceSubjects
from pmsim.host_timing import Effort, Subject
from pmsim.kinds import KINDS

MIB = 2**20


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
        for algorithm in ("classic", "header", "header-dancing", "rawl", "poplog")
        for layout in ("naive", "padded", "dram-tail")
    ]
    setups += [("pmemlog", "naive", 512, 1)]
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


def _by(threads: int) -> str:
    return f", {threads} threads" if threads > 1 else ""


def _block_subject(block: str, name: str, parameters: dict[str, int | str]) -> Subject:
    return Subject(
        name=name,
        block=block,
        benchmark=block,
        host=parameters,
        kind=block,
        simulated=parameters,
        metric="ops_per_s",
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
)


def host_blocks() -> dict[str, HostBlock]:
    """Return the blocks that this build can both measure and simulate."""
    benchmarks = _native.host_benchmarks()
    return {
        block.name: block
        for block in HOST_BLOCKS
        if set(block.benchmarks) <= set(benchmarks) and set(block.kinds) <= set(KINDS)
    }


def chosen_blocks(names: Iterable[str]) -> list[HostBlock]:
    """Return the named blocks, or all where none is named.

    Raises
    ------
    ConfigError : unknown block.
    """
    known = host_blocks()
    wanted = list(dict.fromkeys(part.strip() for name in names for part in name.split(",")))
    for name in wanted:
        if name not in known:
            raise ConfigError(f"--blocks: unknown block '{name}'; {nearest(name, known)}")
    return [known[name] for name in wanted] or list(known.values())
