"""Kind "mixed": groups of threads with different tasks on one machine, and what they cost each other."""

from typing import Literal

from pydantic import Field, model_validator

from pmsim.errors import ConfigError
from pmsim.kinds.base import Kind, Metric, Scalar
from pmsim.kinds.checks import check_access, check_memory, check_region, check_threads
from pmsim.kinds.intervals import of_quotient, with_ends
from pmsim.kinds.length import LENGTH, Length
from pmsim.kinds.machine_options import with_options
from pmsim.kinds.measurement import COMMON_METRICS, Measurement, measure
from pmsim.kinds.metric import INTERVAL_ENDS
from pmsim.kinds.types import FlagOrPlatform, KindParameters, LineSize, Memory, PageSize, TaskSize, Threads
from pmsim.platforms import Platform
from pmsim.standing import stretch

#: A log entry and a page of the building-blocks paper (sections 2.4 and 3.2), a line, a block of the medium.
_TASK_BYTES = {
    "scan": 256,
    "lookup": 64,
    "log": 128,
    "page": 16384,
    "read": 256,
    "write": 256,
    "append": 64,
    "overwrite": 256,
}
_FIXED_SIZE = ("scan", "lookup")
#: DRAM that each thread of these tasks reads its entries and pages from (native/src/workloads/mixed.cpp).
_SOURCE_BYTES = {"log": 64 * 2**20, "page": 64 * 2**20}


class MixedGroup(KindParameters):
    """A group of threads that run one task."""

    task: Literal["scan", "lookup", "log", "page", "read", "write", "append", "overwrite"] = Field(
        ...,
        description="scan: sequential reads; lookup: random reads of a line; log: entries of a padded PopLog; "
        "page: copy on write of pages, both from DRAM; read, write: random chunks, writes streaming; append, "
        "overwrite: streaming writes with a fence after each access, in sequence or at random",
    )
    memory: Memory = Field("pmem", description="where the task's data are")
    threads: Threads = Field(1, description="threads of the group")
    access_size: TaskSize = Field(
        "task",
        description="bytes per access; by default 128 B for log, 16 KiB for page, 64 B for append, 256 B for "
        "read, write and overwrite [B]",
    )

    @model_validator(mode="after")
    def _combinations(self) -> "MixedGroup":
        if self.access_size != "task" and self.task in _FIXED_SIZE:
            raise ConfigError(f"access_size: has no meaning for task = '{self.task}'; remove it")
        return self

    @property
    def access_bytes(self) -> int:
        """Bytes per access."""
        return self.access_size if isinstance(self.access_size, int) else _TASK_BYTES[self.task]

    def native(self) -> str:
        """Return the group in the notation of the native core."""
        return f"{self.task}:{self.memory}:{self.threads}:{self.access_bytes}"


class MixedParameters(KindParameters):
    """Parameters of kind "mixed"."""

    groups: list[MixedGroup] = Field(
        default_factory=lambda: [
            MixedGroup(task="scan", memory="dram", threads=14),
            MixedGroup(task="page", memory="pmem", threads=10),
        ],
        min_length=1,
        max_length=8,
        description="the groups; a sweep names them groups.1, groups.2, ...",
    )
    prefetcher: FlagOrPlatform = Field("platform", description="hardware prefetcher on or off")
    page_size: PageSize = Field("platform", description="page size of the mappings [B]")
    region_size: LineSize = Field(10 * 2**30, ge=2**20, description="bytes of the region of each group [B]")
    length: Length = LENGTH


