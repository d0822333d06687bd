"""Kind "oltp": YCSB and TPC-C on a storage engine over DRAM, persistent memory and SSD."""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from pmsim.errors import CapacityError, ConfigError
from pmsim.kinds import engine_memory_mode, intervals, log_place
from pmsim.kinds.applies import ENGINE
from pmsim.kinds.base import COUNTER_PREFIX, Kind, Metric, Scalar
from pmsim.kinds.buildable import check_workload
from pmsim.kinds.capacities import image_room
from pmsim.kinds.counters import engine_counters
from pmsim.kinds.does_not_fit import DoesNotFit
from pmsim.kinds.engine_checks import check_engine
from pmsim.kinds.engine_messages import in_parameters
from pmsim.kinds.engine_options import (
    EngineParameters,
    engine_columns,
    rows_in_memory,
    scaled_machine,
)
from pmsim.kinds.filling import is_filling
from pmsim.kinds.machine_options import with_options
from pmsim.kinds.measurement import BATCHED_LATENCY_METRICS, COUNTED_METRICS, Measurement, measure_lanes
from pmsim.kinds.types import FlagOrPlatform
from pmsim.platforms import Platform

#: Metric per transaction: the engine's counter, and what it means.
_PER_TRANSACTION = {
    "page_fixes_per_tx": ("fixes", "pages fixed"),
    "page_table_lookups_per_tx": ("page_table_lookups", "lookups in the page table"),
    "swizzled_fixes_per_tx": ("swizzled_fixes", "pages fixed by a swizzled pointer"),
    "dram_misses_per_tx": ("dram_misses", "pages fixed that had no frame in DRAM"),
    "lines_pmem_to_dram_per_tx": ("lines_loaded", "cache lines loaded from PMem to DRAM"),
    "pages_pmem_to_dram_per_tx": ("pages_loaded_pmem", "frames in DRAM made over pages on PMem"),
    "pages_ssd_to_dram_per_tx": ("pages_loaded_ssd", "pages loaded from SSD to DRAM"),
    "pages_ssd_to_pmem_per_tx": ("pages_ssd_to_pmem", "pages loaded from SSD to PMem (spitfire)"),
    "lines_dram_to_pmem_per_tx": (
        "lines_written_back",
        "cache lines written from DRAM to pages on PMem: back, or of admitted pages",
    ),
    "pages_dram_to_pmem_per_tx": ("pages_written_pmem", "pages written from DRAM to PMem: back, or admitted"),
    "pages_admitted_per_tx": ("admissions", "pages admitted to PMem"),
    "pages_denied_per_tx": ("denials", "pages denied admission to PMem"),
    "pages_to_ssd_per_tx": ("pages_written_ssd", "pages written to SSD"),
    "evictions_dram_per_tx": ("evictions_dram", "frames evicted from DRAM"),
    "evictions_pmem_per_tx": ("evictions_pmem", "pages evicted from PMem"),
    "mini_pages_per_tx": ("mini_allocated", "mini pages allocated"),
    "promotions_per_tx": ("promotions", "mini pages promoted to full pages"),
    "swizzles_per_tx": ("swizzles", "pointers swizzled"),
    "unswizzles_per_tx": ("unswizzles", "pointers unswizzled"),
    "log_bytes_per_tx": ("log_bytes", "bytes appended to the log"),
    "checkpoints_per_tx": ("checkpoints", "checkpoints"),
}
_WEAR = {
    "wear_writes": "line writes to pages on PMem",
    "wear_lines": "lines of pages on PMem that were written",
    "wear_maximum": "writes of the line that was written most",
    "wear_p50": "median of the writes of a line that was written",
    "wear_p90": "90th percentile of the writes of a line that was written",
    "wear_p99": "99th percentile of the writes of a line that was written",
    "wear_p999": "99.9th percentile of the writes of a line that was written",
}
_PS_PER_DAY = 86_400e12
#: Metric: the counter of the section.
_SHARES = {"pages_time_share": "pages_ps", "log_time_share": "log_ps", "locks_time_share": "locks_ps"}
_RANK = "wear_rank_"
_RANK_COUNTER = COUNTER_PREFIX + _RANK


class OltpParameters(EngineParameters):
    """Parameters of kind "oltp"."""

    memory_mode: FlagOrPlatform = Field(
        "platform",
        description="PMem is main memory, pmem_capacity large, and DRAM of dram_capacity its cache; "
        "or as the platform has it",
    )
    wear: bool = Field(True, description="count the writes of every line of the pages on PMem")
    rows: Literal["point", "wear"] = Field(
        "point", description="rows of the result: one per point, or one per rank of the lines by their writes"
    )
    breakdown: bool = Field(
        False, description="tell what part of the time goes into moving pages, the log, and locks of rows"
    )
    check: bool = Field(
        False,
        description="check the use of pages while it runs, and afterwards the tables (TPC-C: consistency "
        "conditions 1 to 4) and the engine's structures",
    )


