"""What a server can be made of: the parameters of its parts, with units and defaults."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self, cast

from pydantic import Field, ValidationError

from pmsim import arguments
from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.kinds import log_place
from pmsim.kinds.cleaning import CLEANING, Cleaning
from pmsim.kinds.cpu_costs import (
    OPERATION_CYCLES,
    TRANSACTION_CYCLES,
    OperationCycles,
    TransactionCycles,
)
from pmsim.kinds.engine_options import Exponent
from pmsim.kinds.latches import (
    FIXES,
    LATCHES,
    LOGS,
    CommitsOrAuto,
    EngineFixes,
    EngineLatches,
    EngineLogs,
)
from pmsim.kinds.library import LIBRARY_CYCLES, EngineLibraryCycles
from pmsim.kinds.logs import LogName
from pmsim.kinds.page_flush import PageTechnique
from pmsim.kinds.system_call import (
    SYSTEM_CALL_COPIES,
    SYSTEM_CALL_CYCLES,
    SystemCallCopies,
    SystemCallCycles,
)
from pmsim.kinds.types import (
    Count,
    KindParameters,
    LineSize,
    LineSizeOrZero,
    Memory,
    SectorSize,
    WordSize,
)
from pmsim.messages import config_error, shown, unicode_error
from pmsim.plain import plain
from pmsim.platforms import VOLATILE, Platform
from pmsim.requests import PACKED, requests_of

#: What the core takes as `first` and `count` of a request.
LARGEST = 2**64 - 1

#: What transactions may do (kind oltp has more).
Benchmark = Literal["ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e", "ycsb-f", "tpcc"]


class Part(KindParameters):
    """Base of the parts: a frozen model of one part's parameters."""

    name: ClassVar[str]

    def __init__(self, **given: Any) -> None:
        try:
            for text in (value for value in given.values() if isinstance(value, str)):
                text.encode()  # as the core will take it
            super().__init__(**plain(given))
        except ValidationError as error:
            raise config_error(error, type(self)) from None
        except UnicodeEncodeError:
            raise unicode_error(given) from None

    def settled(self, machine: Platform, workers: int) -> Self:
        """Return the part with what it leaves to the machine decided.

        Raises
        ------
        ConfigError : it asks for what the machine cannot do.
        """
        return self

    def kept_on_pmem(self) -> str:
        """Return what on PMem it recovers from; empty: nothing."""
        return ""

    def native(self) -> dict[str, int | str]:
        """Return the parameters as the core takes them, of a settled part."""
        return self.model_dump()


class ComputePart(Part):
    """Requests that keep a worker busy for a given time. ``compute.run``: `first` picoseconds."""

    name = "compute"


class LogPart(Part):
    """Transaction logs in memory, one of each worker's own.

    ``log.append``: the entries `first` to `first + count - 1`, then one commit. ``log.truncate``.
    """

    name = "log"
    algorithm: LogName = Field("poplog", description="how an entry becomes durable as a whole")
    layout: Literal["naive", "padded", "dram-tail"] = Field("padded", description="see kind log")
    entry_size: WordSize = Field(64, description="payload of an entry [B]")
    log_size: LineSize = Field(2**24, description="bytes of one log; truncated when full [B]")
    largest_group: Count = Field(256, description="entries of the largest request")
    memory: Memory = Field("pmem", description="where the logs are")

    def kept_on_pmem(self) -> str:
        """Return its entries."""
        return "the log" if self.memory == "pmem" else ""


class BlockLogPart(Part):
    """Transaction logs on the block device, one of each worker's own; requests as those of the log.

    ``block-log.append``, ``block-log.truncate``.
    """

    name = "block-log"
    entry_size: WordSize = Field(64, description="payload of an entry [B]")
    log_size: SectorSize = Field(2**24, description="bytes of one log; truncated when full [B]")
    largest_group: Count = Field(256, description="entries of the largest request")


