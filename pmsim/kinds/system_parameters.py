"""Parameters of kind "system"."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from pmsim.capacity import SHIPPED_PRICES
from pmsim.des.times import MS, US, S
from pmsim.errors import ConfigError
from pmsim.kinds.capacities import Prices
from pmsim.kinds.cleaning import CLEANING, Cleaning
from pmsim.kinds.cpu_costs import (
    OPERATION_CYCLES,
    TRANSACTION_CYCLES,
    OperationCycles,
    TransactionCycles,
)
from pmsim.kinds.engine_options import CountZeroOrAuto, EngineName, ExponentOrAuto
from pmsim.kinds.latches import CommitsOrAuto
from pmsim.kinds.log_place import AUTO
from pmsim.kinds.logs import EngineLogName
from pmsim.kinds.page_flush import PageTechnique
from pmsim.kinds.types import (
    Count,
    CountOrZero,
    FileName,
    KindParameters,
    LineSize,
    LineSizeOrZero,
    RowSize,
    Threads,
    WordSize,
)
from pmsim.requests import Requests, requests_of
from pmsim.units import Measures, Quantity, parse


def _duration(value: object) -> int:
    time = parse(value, Quantity.TIME)
    if not 0 <= time <= 10**16:
        raise ConfigError(f"{time} ps is no duration; choose 0 to 10000 s")
    return time


Duration = Annotated[int, BeforeValidator(_duration), Measures(Quantity.TIME)]


class SystemParameters(KindParameters):
    """Parameters of kind "system"."""

    sections: ClassVar[Mapping[str, str]] = {
        "study": "study",
        "algorithm": "log",
        "rows": "table, engine",
        "engine": "engine",
        "group_size": "group-commit",
        "technique": "propagation",
        "crash_at": "restart, long-run",
    }

    study: Literal["load", "recorded", "tenants", "group-commit", "propagation", "restart", "long-run"] = Field(
        "load",
        description="load: latency against offered load; recorded: the requests of a file, when they came; "
        "tenants: requests beside scans; group-commit: entries in groups; propagation: page writes in the "
        "background or not; restart: a power failure under load; long-run: a load for hours, which resumes "
        "after an interruption",
    )
    service: Literal["log", "block-log", "table", "engine"] = Field(
        "log", description="what the requests are: appends, lookups, or transactions on an engine"
    )
    workers: Threads = Field(4, description="threads that serve requests; group-commit has one")
    load_percent: CountOrZero = Field(
        50, description="offered load in percent of the saturation, which is found by bisection"
    )
    rate: CountOrZero = Field(
        0, le=10**12, description="requests per second instead of load_percent; 0: load_percent"
    )
    # Fewer would leave batches empty, and of so few it may be that none comes.
    requests: Count = Field(50_000, ge=20, le=10**9, description="requests that count, about")

    recording: FileName = Field(
        "", description="recorded: a CSV or Parquet file, one row per request and its time (docs/requests.md)"
    )
    speed_percent: Count = Field(
        100, le=10**6, description="recorded: how fast requests come, in percent of how they did"
    )

    algorithm: EngineLogName = Field("poplog", description="of the log")
    entry_size: WordSize = Field(64, description="payload of a log entry [B]")
    log_size: LineSize = Field(
        2**22, ge=4096, le=2**40, description="bytes of one worker's log; truncated when full [B]"
    )

    rows: Count = Field(2**20, description="rows of the table or engine")
    zipf: ExponentOrAuto = Field(
        AUTO,
        description="skew of the rows that are asked for (exponent of Zipf's law); 0: uniform; auto: 1 of "
        "ycsb, as in kind oltp, else 0",
    )
    row_size: RowSize = Field(
        256,
        description="bytes of a row; of a table whole lines, of an engine a multiple of 8, of fptree 8 [B]",
    )
    scanners: CountOrZero = Field(1, le=65536, description="tenants: clients that scan without a pause")
    scan_rows: Count = Field(1_000, description="tenants: rows of a scan")

    engine: EngineName = Field("nvm-direct", description="the storage engine")
    dram_capacity: LineSize = Field(2**28, description="engine: DRAM for pages [B]")
    pmem_capacity: LineSizeOrZero = Field(2**30, description="engine: PMem for pages [B]")
    ssd_capacity: LineSizeOrZero = Field(0, description="engine: SSD for pages [B]")
    workload: Literal["rows", "ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e", "ycsb-f", "tpcc"] = Field(
        "rows",
        description="engine: what its transactions do; rows: read or update one of row_size bytes; ycsb: the "
        "core workloads, over rows of 1,000 B; tpcc: its five transactions, without think times",
    )
    warehouses: Count = Field(
        1, le=65535, description="of tpcc, instead of rows; 105 MB each as they are loaded"
    )
    log_device: Literal["auto", "pmem", "ssd"] = Field(
        AUTO,
        description="engine: where its write-ahead log is; auto: on PMem, where pmem_capacity is above 0 "
        "and the platform's is durable, else on the SSD",
    )
    commits: CommitsOrAuto = AUTO
    cleaning: Cleaning = CLEANING
    cpu_cycles: OperationCycles = OPERATION_CYCLES
    transaction_cycles: TransactionCycles = TRANSACTION_CYCLES
    update_percent: CountOrZero = Field(
        100, le=100, description="engine, of workload rows: updates, the rest are reads [%]"
    )
    warmup: CountZeroOrAuto = Field(
        AUTO,
        description="requests that have been served when the clock starts; 0: the log is empty, tiers are as "
        "loading has left them, caches are cold; auto: 0, and of a table, under load or of tenants, what "
        "fills these",
    )
    prices: Prices = SHIPPED_PRICES

    group_size: Count = Field(16, le=65536, description="group-commit: entries of a full group")
    timeout: Duration = Field(10 * US, description="group-commit: longest time that a group gathers")

    technique: PageTechnique = Field("cow", description="propagation: of page flushes")
    background: Literal["none", "writers"] = Field(
        "writers", description="propagation: who writes dirty pages back: threads of their own, or transactions"
    )
    writers: Threads = Field(2, description="propagation: background threads")
    page_size: LineSize = Field(16384, le=65536, description="propagation: bytes of a page [B]")
    pages: Count = Field(4_096, le=2**24, description="propagation: pages that transactions change")
    dirty_lines: Count = Field(16, description="propagation: lines of a page that differ when it is written")
    dirty_limit: Count = Field(256, description="propagation: dirty pages that fit into the buffer")
    dirty_target: CountOrZero = Field(128, description="propagation: dirty pages that writers leave alone")

    crash_at: Duration = Field(2 * MS, description="restart: when the power fails")
    restart_after: Duration = Field(MS, description="restart: from the failure until recovery begins")
    duration: Duration = Field(10 * MS, description="restart, long-run: length of the run")
    windows: Count = Field(
        100, description="restart, long-run: time windows; one row of the result each, at most 256"
    )
    segment: Duration = Field(
        60 * S,
        description="long-run: what an interruption can cost; then workers finish, and the next segment begins "
        "on a fresh server",
    )

    def file_contents(self) -> dict[str, str]:
        """Name what the recording holds."""
        return {"recording": recording_of(self).timed_digest} if self.study == "recorded" else {}


def recording_of(parameters: SystemParameters) -> Requests:
    """Return the requests that the parameters name.

    Raises
    ------
    ConfigError : the file is missing, or is no file of requests.
    """
    return requests_of("recording", parameters.recording)