class Mixed(Kind[MixedParameters]):
    """Interference: bandwidth of each group, and its slowdown relative to running alone."""

    name = "mixed"
    title = "Interference between groups of threads with different tasks"
    default_metric = "group_1_bandwidth_gb_s"
    metrics = COMMON_METRICS
    parameter_model = MixedParameters

    def metric_list(self, parameters: MixedParameters) -> tuple[Metric, ...]:
        """Return three metrics for each group."""
        named = []
        for number in range(1, len(parameters.groups) + 1):
            who = f"of group {number}"
            named += [
                *with_ends(
                    Metric(f"group_{number}_bandwidth_gb_s", "GB/s", f"bandwidth {who} beside the others")
                ),
                *with_ends(Metric(f"group_{number}_alone_gb_s", "GB/s", f"bandwidth {who} running alone")),
                *with_ends(
                    Metric(f"group_{number}_slowdown", "", f"bandwidth {who} alone over beside the others")
                ),
            ]
        return (*named, *self.metrics)

    def machine(self, platform: Platform, parameters: MixedParameters) -> Platform:
        """Apply ``prefetcher`` and ``page_size``."""
        return with_options(platform, prefetcher=parameters.prefetcher, page_size=parameters.page_size)

    def check(self, machine: Platform, parameters: MixedParameters) -> None:
        """Refuse more threads than hardware threads, and regions that do not fit together."""
        check_threads(machine, sum(group.threads for group in parameters.groups), "groups")
        sources = sum(_SOURCE_BYTES.get(group.task, 0) * group.threads for group in parameters.groups)
        # In memory mode both are the one main memory.
        main = "dram" if machine.value("controller", "memory_mode") else ""
        for memory, beside in (("dram", sources), ("pmem", 0)):
            users = [
                number
                for number, group in enumerate(parameters.groups, start=1)
                if (main or group.memory) == memory
            ]
            if not users and not beside:
                continue
            if users:
                check_memory(machine, memory, f"groups.{users[0]}.memory")
            try:
                check_region(machine, memory, parameters.region_size * len(users) + beside)
            except ConfigError as error:
                what = f"the regions of {len(users)} group{'' if len(users) == 1 else 's'}" + (
                    " and what log and page writers read from" if beside else ""
                )
                raise ConfigError(f"{error} (for {what})") from None
        for number, group in enumerate(parameters.groups, start=1):
            check_access(
                group.access_bytes, parameters.region_size // group.threads, f"groups.{number}.access_size"
            )

    def columns(self, machine: Platform, parameters: MixedParameters) -> dict[str, Scalar]:
        """Return ``groups.N.task``, ``.memory``, ``.threads`` and ``.access_size`` of every group."""
        named: dict[str, Scalar] = {}
        for number, group in enumerate(parameters.groups, start=1):
            for name, value in (group.model_dump() | {"access_size": group.access_bytes}).items():
                named[f"groups.{number}.{name}"] = value
        on_dram = all(group.memory == "dram" for group in parameters.groups)
        return (
            named
            | super().columns(machine, parameters)
            | {
                "prefetcher": bool(machine.value("prefetcher", "enabled")),
                "page_size": machine.value("tlb", "dram_page_size" if on_dram else "page_size"),
            }
        )

    def run(self, machine: Platform, parameters: MixedParameters, seed: int) -> dict[str, int | float]:
        """Simulate the groups together, and then each of them alone on the same machine."""
        groups = [group.native() for group in parameters.groups]
        runs = len(groups) + 1 if len(groups) > 1 else 1
        with stretch(0, 1 / runs):
            together = self._measure(machine, groups, parameters, seed)
        metrics: dict[str, int | float] = {}
        for number, text in enumerate(groups, start=1):
            beside = alone = together.bandwidth_of_group(number - 1)
            if len(groups) > 1:
                with stretch(number / runs, (number + 1) / runs):
                    alone = self._measure(machine, [text], parameters, seed).bandwidth_of_group(0)
            slowdown = of_quotient(alone, beside) if len(groups) > 1 else (1.0, 1.0, 1.0)
            for name, values in (("bandwidth_gb_s", beside), ("alone_gb_s", alone), ("slowdown", slowdown)):
                metrics |= zip(
                    (f"group_{number}_{name}{end}" for end in ("", *INTERVAL_ENDS)), values, strict=True
                )
        return metrics | together.common()

    @staticmethod
    def _measure(machine: Platform, groups: list[str], parameters: MixedParameters, seed: int) -> Measurement:
        given: dict[str, int | str] = {
            "groups": ";".join(groups),
            "region_size": parameters.region_size,
            "length": parameters.length,
        }
        return measure("mixed", machine, given, seed)