class PagesPart(Part):
    """Pages in DRAM with durable copies in PMem; every worker has a share of its own.

    ``pages.flush``: writes `count` pages of the worker's share back, from its page `first` on.
    ``pages.touch``: changes them in DRAM.

    With ``checksum``, a page that a failure has torn is repaired from its snapshot; renewing that, after each
    flush, takes no time. With ``cow-load``, DRAM holds only the lines that have changed.
    """

    name = "pages"
    technique: PageTechnique = Field("hybrid", description="how a page is written, see kind page-flush")
    page_size: LineSize = Field(16384, description="bytes of a page, at most 64 KiB [B]")
    pages: Count = Field(256, description="pages of all workers together")
    dirty_lines: Count = Field(16, description="lines of a page that differ when it is flushed")
    spare_slots: Count = Field(4, description="free slots of each worker")

    def kept_on_pmem(self) -> str:
        """Return the durable copies."""
        return "the copies of pages"


class TablePart(Part):
    """Rows behind a hash directory. ``table.lookup``: row `first`. ``table.scan``: `count` rows."""

    name = "table"
    rows: Count = Field(2**20, description="rows")
    row_size: LineSize = Field(64, description="bytes of a row [B]")
    memory: Memory = Field("pmem", description="where the rows are")


class OnEngine(Part):
    """What parts with a storage engine have in common. `rows` are loaded."""

    engine: str = Field("nvm-direct", description="a name of `pmsim list engines`")
    rows: Count = Field(100_000, description="rows of the table")
    dram_capacity: LineSizeOrZero = Field(2**28, description="DRAM for pages [B]")
    pmem_capacity: LineSizeOrZero = Field(2**29, description="PMem for pages [B]")
    ssd_capacity: LineSizeOrZero = Field(0, description="SSD for pages [B]")
    page_size: LineSize = Field(16384, description="bytes of a page [B]")
    log_device: Literal["auto", "pmem", "ssd"] = Field(
        log_place.AUTO,
        description="where the log is; auto: on PMem, where pmem_capacity is above 0 and the platform's is "
        "durable, else on the SSD",
    )
    log_size: LineSize = Field(2**26, description="bytes of the log [B]")
    logs: EngineLogs = LOGS
    commits: CommitsOrAuto = log_place.AUTO
    cleaning: Cleaning = CLEANING
    cpu_cycles: OperationCycles = OPERATION_CYCLES
    transaction_cycles: TransactionCycles = TRANSACTION_CYCLES
    library_cycles: EngineLibraryCycles = LIBRARY_CYCLES
    system_call_cycles: SystemCallCycles = SYSTEM_CALL_CYCLES
    system_call_copies: SystemCallCopies = SYSTEM_CALL_COPIES
    latches: EngineLatches = LATCHES
    fixes: EngineFixes = FIXES

    def settled(self, machine: Platform, workers: int) -> Self:
        """Decide where the log is and how it is committed to, as the kinds do."""
        part = log_place.settled(machine, self, threads=workers, logs=self.logs)
        log_place.check_log(machine, part.engine, part.log_device)
        return part

    def kept_on_pmem(self) -> str:
        """Return the engine and what it keeps there."""
        return log_place.kept_on_pmem(self)


class EnginePart(OnEngine):
    """A storage engine with one table whose keys are 0, 1, 2 ...; each request is a transaction.

    ``engine.read``, ``engine.update``: `count` rows, that with key `first` and others scattered by it.
    ``engine.scan``: up to `count` rows from `first` on. ``engine.checkpoint``. Several workers wait for each
    other's latches, and their requests are acknowledged in the order of their execution.
    """

    name = "engine"
    row_size: WordSize = Field(1000, description="payload of a row, at most 4096 [B]")


class TransactionsPart(OnEngine):
    """A storage engine under a benchmark, whose rows the benchmark draws.

    ``transactions.next``: the next transaction of the worker that executes it. ``transactions.checkpoint``.
    Several workers wait for each other as those of `EnginePart`, with tpcc for locks of rows, too. It cannot be
    crashed.
    """

    name = "transactions"
    workload: Benchmark = Field("ycsb-a", description="YCSB over rows of 1,000 B, or TPC-C")
    zipf: Exponent = Field(1.0, description="skew of YCSB (exponent of Zipf's law); 0: uniform")
    warehouses: Count = Field(1, le=65535, description="of tpcc, instead of rows")

    def native(self) -> dict[str, int | str]:
        """Write the exponent as a text, as the core takes numbers with a fraction."""
        return super().native() | {"zipf": str(self.zipf)}


