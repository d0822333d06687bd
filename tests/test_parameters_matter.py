"""Does every parameter of a platform move something that a run reports?

A parameter that nothing reads, or that a conversion loses, looks fine in a profile and in every sweep over it.
Each one is changed here, alone, on a machine small enough that all its mechanisms are at work in short runs.
"""

import functools
from typing import Any

import pytest

import pmsim
from pmsim import _native
from pmsim.errors import ConfigError
from pmsim.kinds import find_kind

NS, US, KIB, MIB = 1_000, 1_000_000, 1 << 10, 1 << 20

#: tum-6212u, shrunk: caches and capacities that a short run fills, fewer modules than channels, a block device
#: with a head to move, and nothing at zero. Reported figures only have to differ; none is realistic.
BASE_CHANGES: dict[str, dict[str, int]] = {
    "core": {"cores": 4, "threads_per_core": 2, "flush_interval": 30 * NS, "flush_delay": 5 * NS},
    "tlb": {"first_level_entries": 8, "second_level_entries": 48, "paging_structure_entries": 4},
    "l1": {"size": 8 * KIB, "ways": 4},
    "l2": {"size": 32 * KIB, "ways": 4},
    "llc": {"size": 128 * KIB, "ways": 4, "slices": 4},
    "controller": {
        "pmem_write_queue": 6,
        "pmem_credits": 4,
        "pmem_read_queue": 4,
        "pmem_read_credits": 2,
        "dram_write_queue": 12,
        "dram_write_low": 4,
        "link_read_interval": 3 * NS,
        "link_write_interval": 5 * NS,
    },
    "dram": {"capacity": 16 * MIB, "banks": 4},
    "pmem": {
        "dimms": 3,
        "capacity": 64 * MIB,
        "write_latency": 40 * NS,
        "read_buffer_blocks": 4,
        "write_buffer_blocks": 4,
        "translation_entries": 64,
        "wear_stall_writes": 8,
        "wear_stall": 5 * US,
    },
    "block": {
        "capacity": 64 * MIB,
        "block_size": 4 * KIB,
        "read_latency": 60 * US,
        "write_latency": 10 * US,
        "program_latency": 80 * US,
        "units": 4,
        "queue_depth": 2,
        "read_bandwidth": 100_000_000,
        "write_bandwidth": 100_000_000,
        "write_cache": 256 * KIB,
        "flush_latency": 20 * US,
        "seek_latency": 200 * US,
        "rotation_latency": 100 * US,
        "software_latency": 5 * US,
        "copy_bandwidth": 8_000_000_000,
    },
}
BASE = pmsim.load_platform("tum-6212u").native()
for _section, _values in BASE_CHANGES.items():
    BASE[_section] = BASE[_section] | _values


def latency(memory: str, operation: str, pattern: str, region_size: int) -> tuple[str, dict[str, int | str]]:
    return "latency", {"memory": memory, "operation": operation, "pattern": pattern, "region_size": region_size}


def bandwidth(
    memory: str, operation: str, pattern: str, access_size: int, threads: int, region_size: int = 8 * MIB
) -> tuple[str, dict[str, int | str]]:
    return "bandwidth", {
        "memory": memory,
        "operation": operation,
        "pattern": pattern,
        "access_size": access_size,
        "stride": 0,
        "alignment": 0,
        "threads": threads,
        "shared_region": 1,
        "region_size": region_size,
        "fence_every": 0,
        "flush_every": 64,
        "address_list": 0,
        "instructions": 0,
    }


def block(
    operation: str, access_size: int, threads: int, region_size: int = 8 * MIB
) -> tuple[str, dict[str, int | str]]:
    return "block", {
        "operation": operation,
        "pattern": "random",
        "access_size": access_size,
        "threads": threads,
        "region_size": region_size,
    }


def leaf_lookups() -> tuple[str, dict[str, int | str]]:
    return "interleave", {
        "operation": "lookup",
        "interleave": "none",
        "group_size": 1,
        "fence": "sfence",
        "first_flush": "pair",
        "memory": "dram",
        "cpu_cycles": 0,
        "threads": 1,
        "region_size": 8 * MIB,
    }


def updates_of_two_threads() -> tuple[str, dict[str, int | str]]:
    sizes = {"data_size": "1 MiB", "dram_capacity": "2 MiB", "pmem_capacity": "2 MiB", "log_size": "2 MiB"}
    given = {"engine": "nvm-direct", "workload": "ycsb-a", "threads": 2, "scale": "1", "ssd_capacity": "0 B"}
    native = find_kind("oltp").prepared(pmsim.load_platform("tum-6212u"), given | sizes).parameters.native()
    run = {"operations": 300, "warmup": 0, "batches": 1, "wear": 0, "check": 0, "breakdown": 0}
    return "oltp", native | run


