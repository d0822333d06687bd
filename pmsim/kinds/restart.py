"""Kind "restart": throughput over time after a storage engine has been restarted."""

import bisect
import itertools
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from pmsim.errors import CapacityError, ConfigError
from pmsim.kinds import log_place
from pmsim.kinds.applies import ENGINE
from pmsim.kinds.base import COUNTER_PREFIX, Kind, Metric, Scalar
from pmsim.kinds.buildable import check_workload
from pmsim.kinds.does_not_fit import DoesNotFit
from pmsim.kinds.engine_checks import check_engine
from pmsim.kinds.engine_messages import in_parameters
from pmsim.kinds.engine_options import (
    EngineParameters,
    engine_columns,
    rows_in_memory,
    scaled_machine,
)
from pmsim.kinds.log_place import DURABLE_LOGS, check_pmem_survives
from pmsim.kinds.measurement import COUNTED_METRICS, LATENCY_METRICS, measure
from pmsim.kinds.types import Count
from pmsim.platforms import Platform

#: The curve is drawn from the ends of so many batches of equally many transactions.
_BATCHES = 2_000
#: The peak is the highest throughput of so many windows, into which all that follows the recovery is divided:
#: what it is does not depend on the windows of the picture, which begin at the restart.
_PEAK_WINDOWS = 100
#: Throughput counts as the peak from this part of it on.
_NEAR_PEAK = 0.9
_WINDOW = f"{COUNTER_PREFIX}window."
#: What a row has of its window.
_SERIES = ("time_ms", "transactions_per_s", "window_latency_p99_ns")
_PS_PER_MS = 1e9
_PS_PER_NS = 1e3


class RestartParameters(EngineParameters):
    """Parameters of kind "restart"."""

    end: Literal["clean", "crash"] = Field("clean", description="how the engine ended before its restart")
    windows: Count = Field(100, le=65536, description="windows of equal time; one row of the result each")


