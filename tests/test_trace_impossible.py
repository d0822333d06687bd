"""Traces with right checksums that say what no run can have: each is one line that tells what is wrong."""

import struct
from pathlib import Path

import pytest

from pmsim import _native, trace
from pmsim.errors import ConfigError

KINDS = {name: number for number, name in enumerate(_native.micro_op_kinds())}
DRAM, BLOCK = 1 << 44, 3 << 44
SHARED, EXCLUSIVE, ATTEMPT = 0, 1, 3
PLATFORM = {"base": "tum-6212u", "block_device": "nvme-p4510"}


def operation(kind: str, address: int = 0, size: int = 0, flags: int = 0) -> bytes:
    return struct.pack("<QIBBH", address, size, KINDS[kind], flags, 0)


BEGIN, END = operation("operation_begin"), operation("operation_end")
LOAD = operation("load", DRAM, 8)


def written(path: Path, *threads: list[bytes], warmup: int = 0, untimed: int = 0, measured: int = 4) -> Path:
    writer = _native.TraceWriter(path, len(threads), "{}", 1, warmup, untimed, measured, 0, False, [])
    for number, operations in enumerate(threads):
        writer.append(number, b"".join(operations), [len(operations)])
    writer.finish()
    return path


def acquired(*latches: int) -> list[bytes]:
    taken = [operation("acquire", DRAM + 64 * latch, 8, EXCLUSIVE) for latch in latches]
    return [BEGIN, *taken, *(operation("release", DRAM + 64 * latch, 8, EXCLUSIVE) for latch in latches), END]


@pytest.mark.parametrize(
    "plan", [{"measured": 2**63}, {"warmup": 2**64 - 1}, {"warmup": 2**62, "measured": 2**62}]
)
def test_more_operations_than_any_run_has_are_refused(plan: dict[str, int], tmp_path: Path) -> None:
    path = written(tmp_path / "a.trace", [BEGIN, LOAD, END] * 4, **plan)
    with pytest.raises(
        ConfigError, match=r"a\.trace: damaged .*the number of operations to run is impossible.*again"
    ):
        trace.replay(path, PLATFORM)


@pytest.mark.parametrize(
    "impossible",
    [
        ("compute", 1 << 32, 1),
        ("compute", (1 << 58) * 3 + 1000, 1),
        ("block_gather", BLOCK, 0),
        ("block_read", BLOCK, 0),
        ("block_write", BLOCK, 100),
        ("block_write", BLOCK + 8, 512),
        ("block_read", DRAM, 512),
        ("load", BLOCK, 8),
    ],
    ids=str,
)
def test_operations_that_no_machine_can_run_are_refused(
    impossible: tuple[str, int, int], tmp_path: Path
) -> None:
    path = written(tmp_path / "a.trace", [BEGIN, operation(*impossible), operation("block_commit", BLOCK), END])
    with pytest.raises(ConfigError, match=r"a\.trace: 1 operations are none that a machine can run"):
        trace.replay(path, PLATFORM)


def test_as_many_cycles_as_a_table_may_have_are_computed(tmp_path: Path) -> None:
    path = written(tmp_path / "a.trace", [BEGIN, operation("compute", 2**32 - 1, 1), END] * 4)
    assert trace.replay(path, PLATFORM).total.elapsed_ps > 10**12


@pytest.mark.parametrize(
    "threads",
    [
        [[BEGIN, operation("acquire", DRAM, 8, EXCLUSIVE), *acquired(0)[1:]]],
        [acquired(0, 1) * 200, acquired(1, 0) * 200],
        [[BEGIN, operation("acquire", DRAM, 8, EXCLUSIVE), END], acquired(0) * 200],
    ],
    ids=["twice", "in a circle", "never released"],
)
def test_latches_that_wait_for_each_other_are_said_to(threads: list[list[bytes]], tmp_path: Path) -> None:
    path = written(tmp_path / "a.trace", *threads, measured=400)
    with pytest.raises(
        ConfigError, match=r"a\.trace: no thread can go on: the latches .* wait for each other; release"
    ):
        trace.replay(path, PLATFORM)


@pytest.mark.parametrize(
    "latch",
    [
        [("release", EXCLUSIVE)],
        [("acquire", SHARED), ("release", EXCLUSIVE)],
        [("acquire", EXCLUSIVE), ("release", EXCLUSIVE), ("release", EXCLUSIVE)],
        [("acquire", ATTEMPT), ("release", EXCLUSIVE)],
    ],
    ids=["never acquired", "shared", "twice", "an attempt"],
)
def test_latches_that_nobody_holds_are_not_released(latch: list[tuple[str, int]], tmp_path: Path) -> None:
    held = [operation(kind, DRAM, 8, mode) for kind, mode in latch]
    path = written(tmp_path / "a.trace", [BEGIN, *held, END] * 400, measured=400)
    with pytest.raises(ConfigError, match=r"a\.trace: a latch is released that is not held like that; release"):
        trace.replay(path, PLATFORM)


def test_no_more_of_a_warm_up_is_untimed_than_there_is(tmp_path: Path) -> None:
    path = written(tmp_path / "a.trace", [BEGIN, LOAD, END] * 4, warmup=1, untimed=2)
    with pytest.raises(ConfigError, match=r"a\.trace: damaged .*more of the warm-up is untimed than there is"):
        trace.info(path)


@pytest.mark.parametrize("operations", [acquired(0), [operation("block_read", BLOCK, 4096)]])
def test_latches_and_block_devices_need_a_clock(operations: list[bytes], tmp_path: Path) -> None:
    path = written(tmp_path / "a.trace", [*operations, END], [BEGIN, LOAD, END] * 4, warmup=1, untimed=1)
    with pytest.raises(ConfigError, match=r"a\.trace: its warm-up begins with operations that are not timed"):
        trace.replay(path, PLATFORM)
    assert trace.replay(written(tmp_path / "b.trace", [*operations, END], [BEGIN, LOAD, END] * 4), PLATFORM)