#: Short runs, the cheapest first. The last part of each: fields that only this run needs at another value.
PROBES: dict[str, tuple[tuple[str, dict[str, int | str]], dict[tuple[str, str], int]]] = {
    "DRAM latency, dependent loads": (latency("dram", "load", "random", 8 * MIB), {}),
    "L1 latency": (latency("dram", "load", "sequential", 4 * KIB), {}),
    "L2 latency": (latency("dram", "load", "random", 24 * KIB), {}),
    "last-level latency": (latency("dram", "load", "random", 96 * KIB), {}),
    "PMem latency, dependent loads": (latency("pmem", "load", "random", 8 * MIB), {}),
    "PMem latency, loads in order": (latency("pmem", "load", "sequential", 8 * MIB), {}),
    "PMem persists of one line": (latency("pmem", "store+clwb", "same-line", 4 * KIB), {}),
    "DRAM persists of one line": (latency("dram", "store+clwb", "same-line", 4 * KIB), {}),
    "streaming persists": (latency("pmem", "ntstore", "random", 8 * MIB), {}),
    "memory mode": (latency("pmem", "load", "random", 32 * MIB), {("controller", "memory_mode"): 1}),
    "DRAM larger than the base machine's": (latency("dram", "load", "random", 24 * MIB), {}),
    "PMem larger than the base machine's": (latency("pmem", "load", "random", 96 * MIB), {}),
    "block device larger than the base machine's": (block("read", 4 * KIB, 1, 96 * MIB), {}),
    "block reads": (block("read", 4 * KIB, 8), {}),
    "large block reads": (block("read", 128 * KIB, 8), {}),
    "block writes": (block("write", 4 * KIB, 8), {}),
    "large block writes": (block("write", 64 * KIB, 8), {}),
    "block writes to a medium that keeps up": (
        block("write", 4 * KIB, 1),
        {("block", "program_latency"): US, ("block", "seek_latency"): 0, ("block", "rotation_latency"): 0},
    ),
    "flushed block writes": (block("write+flush", 4 * KIB, 1), {}),
    "streams of loads from PMem": (bandwidth("pmem", "load", "sequential", 4 * KIB, 4), {}),
    "streams of loads from DRAM": (bandwidth("dram", "load", "sequential", 4 * KIB, 4), {}),
    "random loads from DRAM by all hardware threads": (bandwidth("dram", "load", "random", 64, 8), {}),
    "random loads from PMem": (bandwidth("pmem", "load", "random", 256, 8), {}),
    "stores to DRAM": (bandwidth("dram", "store", "random", 64, 8), {}),
    "stores to PMem": (bandwidth("pmem", "store", "random", 256, 8), {}),
    "streaming stores to PMem": (bandwidth("pmem", "ntstore", "random", 256, 8), {}),
    "flushed stores to PMem": (bandwidth("pmem", "store+clwb", "sequential", 256, 8), {}),
    "updates under latches": (updates_of_two_threads(), {}),
    "streaming stores to a hot place in PMem": (bandwidth("pmem", "ntstore", "random", 64, 4, 64 * KIB), {}),
    # A channel that takes longer for a line than the link (5 ns), or else its queue is never full.
    "streaming stores to one slow channel of DRAM": (
        bandwidth("dram", "ntstore", "sequential", 4 * KIB, 8),
        {("controller", "channels"): 1, ("pmem", "dimms"): 1, ("dram", "write_burst"): 20 * NS},
    ),
    "lookups whose branches are mispredicted": (leaf_lookups(), {}),
    "stores by one thread": (bandwidth("dram", "store", "random", 64, 1), {}),
}

FIELDS: dict[tuple[str, str], dict[str, Any]] = {
    (str(field["section"]), str(field["name"])): field for field in _native.fields()
}


def other_value(section: str, name: str) -> int:
    field = FIELDS[section, name]
    value = BASE[section][name]
    if field["quantity"] == "flag":
        return 1 - value
    return value * 2 if value * 2 <= field["maximum"] else value // 2


def reported(probe: str, change: tuple[str, str] | None = None) -> Any:
    """All figures of a probe; the message, where the machine refuses it (too small, too few threads)."""
    (workload, parameters), needs = PROBES[probe]
    platform = {section: dict(values) for section, values in BASE.items()}
    for (section, name), value in needs.items():
        platform[section][name] = value
    if change is not None:
        platform[change[0]][change[1]] = other_value(*change)
    try:
        return _native.simulate(workload, [platform], parameters, 1)
    except ConfigError as error:
        return type(error).__name__


@functools.cache
def baseline(probe: str) -> Any:
    return reported(probe)


@pytest.mark.parametrize("change", FIELDS, ids=lambda change: ".".join(change))
def test_parameter_moves_an_output(change: tuple[str, str]) -> None:
    assert other_value(*change) != BASE[change[0]][change[1]], (
        f"{'.'.join(change)}: the base machine has no such thing"
    )
    assert any(reported(probe, change) != baseline(probe) for probe in PROBES), (
        f"{'.'.join(change)}: {BASE[change[0]][change[1]]} changed to {other_value(*change)} moves nothing"
    )


def test_the_base_machine_and_its_changes_are_valid() -> None:
    _native.validate_platform(BASE)
    for section, name in FIELDS:
        platform = BASE | {section: BASE[section] | {name: other_value(section, name)}}
        _native.validate_platform(platform)


def test_a_probe_that_changes_nothing_reports_the_same() -> None:
    for probe in PROBES:
        assert reported(probe) == baseline(probe), probe
