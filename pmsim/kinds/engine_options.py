"""Parameters of kinds that run a storage engine: the engine, its tiers, the benchmark, the scale."""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, cast

from pydantic import BeforeValidator, Field, PlainValidator

from pmsim import _native
from pmsim.capacity import SHIPPED_PRICES
from pmsim.errors import ConfigError
from pmsim.kinds import log_place
from pmsim.kinds.capacities import GIB, Prices, capacity_columns, image_room
from pmsim.kinds.cleaning import CLEANING, Cleaning
from pmsim.kinds.cpu_costs import (
    OPERATION_CYCLES,
    TRANSACTION_CYCLES,
    OperationCycles,
    TransactionCycles,
)
from pmsim.kinds.latches import (
    FIXES,
    LATCHES,
    LOCKS,
    LOGS,
    CommitsOrAuto,
    EngineFixes,
    EngineLatches,
    EngineLocks,
    EngineLogs,
)
from pmsim.kinds.library import LIBRARY_CYCLES, EngineLibraryCycles
from pmsim.kinds.log_place import AUTO
from pmsim.kinds.logs import EngineLogName
from pmsim.kinds.system_call import (
    SYSTEM_CALL_COPIES,
    SYSTEM_CALL_CYCLES,
    SystemCallCopies,
    SystemCallCycles,
)
from pmsim.kinds.types import (
    LINE_BYTES,
    Count,
    CountOrZero,
    FileName,
    KindParameters,
    LineSize,
    LineSizeOrZero,
    Threads,
    or_word,
)
from pmsim.messages import shown
from pmsim.platforms import Platform
from pmsim.requests import Requests, requests_of
from pmsim.units import Measures, Quantity, parse

#: Data above this lie in a temporary file where they are on the SSD, instead of in memory [B].
_FILE_FROM = 2 * GIB
#: Of TPC-C: a loaded warehouse at a load factor of 0.66; no simulated number depends on it [B].
WAREHOUSE_BYTES = 111 * 10**6
WAREHOUSE_FILL = 0.66

#: Transactions measured of workloads whose tables grow, at full size: few, so that the size is still what was
#: asked for.
_GROWING = {"tpcc": 50_000, "ycsb-d": 1_000_000, "ycsb-e": 500_000}
#: And of their warm-up, at most. What TPC-C finds on PMem is replaced slowly: with 200,000, three tiers were
#: slower with 2 GiB of DRAM than with one.
_GROWING_WARMUP = {**_GROWING, "tpcc": 1_000_000}

#: Transactions of a warm-up for each page that DRAM and PMem take: 200 GiB of YCSB-B behind 128 GiB of DRAM are
#: steady after six, 500 GiB of YCSB-C behind 64 GiB and 256 GiB of PMem after six and a half.
_PER_PAGE = 10

#: Workloads whose transactions are long.
_SCANS = ("ycsb-scan", "table-scan")

#: Transactions of a run that the core accepts.
_MOST_TRANSACTIONS = 2**40
#: The core has the list.
if TYPE_CHECKING:
    EngineName = str
else:
    EngineName = Literal[tuple(_native.engines())]
WorkloadName = Literal[
    "ycsb-ro",
    "ycsb-rw",
    "ycsb-scan",
    "ycsb-a",
    "ycsb-b",
    "ycsb-c",
    "ycsb-d",
    "ycsb-e",
    "ycsb-f",
    "lookup8",
    "tpcc",
    "table-scan",
    "requests",
]


_SCALE = re.compile(r"\s*[+-]?\d{1,30}(?:/\d{1,30}|(?:\.\d{1,30})?(?:[eE][+-]?\d{1,2})?)\s*")


def _scale(value: object) -> str:
    try:
        # An exponent of a billion would exhaust the memory.
        if isinstance(value, bool) or not isinstance(value, int | str) or not _SCALE.fullmatch(str(value)):
            raise ValueError
        scale = Fraction(value)
    except (ValueError, ZeroDivisionError):
        raise ConfigError(f'{shown(value)} is not a scale; write "1/16", or 1 for full size') from None
    if not 0 < scale <= 1:
        raise ConfigError(f"{shown(value)} is no scale; choose one above 0 and at most 1")
    return str(scale)