class Oltp(Kind[OltpParameters]):
    """Transactions on a storage engine (van Renen et al., Managing Non-Volatile Memory in Database Systems)."""

    name = "oltp"
    title = "Transactions on a storage engine"
    default_metric = "transactions_per_s"
    metrics = (
        Metric("transactions_per_s", "1/s", "transactions per second"),
        *intervals.ends_of("transactions_per_s", "1/s"),
        Metric("fits", "", "1: the engine holds the data; 0: it does not, and nothing was simulated"),
        *BATCHED_LATENCY_METRICS,
        Metric(
            "dram_hit_ratio",
            "",
            "part of the page fixes that found the page in DRAM; memory mode: of the lines",
        ),
        *(Metric(name, "", f"{meaning} per transaction") for name, (_, meaning) in _PER_TRANSACTION.items()),
        Metric("lines_per_cold_read", "", "cache lines that a point read loaded whose leaf came from PMem"),
        Metric("pmem_lines_read_per_tx", "", "cache lines read from PMem per transaction, log included"),
        Metric("pmem_lines_written_per_tx", "", "cache lines written to PMem per transaction, log included"),
        Metric("ssd_reads_per_tx", "", "read commands to the SSD per transaction"),
        Metric("ssd_writes_per_tx", "", "write commands to the SSD per transaction"),
        *(Metric(name, "", meaning) for name, meaning in _WEAR.items()),
        Metric(
            "pmem_writes_per_day",
            "1/d",
            "how often a day the capacity of PMem, log included, is written at this rate",
        ),
        Metric("pages_time_share", "", "part of the time in which pages move between tiers, of breakdown"),
        Metric("log_time_share", "", "part of the time in which transactions become durable, of breakdown"),
        Metric("locks_time_share", "", "part of the time in which rows are locked or waited for, of breakdown"),
        Metric("core_transfers_per_tx", "", "cache lines that other cores gave up per transaction"),
        Metric("latch_waits_per_tx", "", "latches waited for per transaction"),
        Metric("latch_restarts_per_tx", "", "optimistic reads repeated per transaction"),
        Metric("latch_wait_share", "", "part of the time of all threads spent waiting for latches"),
        Metric("commits_per_group", "", "log entries that one flush of the SSD made durable; 0: no groups"),
        Metric(
            "table_rows", "", "rows at the end, over all tables: those loaded, and what the run has inserted"
        ),
        Metric("rolled_back_ratio", "", "part of the transactions that rolled back, as the benchmark asks for"),
        Metric("warmup_transactions", "", "transactions of the warm-up"),
        Metric(
            "steady",
            "",
            "1: the warm-up ended because transfers between tiers had become steady, DRAM and PMem gave up as "
            "many pages as they took, and the second half of what was measured was as fast as the first, "
            "within 5 % or what chance does to it",
        ),
        Metric(
            "log_reused",
            "",
            "1: the log has been full before the end, and is used again; 0: it never has been; empty where "
            "nothing is logged to one",
        ),
        *COUNTED_METRICS,
    )
    unsteady = (
        "transfers between tiers were still changing when the warm-up ended, DRAM or PMem was still filling, "
        "or the second half of what was measured was faster or slower than the first; raise warmup, or "
        "operations"
    )
    uses = ENGINE
    parameter_model = OltpParameters

    def metric_list(self, parameters: OltpParameters) -> tuple[Metric, ...]:
        """Add the columns of ``rows = "wear"``."""
        ranks = (
            Metric("wear_rank", "", "rank of a line by its writes"),
            Metric("wear_rank_writes", "", "writes of the line"),
        )
        return (*self.metrics, *ranks) if parameters.rows == "wear" else self.metrics

    def counters(self) -> Mapping[str, Metric]:
        """Add what the engines count."""
        return {**super().counters(), **engine_counters()}

    def machine(self, platform: Platform, parameters: OltpParameters) -> Platform:
        """Apply ``memory_mode``, and ``scale`` to the caches."""
        machine = scaled_machine(with_options(platform, mode=_mode(parameters.memory_mode)), parameters)
        return engine_memory_mode.with_dram_cache(machine, parameters) if _in_memory_mode(machine) else machine

    def settled(self, machine: Platform, parameters: OltpParameters) -> OltpParameters:
        """Decide where the log is, and how threads commit to it."""
        seen = _seen(machine, parameters)
        decided = log_place.settled(machine, seen, threads=parameters.threads, logs=parameters.logs)
        return parameters.model_copy(update={"log_device": decided.log_device, "commits": decided.commits})

    def check(self, machine: Platform, parameters: OltpParameters) -> None:
        """Refuse what the machine cannot hold; what the engine cannot hold is a point that does not fit."""
        if _in_memory_mode(machine):
            engine_memory_mode.check(parameters)
            if parameters.rows == "wear":
                raise ConfigError("rows: wear; in memory mode no page has its place on PMem, choose 'point'")
        check_engine(machine, parameters)
        check_workload("oltp", machine, _native(_seen(machine, parameters)), parameters)

    def least_host_memory(self, parameters: OltpParameters) -> tuple[str, int]:
        """Return the bytes of the rows."""
        in_memory_mode = parameters.memory_mode is True
        return rows_in_memory(engine_memory_mode.seen_by_engine(parameters) if in_memory_mode else parameters)

    def ran_for(self, metrics: Mapping[str, int | float]) -> str:
        """Say how long the warm-up was."""
        return f"after {metrics['warmup_transactions']:,.0f} transactions"

    def columns(self, machine: Platform, parameters: OltpParameters) -> dict[str, Scalar]:
        """Add the variant, the sizes in GiB and the cost."""
        columns = super().columns(machine, parameters) | engine_columns(machine, parameters)
        if _in_memory_mode(machine):
            return columns | {"memory_mode": True, "variant": f"{columns['variant']}, memory mode"}
        return columns | {"memory_mode": False}

    def run(self, machine: Platform, parameters: OltpParameters, seed: int) -> dict[str, int | float]:
        """Load, warm up and measure."""
        return self.run_lanes([machine], parameters, seed)[0]

    def lost_without_power(
        self, machine: Platform, parameters: OltpParameters, metrics: Mapping[str, int | float]
    ) -> str:
        """Name the engine that keeps on volatile PMem what it would restart from."""
        return log_place.kept_on_volatile_pmem(machine, parameters)

    def executes_regardless_of_time(self, parameters: OltpParameters) -> bool:
        """One thread does the same whatever its accesses cost; several take turns by time."""
        return parameters.threads == 1

    def run_lanes(
        self, machines: Sequence[Platform], parameters: OltpParameters, seed: int
    ) -> list[dict[str, int | float]]:
        """Load and warm up once, and measure each machine."""
        seen = _seen(machines[0], parameters)
        if seen is not parameters and (reason := engine_memory_mode.without_image(parameters)):
            return [DoesNotFit.of(self.metric_list(parameters), reason) for _ in machines]
        try:
            runs = measure_lanes("oltp", machines, _native(seen), seed)
        except CapacityError as error:
            reason = str(in_parameters(error, seen))
            if seen is not parameters:
                reason = engine_memory_mode.reason_of(reason)
            return [DoesNotFit.of(self.metric_list(parameters), reason) for _ in machines]
        except ConfigError as error:
            raise in_parameters(error, parameters) from None
        return [_metrics(run, parameters, seen) for run in runs]

    def curve(self, parameters: OltpParameters) -> tuple[str, str] | None:
        """Wear by rank, where the rows are that."""
        return ("wear_rank", "wear_rank_writes") if parameters.rows == "wear" else None

    def rows(self, metrics: Mapping[str, int | float]) -> list[dict[str, int | float]]:
        """Return one row, or one per rank, in their order."""
        ranks = {
            int(name.removeprefix(_RANK_COUNTER)): name for name in metrics if name.startswith(_RANK_COUNTER)
        }
        if not ranks:
            return [dict(metrics)]
        rows = [
            {**metrics, "wear_rank": rank, "wear_rank_writes": metrics[name]}
            # The core's come in the order of their names: 1, 10, 100, ..., 2.
            for rank, name in sorted(ranks.items())
        ]
        return [row for row in rows if row["wear_rank_writes"]] or rows[:1]


