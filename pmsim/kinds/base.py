"""What a kind of experiment is: its parameters, its metrics, how one point runs, what its figure shows."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from pydantic import ValidationError

from pmsim.arguments import table
from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.kinds.applies import Uses
from pmsim.kinds.counters import COUNTER_PREFIX as COUNTER_PREFIX
from pmsim.kinds.counters import RUN_COUNTERS, machine_counters
from pmsim.kinds.metric import Metric as Metric
from pmsim.kinds.types import KindParameters
from pmsim.messages import config_error, unicode_error
from pmsim.platforms import VOLATILE, Platform

Scalar = int | float | str | bool
_RATES = ("operations_per_s", "ops_per_s", "transactions_per_s", "throughput_per_s")
P = TypeVar("P", bound=KindParameters)


class Prepared(NamedTuple, Generic[P]):
    """What a point needs to run: a machine and parameters that have been checked against it."""

    machine: Platform
    parameters: P
    #: The parameters before the machine decided what they left open.
    asked: P


class Kind(ABC, Generic[P]):
    """A kind of experiment. One file per kind, listed in `pmsim.kinds`."""

    name: ClassVar[str]
    title: ClassVar[str]
    #: The metric that the figure shows unless the scenario says otherwise.
    default_metric: ClassVar[str]
    metrics: ClassVar[tuple[Metric, ...]]
    #: Why the micro-operations of a point cannot be recorded, and what to do; empty where they can be.
    unrecordable: ClassVar[str] = ""
    #: What was still changing where its metric `steady` is 0, and what to do.
    unsteady: ClassVar[str] = "the second half of the run was faster or slower than the first; raise length"
    #: Whether it is about persistent memory, of which memory mode leaves none.
    app_direct: ClassVar[bool] = False
    #: Parameters that leave the seed alone: points that differ in these draw the same random numbers.
    unseeded: ClassVar[frozenset[str]] = frozenset({"length"})
    #: Whether another seed is another run.
    seeded: ClassVar[bool] = True
    #: When its parameters mean something, where some do not always (`pmsim.unused`).
    uses: ClassVar[Uses] = {}
    parameter_model: type[P]

    @property
    def rate(self) -> str:
        """The metric that counts operations per second; empty where there is none."""
        return next((metric.name for metric in self.metrics if metric.name in _RATES), "")

    def parameters(self, given: Mapping[str, Any]) -> P:
        """Validate parameters as a scenario gives them; what is not given takes its default.

        Raises
        ------
        ConfigError : unknown name, wrong type, unit or combination.
        """
        try:
            return self.parameter_model.model_validate(dict(table("parameters", given)))
        except ValidationError as error:
            raise config_error(error, self.parameter_model) from None
        except UnicodeEncodeError:
            raise unicode_error(given) from None

    def metric_list(self, parameters: P) -> tuple[Metric, ...]:
        """Return the metrics that a point with these parameters has."""
        del parameters
        return self.metrics

    def machine(self, platform: Platform, parameters: P) -> Platform:
        """Return the platform as the parameters change it (modules, prefetcher, page size, mode)."""
        del parameters
        return platform

    def settled(self, machine: Platform, parameters: P) -> P:
        """Return the parameters with what they leave to the machine, as `machine` returned it, decided."""
        del machine
        return parameters

    def prepared(self, platform: Platform, given: Mapping[str, Any]) -> Prepared[P]:
        """Validate, complete and check a point.

        Parameters
        ----------
        platform : Platform
            As the scenario names it.
        given : mapping
            As for `parameters`.

        Raises
        ------
        ConfigError : a point that cannot be run.
        """
        asked = self.parameters(given)
        machine = self.machine(platform, asked)
        if self.app_direct and machine.value("controller", "memory_mode"):
            raise ConfigError(
                f"platform: controller.memory_mode leaves no persistent memory, which kind '{self.name}' is "
                "about; remove it"
            )
        parameters = self.settled(machine, asked)
        self.check(machine, parameters)
        return Prepared(machine, parameters, asked)

    @abstractmethod
    def check(self, machine: Platform, parameters: P) -> None:
        """Refuse a point that the machine cannot run.

        Parameters
        ----------
        machine : Platform
            As `machine` returned it.
        parameters : model
            Validated parameters.

        Raises
        ------
        ConfigError : ``KEY: problem; remedy``.
        """

    @abstractmethod
    def run(self, machine: Platform, parameters: P, seed: int) -> dict[str, int | float]:
        """Simulate one point: a pure function of its arguments.

        Returns
        -------
        dict : every metric of `metric_list`, and the counters as ``counter.NAME``.
        """

    def least_host_memory(self, parameters: P) -> tuple[str, int]:
        """Return what a point takes of this host's memory at least [B], and the parameter that decides on it.

        A bound that the parameters give without running anything; points that need less of it than the host
        has may need more in the end.
        """
        del parameters
        return "", 0

    def executes_regardless_of_time(self, parameters: P) -> bool:
        """Return whether nothing that a point executes depends on how long anything takes.

        Points that differ only in times of the platform (latencies, intervals) are then one execution: they
        have one seed, and a sweep executes them once and times them side by side (docs/model/lanes.md).
        """
        del parameters
        return False

    def run_lanes(self, machines: Sequence[Platform], parameters: P, seed: int) -> list[dict[str, int | float]]:
        """Do what `run` does for each of several machines that differ in times only, with the same results."""
        return [self.run(machine, parameters, seed) for machine in machines]

    def resumes(self, parameters: P) -> bool:
        """Return whether a point with these parameters keeps a state from which `run_from` goes on."""
        del parameters
        return False

    def run_from(self, machine: Platform, parameters: P, seed: int, state: Path) -> dict[str, int | float]:
        """Do what `run` does, with the same result, from the state in a file where there is one.

        Parameters
        ----------
        state : Path
            Kept up to date while the point runs; belongs to this point alone. The caller deletes it afterwards.
        """
        del state
        return self.run(machine, parameters, seed)

    def rows(self, metrics: Mapping[str, int | float]) -> list[dict[str, int | float]]:
        """Return the rows of a finished point, by default one; a curve over time has many."""
        return [dict(metrics)]

    def lasting(self, metrics: Mapping[str, int | float], parameters: P) -> bool:
        """Return whether the times of a point would be the same, had it run for longer."""
        del metrics, parameters
        return True

    def lost_without_power(self, machine: Platform, parameters: P, metrics: Mapping[str, int | float]) -> str:
        """Say what a power failure takes along that a point takes for durable; empty where there is nothing.

        By default, of kinds about persistent memory, what has been flushed to PMem that is volatile. Speeds of
        memories can be compared so; who does it has to know.
        """
        flushed = metrics.get(f"{COUNTER_PREFIX}lines_persisted", 0) > 0
        volatile = machine.pmem_persistence == VOLATILE and getattr(parameters, "memory", "pmem") == "pmem"
        return f"kind {self.name}, on {machine.name}" if self.app_direct and flushed and volatile else ""

    def kept_in_caches(self, machine: Platform, parameters: P, metrics: Mapping[str, int | float]) -> str:
        """Say what the caches held of a point that is about memory; empty where it has measured memory."""
        del machine, parameters, metrics
        return ""

    def ran_for(self, metrics: Mapping[str, int | float]) -> str:
        """Say how long a point has run that was not long enough to become steady."""
        return f"of {metrics['simulated_ops']:,.0f} operations"

    def curve(self, parameters: P) -> tuple[str, str] | None:
        """Return the metrics of the horizontal and of the vertical axis of the curve that rows of a point draw.

        None where a point is one row.
        """
        del parameters
        return None

    def columns(self, machine: Platform, parameters: P) -> dict[str, Scalar]:
        """Return the parameter columns of a row: plain values in base units, defaults resolved."""
        del machine
        return {name: value for name, value in parameters.model_dump().items() if isinstance(value, Scalar)}

    def counters(self) -> Mapping[str, Metric]:
        """Return what its runs count besides the metrics, by the names in results (``counter.NAME``)."""
        return RUN_COUNTERS | machine_counters()

    def check_metric(self, name: str, parameters: P) -> None:
        """Refuse the name of a metric or counter that no row will have."""
        known = [metric.name for metric in self.metric_list(parameters)]
        counters = self.counters()
        if name in known or name in counters:
            return
        if name.startswith(COUNTER_PREFIX):
            raise ConfigError(
                f"unknown counter '{name}' of kind '{self.name}'; {nearest(name, counters)} "
                "(pmsim list counters)"
            )
        raise ConfigError(
            f"unknown metric '{name}' of kind '{self.name}'; {nearest(name, known)} "
            "(counters: pmsim list counters)"
        )