def _number(low: float, high: float) -> Callable[[object], float]:
    def validate(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ConfigError(f"{shown(value)} is not a number from {low:g} to {high:g}; choose one")
        return float(value)

    return validate


def _count_or_auto(least: int) -> Callable[[object], int | str]:
    def validate(value: object) -> int:
        count = parse(value, Quantity.COUNT)
        if not least <= count <= _MOST_TRANSACTIONS:
            few = "few" if count < least else "many"
            raise ConfigError(f"{count} is too {few}; choose {least} to {_MOST_TRANSACTIONS}")
        return count

    return or_word("auto", validate)


def _length(value: object) -> int:
    count = parse(value, Quantity.COUNT)
    if not 1 <= count <= 2**30:
        raise ConfigError(f"{count} is no length; choose 1 to 2^30")
    return count


#: Of Zipf's law.
Exponent = Annotated[float, BeforeValidator(_number(0, 100))]
ExponentOrAuto = Annotated[float | Literal["auto"], PlainValidator(or_word("auto", _number(0, 100)))]
Probability = Annotated[float, BeforeValidator(_number(0, 1))]
CountOrAuto = Annotated[int | Literal["auto"], PlainValidator(_count_or_auto(1)), Measures(Quantity.COUNT)]
CountZeroOrAuto = Annotated[int | Literal["auto"], PlainValidator(_count_or_auto(0)), Measures(Quantity.COUNT)]
ScanLength = Annotated[
    int | Literal["table"], PlainValidator(or_word("table", _length)), Measures(Quantity.COUNT)
]


class EngineParameters(KindParameters):
    """A storage engine with a benchmark. Sizes and warehouses are those of the full size; see ``scale``."""

    sections: ClassVar[Mapping[str, str]] = {
        "engine": "engine",
        "workload": "benchmark",
        "dram_capacity": "tiers",
        "log_device": "log",
        "cpu_cycles": "CPU costs",
        "threads": "threads",
        "scale": "run",
    }

    engine: EngineName = Field("three-tier", description="how the tiers are used")
    cache_line_grained: bool = Field(True, description="three-tier: load cache lines instead of whole pages")
    mini_pages: bool = Field(True, description="three-tier: frames of 16 lines where little of a page is used")
    pointer_swizzling: bool = Field(True, description="three-tier: parents point to their children's frames")
    leaf_layout: Literal["sorted", "hash"] = Field(
        "sorted", description="leaves of the B+-tree: sorted, or hash tables; fptree has leaves of its own"
    )
    admission_entries: CountOrZero = Field(
        0,
        le=2**30,
        description="three-tier: pages in the admission set; 0: as many as DRAM holds and a quarter of PMem's",
    )
    migration_dr: Probability = Field(1.0, description="spitfire: PMem to DRAM when it is read")
    migration_dw: Probability = Field(1.0, description="spitfire: the same when a row is changed")
    migration_nr: Probability = Field(1.0, description="spitfire: SSD to PMem at a read")
    migration_nw: Probability = Field(1.0, description="spitfire: DRAM to PMem at an eviction")
    page_size: LineSize = Field(16384, description="bytes of a page [B]")

    workload: WorkloadName = Field("ycsb-ro", description="the benchmark")
    data_size: LineSize = Field(10 * GIB, description="bytes of the loaded tree, not of tpcc [B]")
    warehouses: Count = Field(16, description="of tpcc; 111 MB each at a load factor of 0.66")
    update_percent: CountOrZero = Field(0, description="updates of ycsb-rw, the rest are lookups [%]")
    scan_length: ScanLength = Field(
        100,
        description="of ycsb-scan and ycsb-e: rows at most, or 'table'; of table-scan: rows of a transaction",
    )
    scan_hint: bool = Field(False, description="scans tell the engine to load pages whole")
    scan_prefetch: bool = Field(
        False, description="the same, and they prefetch the next row of the page while they work on one"
    )
    row_cycles: CountOrZero = Field(
        0, le=1_000_000, description="of table-scan: CPU cycles spent on a row besides reading it"
    )
    zipf: Exponent = Field(
        1.0, description="skew of the keys of YCSB and lookup8 (exponent of Zipf's law); 0: uniform"
    )
    access: Literal["field", "row"] = Field(
        "field", description="what lookups and updates of YCSB are of: one field of 100 B, or the ten of a row"
    )
    fill_factor: Annotated[float, BeforeValidator(_number(0.1, 1))] = Field(
        0.66, description="part of each leaf that is used after loading in bulk"
    )
    loading: Literal["bulk", "inserts"] = Field(
        "bulk",
        description="rows are loaded in the order of their keys, or inserted in random order; not of tpcc",
    )

    requests: FileName = Field(
        "", description="of workload requests: a CSV or Parquet file, one row per request (docs/requests.md)"
    )
    row_size: Count = Field(
        1000, description="of workloads requests and table-scan: bytes of a row besides its key [B]"
    )

    dram_capacity: LineSizeOrZero = Field(2 * GIB, description="DRAM for pages [B]")
    pmem_capacity: LineSizeOrZero = Field(10 * GIB, description="PMem for pages [B]")
    ssd_capacity: LineSizeOrZero = Field(50 * GIB, description="SSD for pages [B]")
    page_write: Literal["ntstore", "store+clwb"] = Field(
        "ntstore", description="how the lines of a page are written to PMem"
    )
    log_device: Literal["auto", "pmem", "ssd", "unwritten", "none"] = Field(
        AUTO,
        description="where the write-ahead log is; auto: on PMem, where pmem_capacity is above 0 and the "
        "platform's is durable, else on the SSD; unwritten: its records are made and dropped; none: only "
        "what a rollback needs is made; nothing is durable with either",
    )
    log_algorithm: EngineLogName = Field(
        "poplog", description="how an entry of the log becomes durable as a whole"
    )
    log_layout: Literal["naive", "padded", "dram-tail"] = Field("padded", description="as of kind log")
    log_size: LineSize = Field(
        2**30,
        description="bytes of the log; old changes are written back as it fills [B]",
    )
    logs: EngineLogs = LOGS
    commits: CommitsOrAuto = AUTO
    cleaning: Cleaning = CLEANING
    cpu_cycles: OperationCycles = OPERATION_CYCLES
    transaction_cycles: TransactionCycles = TRANSACTION_CYCLES
    library_cycles: EngineLibraryCycles = LIBRARY_CYCLES
    system_call_cycles: SystemCallCycles = SYSTEM_CALL_CYCLES
    system_call_copies: SystemCallCopies = SYSTEM_CALL_COPIES

    threads: Threads = Field(1, description="virtual threads that run transactions")
    latches: EngineLatches = LATCHES
    fixes: EngineFixes = FIXES
    locks: EngineLocks = LOCKS
    scale: Annotated[str, PlainValidator(_scale)] = Field(
        "1/16", description="data, capacities, the log and what scale_caches says shrink together"
    )
    prices: Prices = SHIPPED_PRICES
    scale_caches: bool = Field(
        True,
        description="whether scale shrinks L2, L3 and the translations of PMem's modules as well",
    )
    warmup: CountZeroOrAuto = Field(
        "auto",
        description="transactions of the warm-up, at most; auto: 20 million x scale, more for large tiers, "
        "fewer where tables grow; of requests what precedes those measured",
    )
    operations: CountOrAuto = Field(
        "auto",
        description="transactions measured; auto: 5 million x scale, fewer where tables grow; half of requests",
    )

    @property
    def factor(self) -> Fraction:
        """``scale`` as a number."""
        return Fraction(self.scale)

    def scaled(self, size: int) -> int:
        """Return bytes at scale, in whole pages; what is not nothing stays at least one page."""
        return max(int(size * self.factor) // self.page_size, 1 if size else 0) * self.page_size

    @property
    def simulated_operations(self) -> int:
        """Transactions measured."""
        if isinstance(self.operations, int):
            return self.operations
        if self.workload == "requests":
            return max(1, len(recorded(self)) // 2)
        if self.scan_length == "table":
            return 8
        if self.workload in _SCANS:
            return max(200, int(500_000 * self.factor))
        return max(200, int(_GROWING.get(self.workload, 5_000_000) * self.factor))

    @property
    def simulated_warmup(self) -> int:
        """Transactions of the warm-up, at most."""
        if isinstance(self.warmup, int):
            return self.warmup
        if self.workload == "requests":
            measured = self.simulated_operations
            return max(0, len(recorded(self)) - measured - timed_warmup(measured))
        if self.scan_length == "table":
            return 2
        if self.workload in _SCANS:
            return max(200, int(1_000_000 * self.factor))
        filling = _PER_PAGE * self._pages_to_fill
        return max(200, int(_GROWING_WARMUP.get(self.workload, max(20_000_000, filling)) * self.factor))

    @property
    def _pages_to_fill(self) -> int:
        """Pages that DRAM and PMem take while a run lasts, at full size.

        Data that fit into PMem have been loaded there; those that fit into DRAM are read as a whole first.
        """
        home = _native.engines()[self.engine][1]
        if home == "dram" or self.data_size <= self.dram_capacity:
            return 0
        below = self.pmem_capacity if home == "ssd" and self.data_size > self.pmem_capacity else 0
        return min(self.dram_capacity + below, self.data_size) // self.page_size

    @property
    def locks_rows(self) -> bool:
        """Whether transactions lock rows: several threads, of which not all is wished away."""
        return self.workload == "tpcc" and self.threads > 1 and self.latches != "none" and self.locks != "none"

    @property
    def simulated_warehouses(self) -> int:
        """Warehouses at scale."""
        return int(self.warehouses * self.factor)

    @property
    def data(self) -> int:
        """Bytes of the loaded tables at full size, free space in pages included; of TPC-C about."""
        return self.warehouses * WAREHOUSE_BYTES if self.workload == "tpcc" else self.data_size

    @property
    def simulated_data(self) -> int:
        """Bytes of the loaded tables at scale, free space in pages included."""
        return (
            self.simulated_warehouses * WAREHOUSE_BYTES
            if self.workload == "tpcc"
            else self.scaled(self.data_size)
        )

    def file_contents(self) -> dict[str, str]:
        """Name what the file of requests holds."""
        return {"requests": recorded(self).digest} if self.workload == "requests" else {}

    def native(self) -> dict[str, int | str]:
        """Return what the core wants to know of the engine and the benchmark, at scale."""
        flags = (
            "cache_line_grained",
            "mini_pages",
            "pointer_swizzling",
            "scan_hint",
            "scan_prefetch",
        )
        reals = ("migration_dr", "migration_dw", "migration_nr", "migration_nw", "zipf", "fill_factor")
        same: tuple[str, ...] = (
            "engine",
            "leaf_layout",
            "page_size",
            "workload",
            "update_percent",
            "access",
            "loading",
        )
        same += (
            "page_write",
            "log_device",
            "log_algorithm",
            "log_layout",
            "logs",
            "commits",
            "cleaning",
            "cpu_cycles",
            "transaction_cycles",
            "library_cycles",
            "system_call_cycles",
            "system_call_copies",
            "row_cycles",
            "threads",
            "latches",
            "fixes",
        )
        sizes = ("dram_capacity", "pmem_capacity", "ssd_capacity", "data_size", "log_size")
        return {
            **{name: getattr(self, name) for name in same},
            **{name: int(getattr(self, name)) for name in flags},
            **{name: repr(getattr(self, name)) for name in reals},
            **{name: self.scaled(getattr(self, name)) for name in sizes},
            "admission_entries": math.ceil(self.admission_entries * self.factor),
            "warehouses": self.simulated_warehouses,
            # At scale a warehouse stands for several, of which threads meet in one at a time.
            "lock_copies": max(1, round(1 / self.factor)) if self.locks_rows else 0,
            "lock_early": int(self.locks == "early"),
            "scan_length": self.scan_length if isinstance(self.scan_length, int) else 0,
            "ssd_in_file": int(self.simulated_data > _FILE_FROM),
            "row_size": self.row_size,
            # The core reads a text, for which the binding takes bytes; a text of Python is Unicode.
            "requests": cast(str, recorded(self).packed) if self.workload == "requests" else "",
        }


def recorded(parameters: EngineParameters) -> Requests:
    """Return the requests that the parameters name."""
    return requests_of("requests", parameters.requests)


def timed_warmup(operations: int) -> int:
    """Return how many transactions the core runs for the caches of the CPU before it measures (oltp.cpp)."""
    return min(max(operations // 10, min(operations, 100)), 50_000)


def scaled_machine(platform: Platform, parameters: EngineParameters) -> Platform:
    """Return the platform with L2, L3 and address translations of PMem's modules at scale.

    No cache is smaller than the one above it.
    """
    if not parameters.scale_caches or parameters.factor == 1:
        return platform
    changes: dict[str, dict[str, int]] = {}
    private = 0
    for section in ("l2", "llc"):
        row = platform.value(section, "ways") * LINE_BYTES
        size = max(int(platform.value(section, "size") * parameters.factor) // row * row, row)
        if section == "l2":
            size = private = max(size, platform.value("l1", "size"))
        size = max(size, private)
        if size < platform.value(section, "size"):
            changes[section] = {"size": size}
    # How much of the data is in reach of a module's translations decides what a random read takes.
    translations = platform.value("pmem", "translation_entries")
    if (reached := max(int(translations * parameters.factor), 1)) < translations:
        changes["pmem"] = {"translation_entries": reached}
    source = f"parameter of the scenario: scale {parameters.scale}"
    return platform.with_values(changes, source=source) if changes else platform


def rows_in_memory(parameters: EngineParameters) -> tuple[str, int]:
    """Return what the rows take of this host's memory, and the parameter that decides on it."""
    home = _native.engines()[parameters.engine][1]
    data = parameters.simulated_data
    # FPTree packs leaves of its own. Data beyond their home are a point that does not fit, and are not loaded.
    if parameters.engine == "fptree" or data > parameters.scaled(getattr(parameters, f"{home}_capacity")):
        return "", 0
    if home == "ssd" and data > _FILE_FROM:
        return "", 0
    fill = WAREHOUSE_FILL if parameters.workload == "tpcc" else parameters.fill_factor
    return "warehouses" if parameters.workload == "tpcc" else "data_size", int(data * fill)


def engine_columns(machine: Platform, parameters: EngineParameters) -> dict[str, float | str]:
    """Return what figures want besides the parameters: sizes in GiB, the engine with its switches, the cost."""
    beside = Counter(log_place.room(parameters.engine, parameters.log_device, parameters.log_size))
    if not machine.value("controller", "memory_mode"):
        beside.update(image_room(parameters.engine, parameters.dram_capacity, parameters.ssd_capacity))
    elif parameters.ssd_capacity:
        beside.update(image_room(parameters.engine, parameters.pmem_capacity, parameters.ssd_capacity))
    return {
        "variant": _variant(parameters),
        "data_gib": parameters.data / GIB,
        **capacity_columns(
            machine,
            parameters.dram_capacity,
            parameters.pmem_capacity,
            parameters.ssd_capacity,
            parameters.prices,
            beside=beside,
        ),
    }


def _variant(parameters: EngineParameters) -> str:
    if parameters.engine != "three-tier":
        return parameters.engine
    switches = {
        "cache lines": parameters.cache_line_grained,
        "mini pages": parameters.mini_pages,
        "swizzling": parameters.pointer_swizzling,
    }
    parts = [] if all(switches.values()) else [name for name, on in switches.items() if on] or ["whole pages"]
    if parameters.leaf_layout == "hash":
        parts.append("hash leaves")
    return f"three-tier ({', '.join(parts)})" if parts else "three-tier"
