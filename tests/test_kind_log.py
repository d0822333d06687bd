"""Kind "log": what is counted follows from the algorithms; what is timed keeps to their order."""

import math
from typing import Any, get_args

import pytest
from pydantic import BaseModel

import pmsim
from pmsim import _native
from pmsim.crash import blocks
from pmsim.des.parts import LogPart
from pmsim.errors import ConfigError
from pmsim.kinds.engine_options import EngineParameters
from pmsim.kinds.log import LogParameters
from pmsim.kinds.logs import LAYOUTS
from pmsim.kinds.system_parameters import SystemParameters

ALGORITHMS = ("classic", "header", "header-dancing", "rawl", "poplog")
HEADER = 16  # bytes of an entry's header
LINE = 64


def measure(**given: Any) -> dict[str, int | float]:
    return pmsim.simulate_point("log", "tum-6212u", given)


def rawl_words(payload: int) -> int:
    return math.ceil(8 * payload / 63)


def dense_bytes(algorithm: str, payload: int) -> int:
    words = rawl_words(payload) if algorithm == "rawl" else payload // 8
    return HEADER + 8 * words + (8 if algorithm == "classic" else 0)


@pytest.mark.parametrize("layout", ["naive", "padded", "dram-tail"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_barriers_are_those_of_the_paper(algorithm: str, layout: str) -> None:
    one = measure(algorithm=algorithm, layout=layout, entry_size=104)
    barriers = 1 if algorithm in ("rawl", "poplog") else 2
    assert one["barriers_per_op"] == pytest.approx(barriers, rel=0.001)
    assert one["counter.fences"] / one["simulated_ops"] == pytest.approx(barriers, rel=0.001)
    group = measure(algorithm=algorithm, layout=layout, entry_size=104, group_commit=8)
    assert group["barriers_per_op"] == pytest.approx(barriers / 8, rel=0.01)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("payload", [8, 40, 48, 104, 504, 512])
def test_padded_entries_write_whole_lines_once(algorithm: str, payload: int) -> None:
    result = measure(algorithm=algorithm, layout="padded", entry_size=payload)
    body = dense_bytes(algorithm, payload) - (8 if algorithm == "classic" else 0)
    lines = math.ceil(body / LINE) + (1 if algorithm == "classic" else 0)
    assert result["log_bytes_per_entry"] == lines * LINE
    size_field = 1 if algorithm.startswith("header") else 0
    assert result["lines_written_per_op"] == pytest.approx(lines + size_field, rel=0.01)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("payload", [8, 40, 504, 512, 1016])
def test_a_dense_entry_takes_what_it_needs(algorithm: str, payload: int) -> None:
    for layout in ("naive", "dram-tail"):
        result = measure(algorithm=algorithm, layout=layout, entry_size=payload)
        assert result["log_bytes_per_entry"] == dense_bytes(algorithm, payload)


def test_dense_poplog_writes_the_lines_that_entries_touch() -> None:
    # 40 bytes each: of 8 entries on 5 lines, 4 line ends lie inside an entry, so 12 lines are written.
    result = measure(algorithm="poplog", layout="naive", entry_size=24)
    assert result["lines_written_per_op"] == pytest.approx(12 / 8, rel=0.01)


def test_rawl_needs_one_word_more_and_two_from_512_bytes_on() -> None:
    extra = {n: measure(algorithm="rawl", layout="naive", entry_size=n)["log_bytes_per_entry"] - n - HEADER
             for n in (8, 496, 504, 512)}  # fmt: skip
    assert extra == {8: 8, 496: 8, 504: 8, 512: 16}


@pytest.mark.parametrize(("algorithm", "payload"), [("poplog", 48), ("rawl", 40), ("classic", 40)])
def test_packed_entries_that_fill_lines_reach_the_padded_rate(algorithm: str, payload: int) -> None:
    naive, padded = (
        {
            size: measure(algorithm=algorithm, layout=layout, entry_size=size)["ops_per_s"]
            for size in (payload - 16, payload)
        }
        for layout in ("naive", "padded")
    )
    assert naive[payload] > 1.5 * naive[payload - 16]
    if algorithm != "classic":  # whose padded footer has a line of its own
        assert naive[payload] == pytest.approx(padded[payload], rel=0.01)


def test_poplog_writes_reused_space_twice_and_rawl_once() -> None:
    def lines(algorithm: str, payload: int, log_size: str) -> float:
        given = {"algorithm": algorithm, "entry_size": payload, "log_size": log_size}
        return float(measure(**given)["lines_written_per_op"])

    assert lines("poplog", 48, "64 KiB") / lines("poplog", 48, "1 GiB") == pytest.approx(2, rel=0.02)
    assert lines("rawl", 40, "64 KiB") / lines("rawl", 40, "1 GiB") == pytest.approx(1, rel=0.02)


def test_dancing_fields_and_cpu_cycles_reach_the_simulation() -> None:
    one, many = (measure(algorithm="header-dancing", entry_size=24, dancing_fields=n) for n in (1, 64))
    assert one["ops_per_s"] == measure(algorithm="header", entry_size=24)["ops_per_s"]
    assert many["ops_per_s"] > 2 * one["ops_per_s"]
    free, costly = (measure(entry_size=24, cpu_cycles=cycles)["latency_ns"] for cycles in (0, 3100))
    assert costly - free == pytest.approx(1000, rel=0.05)  # 3.1 GHz


def test_logs_of_threads_are_independent() -> None:
    one, four = (measure(entry_size=24, threads=threads) for threads in (1, 4))
    assert four["ops_per_s"] == pytest.approx(4 * one["ops_per_s"], rel=0.1)
    assert four["barriers_per_op"] == pytest.approx(1, rel=0.001)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_tail_buffer_holds_groups_of_large_entries(algorithm: str) -> None:
    result = measure(algorithm=algorithm, layout="dram-tail", entry_size=16384, group_commit=4)
    assert result["log_bytes_per_entry"] == dense_bytes(algorithm, 16384)
    assert result["barriers_per_op"] < 1


def test_large_entries_are_measured_over_bytes_rather_than_over_entries() -> None:
    assert measure(algorithm="classic", entry_size=2**20)["simulated_ops"] == 2**28 / 2**20


def test_a_log_in_dram_writes_no_persistent_memory() -> None:
    result = measure(entry_size=24, memory="dram")
    assert result["counter.pmem_write_lines"] == result["media_blocks_written_per_op"] == 0
    assert result["lines_written_per_op"] == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"algorithm": "poploq"}, "algorithm"),
        ({"algorithm": "pmemlog"}, "layout: pmemlog has no 'padded' layout; choose naive"),
        ({"entry_size": 12}, "entry_size: 12 is not a multiple of 8 B"),
        ({"group_commit": 0}, "group_commit"),
        ({"dancing_fields": 5000}, "dancing_fields: 5000 is too large"),
        ({"log_size": "512 B", "entry_size": 504}, "log_size: too small; an entry needs 576 of 448 bytes"),
        ({"log_size": "320 B", "entry_size": 504}, "log_size: 320 B hold no entry with a payload of 504 B"),
        ({"log_size": "1 TiB", "threads": 4}, "log_size"),
        ({"cpu_cycles": -1}, "cpu_cycles"),
    ],
)
def test_bad_parameters_are_one_clear_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        measure(**given)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_logs_of_the_core_are_offered_wherever_a_log_is_chosen() -> None:
    """One list: a new algorithm needs no edit in Python."""
    logs = _native.logs()
    with_entries = {name for name, (_, entries) in logs.items() if entries}
    assert {*ALGORITHMS, "pmemlog"} <= set(logs)

    def offered(model: type[BaseModel], field: str) -> set[str]:
        return set(get_args(model.model_fields[field].annotation))

    assert offered(LogParameters, "algorithm") == set(logs)
    assert offered(LogPart, "algorithm") == set(logs)
    assert offered(EngineParameters, "log_algorithm") == with_entries
    assert offered(SystemParameters, "algorithm") == with_entries
    layouts = {name: 3 if name in with_entries else 1 for name in logs}
    crashed = {name.removesuffix(f"-{layout}") for name in blocks() for layout in LAYOUTS}
    assert set(logs) <= crashed
    assert sum(name.startswith(tuple(logs)) for name in blocks()) == sum(layouts.values())