class Restart(Kind[RestartParameters]):
    """Recovery and ramp-up (van Renen et al., Managing Non-Volatile Memory in Database Systems, A.5)."""

    name = "restart"
    app_direct = True
    title = "Throughput after a restart"
    default_metric = "transactions_per_s"
    metrics = (
        Metric("time_ms", "ms", "time since the restart, end of the window"),
        Metric("transactions_per_s", "1/s", "transactions per second in the window"),
        Metric("window_latency_p99_ns", "ns", "99th percentile of their latency; nan where there are none"),
        Metric("recovery_ms", "ms", "time until the first transaction begins"),
        Metric("time_to_peak_ms", "ms", "time since the restart until throughput reaches 90 % of the peak"),
        Metric(
            "peak_transactions_per_s", "1/s", "highest throughput of a hundredth of the time after the recovery"
        ),
        Metric("fits", "", "1: the engine holds the data; 0: it does not, and nothing was simulated"),
        Metric("warmup_transactions", "", "transactions of the warm-up, before the engine ended"),
        Metric("steady", "", "1: the warm-up ended because transfers between tiers had become steady"),
        *LATENCY_METRICS,
        *COUNTED_METRICS,
    )
    unsteady = "transfers between tiers were still changing when the warm-up ended; raise warmup"
    uses = ENGINE
    parameter_model = RestartParameters

    def machine(self, platform: Platform, parameters: RestartParameters) -> Platform:
        """Apply ``scale`` to the caches."""
        return scaled_machine(platform, parameters)

    def settled(self, machine: Platform, parameters: RestartParameters) -> RestartParameters:
        """Decide where the log is."""
        return log_place.settled(machine, parameters, threads=parameters.threads, logs=parameters.logs)

    def check(self, machine: Platform, parameters: RestartParameters) -> None:
        """Refuse what the machine cannot hold."""
        check_engine(machine, parameters)
        if parameters.threads != 1:
            raise ConfigError(f"threads: {parameters.threads}; a restart is timed with one, choose 1")
        if parameters.log_device not in DURABLE_LOGS:
            raise ConfigError(
                f"log_device: {parameters.log_device}; nothing is durable, so there is nothing to restart, "
                f"choose {' or '.join(DURABLE_LOGS)}"
            )
        if parameters.pmem_capacity:
            check_pmem_survives(machine, "pmem_capacity", "0")
        check_workload("restart", machine, _native(parameters), parameters)

    def least_host_memory(self, parameters: RestartParameters) -> tuple[str, int]:
        """Return the bytes of the rows."""
        return rows_in_memory(parameters)

    def ran_for(self, metrics: Mapping[str, int | float]) -> str:
        """Say how long the warm-up was."""
        return f"after {metrics['warmup_transactions']:,.0f} transactions"

    def columns(self, machine: Platform, parameters: RestartParameters) -> dict[str, Scalar]:
        """Add the variant, the sizes in GiB and the cost."""
        return super().columns(machine, parameters) | engine_columns(machine, parameters)

    def run(self, machine: Platform, parameters: RestartParameters, seed: int) -> dict[str, int | float]:
        """Load, warm up, end, and time the restart."""
        operations = parameters.simulated_operations
        try:
            run = measure("restart", machine, _native(parameters), seed)
        except CapacityError as error:
            return DoesNotFit.of(self.metrics, str(in_parameters(error, parameters)))
        except ConfigError as error:
            raise in_parameters(error, parameters) from None
        ends = [run.started_ps + end for end in run.batch_ends_ps]
        curve = windows_of(0, run.started_ps, ends, operations, parameters.windows)
        time_to_peak, peak = peak_of(run.started_ps, ends, operations)
        metrics: dict[str, int | float] = {
            "recovery_ms": run.started_ps / _PS_PER_MS,
            "time_to_peak_ms": time_to_peak,
            "peak_transactions_per_s": peak,
            "fits": 1,
            "warmup_transactions": run.facts["warmup_transactions"],
            "steady": run.facts["steady"],
            "time_ms": ends[-1] / _PS_PER_MS,
            "transactions_per_s": run.total.operations_per_s,
            "window_latency_p99_ns": run.total.latency.p99_ps / _PS_PER_NS,
        }
        window_of_batch = [min(end * parameters.windows // ends[-1], parameters.windows - 1) for end in ends]
        tails = run.batch_latencies.of_windows(window_of_batch, parameters.windows, 0.99)
        for number, ((time, throughput), tail) in enumerate(zip(curve, tails, strict=True)):
            values = zip(_SERIES, (time, throughput, tail / _PS_PER_NS), strict=True)
            metrics |= {f"{_WINDOW}{number}.{name}": value for name, value in values}
        return metrics | run.total.latency.metrics() | run.counted()

    def curve(self, parameters: RestartParameters) -> tuple[str, str] | None:
        """Throughput over time."""
        del parameters
        return "time_ms", "transactions_per_s"

    def rows(self, metrics: Mapping[str, int | float]) -> list[dict[str, int | float]]:
        """Return one row per window."""
        common = {name: value for name, value in metrics.items() if not name.startswith(_WINDOW)}
        count = sum(name.startswith(_WINDOW) for name in metrics) // len(_SERIES)
        if not count:
            return [common]
        return [
            common | {name: metrics[f"{_WINDOW}{number}.{name}"] for name in _SERIES} for number in range(count)
        ]


def _native(parameters: RestartParameters) -> dict[str, int | str]:
    operations = parameters.simulated_operations
    return parameters.native() | {
        "operations": operations,
        "warmup": parameters.simulated_warmup,
        "batches": min(_BATCHES, operations),
        "wear": 0,
        "end": parameters.end,
    }


def peak_of(started_ps: int, ends_ps: Sequence[int], operations: int) -> tuple[float, float]:
    """Return when [ms] throughput has reached 90 % of its peak, and the peak [1/s].

    Parameters are those of `windows_of`.
    """
    curve = windows_of(started_ps, started_ps, ends_ps, operations, _PEAK_WINDOWS)
    peak = max(throughput for _, throughput in curve)
    return next(time for time, throughput in curve if throughput >= _NEAR_PEAK * peak), peak


def windows_of(
    began_ps: int, started_ps: int, ends_ps: Sequence[int], operations: int, windows: int
) -> list[tuple[float, float]]:
    """Return the end [ms] and the throughput [1/s] of windows of equal time.

    Parameters
    ----------
    began_ps : int
        Where the first window begins.
    started_ps : int
        When the first transaction began; before, there were none.
    ends_ps : sequence of int
        When each batch of equally many transactions ended.
    operations : int
        Over all batches.
    windows : int
        How many, up to the last end.
    """
    times = [started_ps, *ends_ps]
    done = [operations * batch / len(ends_ps) for batch in range(len(times))]

    def done_at(time: float) -> float:
        if time <= started_ps:
            return 0.0
        index = min(bisect.bisect_left(times, time), len(times) - 1)
        width = times[index] - times[index - 1]
        part = (time - times[index - 1]) / width if width else 1.0
        return done[index - 1] + part * (done[index] - done[index - 1])

    length = (ends_ps[-1] - began_ps) / windows
    edges = [began_ps + length * number for number in range(windows + 1)]
    return [
        (after / _PS_PER_MS, (done_at(after) - done_at(before)) / length * 1e12)
        for before, after in itertools.pairwise(edges)
    ]