def _native(parameters: OltpParameters) -> dict[str, int | str]:
    operations = parameters.simulated_operations
    return parameters.native() | {
        "operations": operations,
        "warmup": parameters.simulated_warmup,
        "batches": min(intervals.BATCHES, operations),
        "wear": int(parameters.wear),
        "check": int(parameters.check),
        "breakdown": int(parameters.breakdown),
    }


def _mode(memory_mode: bool | str) -> str:
    if isinstance(memory_mode, bool):
        return "memory-mode" if memory_mode else "app-direct"
    return memory_mode


def _in_memory_mode(machine: Platform) -> bool:
    return machine.value("controller", "memory_mode") == 1


def _seen(machine: Platform, parameters: OltpParameters) -> OltpParameters:
    """Return the parameters as the engine sees them."""
    if not _in_memory_mode(machine):
        return parameters
    return engine_memory_mode.seen_by_engine(parameters.model_copy(update={"wear": False}))


def _hit_ratio(run: Measurement, parameters: OltpParameters) -> float:
    """Return the part of the pages, or in memory mode of the lines, that were found in DRAM."""
    count, facts = run.counters, run.facts
    # Not over hits and misses: a frame that only points to PMem (redirect-bm) is neither.
    fixes = facts.get("engine.fixes", 0.0) - facts.get("engine.pages_allocated", 0.0)
    if lines := count["memory_mode_hits"] + count["memory_mode_misses"]:
        return count["memory_mode_hits"] / lines
    if "engine.dram_hits" not in facts or not fixes:
        return float(parameters.engine == "main-memory")
    return facts["engine.dram_hits"] / fixes