class RecordedPart(EnginePart):
    """A storage engine for the requests of a file (docs/requests.md), each a transaction of its own.

    ``recorded.request``: the request with number `first`, from 0. What it finds is compared with what the
    requests before it have left. `rows` are loaded; no fewer than requested keys exist at the start. It cannot
    be crashed.
    """

    name = "recorded"
    requests: str = Field(description="the file")

    def native(self) -> dict[str, int | str]:
        """Replace the file's name by the requests."""
        # The core reads a text, for which the binding takes bytes; a text of Python is Unicode.
        return super().native() | {
            "requests": cast(str, requests_of("recorded.requests", self.requests).packed)
        }


PARTS: dict[str, type[Part]] = {
    model.name: model
    for model in (
        ComputePart,
        LogPart,
        BlockLogPart,
        PagesPart,
        TablePart,
        EnginePart,
        RecordedPart,
        TransactionsPart,
    )
}

#: A part as users give it: a model, or its name and parameters with units.
PartLike = Part | tuple[str, Mapping[str, Any]]


def find_part(key: str, name: str) -> type[Part]:
    """Return the model of a part; `key` says who asks.

    Raises
    ------
    ConfigError : no part has this name.
    """
    if name not in PARTS:
        raise ConfigError(f"{key}: unknown part '{name}'; {nearest(name, PARTS)}")
    return PARTS[name]


def part_of(part: PartLike) -> Part:
    """Return a part as a model.

    Raises
    ------
    ConfigError : unknown part, unknown parameter, wrong type or unit.
    """
    if isinstance(part, Part):
        return part
    if not isinstance(part, tuple | list) or len(part) != 2:
        raise ConfigError(f'parts: {shown(part)} is no part; give a model such as LogPart(), or ("log", {{}})')
    name, given = arguments.text("parts", part[0]), part[1]
    model = find_part("parts", name)
    key = f"parts.{name}"
    given = arguments.table(key, given)
    try:
        return model(**given)
    except ConfigError as error:
        raise error.prefixed(key) from None


def native_parts(
    parts: Sequence[PartLike], machine: Platform, workers: int, crash: bool
) -> list[tuple[str, dict[str, int | str]]]:
    """Return the parts of a server as the core takes them.

    Raises
    ------
    ConfigError : not a list, or a part that cannot be, or has nothing to recover from where the power may fail.
    """
    # A model is iterable, too, over its fields.
    if isinstance(parts, str | bytes | Mapping | Part) or not isinstance(parts, Iterable):
        raise ConfigError(f"parts: {shown(parts)} is not a list of parts; put it in brackets")
    return [_settled(part_of(part), machine, workers, crash) for part in parts]


def _settled(part: Part, machine: Platform, workers: int, crash: bool) -> tuple[str, dict[str, int | str]]:
    try:
        part = part.settled(machine, workers)
    except ConfigError as error:
        raise error.prefixed(f"parts.{part.name}") from None
    in_memory_mode = bool(machine.value("controller", "memory_mode"))
    if crash and (in_memory_mode or machine.pmem_persistence == VOLATILE) and (kept := part.kept_on_pmem()):
        other = "controller.memory_mode = false" if in_memory_mode else "pmem_persistence = 'durable'"
        raise ConfigError(
            f"parts.{part.name}: pmem of platform '{machine.name}' is volatile, nothing restarts from it "
            f"({kept}); choose parts and capacities without it, or a platform with {other}"
        )
    return part.name, part.native()


def largest(made_of: Sequence[tuple[str, Mapping[str, Any]]], kind: str) -> tuple[int, int]:
    """Return the largest `first` and `count` that a kind of request takes, of parts as the core takes them.

    The core refuses others, too, but only when a worker begins with them: too late for who has asked.
    """
    name, _, request = kind.partition(".")
    given = next((given for part, given in made_of if part == name), {})
    first = count = LARGEST
    if "largest_group" in given and request == "append":
        count = given["largest_group"]
    if name == RecordedPart.name:
        first = len(given["requests"]) // PACKED.itemsize - 1
    return first, count