def _metrics(run: Measurement, parameters: OltpParameters, seen: OltpParameters) -> dict[str, int | float]:
    facts, count, transactions = run.facts, run.counters, run.total.operations
    engine = {name: facts.get(f"engine.{name}", 0.0) for name, _ in _PER_TRANSACTION.values()}
    cold = facts.get("engine.cold_reads", 0.0)
    low, high = intervals.of_throughput(run.batch_ends_ps, transactions)
    metrics: dict[str, int | float] = {
        "transactions_per_s": run.total.operations_per_s,
        "transactions_per_s_low": low,
        "transactions_per_s_high": high,
        "fits": 1,
        "dram_hit_ratio": _hit_ratio(run, parameters),
        "lines_per_cold_read": facts["engine.cold_read_lines"] / cold if cold else 0.0,
        "pmem_lines_read_per_tx": count["pmem_read_lines"] / transactions,
        "pmem_lines_written_per_tx": count["pmem_write_lines"] / transactions,
        "ssd_reads_per_tx": count["block_reads"] / transactions,
        "ssd_writes_per_tx": count["block_writes"] / transactions,
        "pmem_writes_per_day": _writes_per_day(run, parameters, seen),
        "core_transfers_per_tx": count["core_transfers"] / transactions,
        "latch_waits_per_tx": count["latch_waits"] / transactions,
        "latch_restarts_per_tx": count["latch_restarts"] / transactions,
        # A single transaction may end at the very moment at which another thread's, the warm-up's last, does.
        "latch_wait_share": count["latch_wait_ps"] / max(run.total.elapsed_ps * parameters.threads, 1),
        "commits_per_group": count["block_gathers"] / max(count["block_groups"], 1),
        "table_rows": facts["rows"],
        "rolled_back_ratio": facts["rolled_back"] / transactions,
        "warmup_transactions": facts["warmup_transactions"],
        "steady": 0 if run.steady == 0 or is_filling(facts, transactions) else facts["steady"],
        "log_reused": facts.get("log_reused", math.nan) if facts.get("engine.log_bytes") else math.nan,
    }
    metrics |= _breakdown(count) if parameters.breakdown else dict.fromkeys(_SHARES, math.nan)
    metrics |= run.latencies()
    metrics |= {name: engine[counter] / transactions for name, (counter, _) in _PER_TRANSACTION.items()}
    metrics |= {name: facts.get(name, 0.0 if seen.wear else math.nan) for name in _WEAR}
    if parameters.rows == "wear":
        ranks = {COUNTER_PREFIX + name: value for name, value in facts.items() if name.startswith(_RANK)}
        metrics |= ranks | {"wear_rank": 1, "wear_rank_writes": facts.get(f"{_RANK}1", 0.0)}
    counters = {COUNTER_PREFIX + name: value for name, value in facts.items() if name.startswith("engine.")}
    return metrics | counters | run.counted()


def _writes_per_day(run: Measurement, parameters: OltpParameters, seen: OltpParameters) -> float:
    """Return what is written to the medium in a day over the capacity, at full size, as endurance is specified.

    Time does not shrink with the scale, and so neither do rates.
    """
    log = log_place.room(parameters.engine, parameters.log_device, parameters.log_size)
    capacity = parameters.pmem_capacity + log.get("pmem", 0)
    if seen is parameters:
        image = image_room(parameters.engine, parameters.dram_capacity, parameters.ssd_capacity)
        capacity += image.get("pmem", 0)
    written = run.counters["pmem_media_write_blocks"] * run.pmem_block_bytes
    days = run.total.elapsed_ps / _PS_PER_DAY
    return written / days / capacity if capacity and days else 0.0


def _breakdown(count: Mapping[str, int]) -> dict[str, float]:
    """Return the parts of the time, over all threads, by the counters of sections."""
    total = sum(count[name] for name in ("work_ps", *_SHARES.values()))
    return {metric: count[counter] / total if total else 0.0 for metric, counter in _SHARES.items()}
