"""Requests at the memory controllers: every line that the machine counts, once, as each simulator reads it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from pmsim import Scenario, _native, trace
from pmsim.commands.trace import trace_app
from pmsim.errors import ConfigError
from pmsim.trace.requests import FORMS

PLATFORM = "tum-6212u"
MEMORY_MODE = {"base": PLATFORM, "controller": {"memory_mode": True}}
MEDIA = ("dram", "pmem")
REQUEST = np.dtype([("arrives", "<i8"), ("line", "<u8"), ("thread", "<u4"), ("operation", "<u4")])
NOBODY = 2**32 - 1
CLOCKS = {form: "1 ns" for form, kind in FORMS.items() if kind.clock_of}

ENGINE = Scenario(
    kind="oltp",
    platform={"base": PLATFORM, "block_device": "nvme-p4510"},
    parameters={
        "engine": "three-tier",
        "workload": "ycsb-a",
        "data_size": "2 MiB",
        "dram_capacity": "1 MiB",
        "pmem_capacity": "8 MiB",
        "ssd_capacity": "32 MiB",
        "log_size": "8 MiB",
        "scale": "1",
        "threads": 3,
        "operations": 3000,
        "warmup": 300,
    },
)


def scenario_of(operation: str, pattern: str, **more: Any) -> Scenario:
    parameters = {"operation": operation, "pattern": pattern, "region_size": "64 MiB", "access_size": 256}
    return Scenario(kind="bandwidth", platform=PLATFORM, parameters=parameters | more)


def rows_of(file: Path, medium: Any, platform: Any = PLATFORM, **more: Any) -> pd.DataFrame:
    """Write the requests to a table and read it."""
    out = file.with_suffix(".parquet")
    counts = trace.requests(file, out, form="table", medium=medium, platform=platform, **more)
    rows = pd.read_parquet(out)
    assert list(rows) == ["time_ps", "operation", "address", "thread"]
    by_operation = rows.operation.value_counts()
    assert (counts.reads, counts.writes) == (by_operation.get("read", 0), by_operation.get("write", 0))
    assert rows.time_ps.is_monotonic_increasing
    assert (rows.address % 64 == 0).all()
    return rows


def made_of(rows: str, folder: Path, *, pmem: bool = True) -> Path:
    """Make a trace of a table's rows on one medium: kind, address, bytes, flags."""
    (folder / "t.csv").write_text("kind,address,bytes,flags\n" + rows)
    trace.import_from(folder / "t.csv", folder / "t.trace", pmem=[(0, 2**40)] if pmem else [])
    return folder / "t.trace"


def to_its_end(scenario: Scenario, folder: Path) -> Path:
    """Record a scenario as a trace that is measured until its threads have ended: nothing is left over."""
    trace.record(scenario, folder / "recorded.trace")
    trace.export(folder / "recorded.trace", folder / "recorded.parquet")
    trace.import_from(folder / "recorded.parquet", folder / "whole.trace", seed=1)
    return folder / "whole.trace"


@pytest.mark.parametrize(
    ("scenario", "platform"),
    [
        pytest.param(scenario_of("load", "random", threads=8), PLATFORM, id="random loads"),
        pytest.param(scenario_of("load", "sequential", threads=2), PLATFORM, id="prefetched loads"),
        pytest.param(scenario_of("ntstore", "random", threads=8), PLATFORM, id="streaming stores"),
        pytest.param(scenario_of("store", "random", threads=2, memory="dram"), PLATFORM, id="write-backs"),
        pytest.param(ENGINE, PLATFORM, id="engine"),
        pytest.param(
            ENGINE, {"base": PLATFORM, "controller": {"pmem_read_queue": 1, "pmem_write_queue": 1}}, id="queues"
        ),
    ],
)
def test_reads_and_writes_are_those_that_the_machine_counts(
    scenario: Scenario, platform: Any, tmp_path: Path
) -> None:
    file = to_its_end(scenario, tmp_path)
    counted = trace.replay(file, platform).counters
    heard = 0
    for medium in MEDIA:
        if counted[f"{medium}_read_lines"] + counted[f"{medium}_write_lines"] == 0:
            continue
        rows = rows_of(file, medium, platform)
        for operation in ("read", "write"):
            assert (rows.operation == operation).sum() == counted[f"{medium}_{operation}_lines"]
        heard += rows.thread.isna().sum()
    # Nobody waits for lines that the prefetcher fetches and that caches evict.
    assert heard == counted["prefetches"] + counted["writebacks"]


def test_in_memory_mode_requests_are_the_programs(tmp_path: Path) -> None:
    file = to_its_end(ENGINE, tmp_path)
    platform = MEMORY_MODE | {"dram": {"capacity": "8 MiB"}}  # a cache that is far too small
    counted = trace.replay(file, platform).counters
    rows = {medium: rows_of(file, medium, platform) for medium in MEDIA}
    reads = {medium: int((found.operation == "read").sum()) for medium, found in rows.items()}
    writes = sum(int((found.operation == "write").sum()) for found in rows.values())
    assert counted["memory_mode_misses"] > 0
    # Each has looked into DRAM; what was not there has been put there.
    assert sum(reads.values()) == counted["dram_read_lines"]
    assert writes == counted["dram_write_lines"] - counted["memory_mode_misses"]
    # All but page tables, which are always there.
    tables = int((rows["dram"].address >= trace.info(file).extent_bytes["dram"]).sum())
    assert counted["memory_mode_hits"] + counted["memory_mode_misses"] == sum(reads.values()) - tables


def test_what_is_measured_begins_with_the_measurement(tmp_path: Path) -> None:
    file = tmp_path / "a.trace"
    trace.record(scenario_of("load", "random", threads=4, memory="dram"), file)
    measured = trace.replay(file)
    rows = rows_of(file, "dram", measured_only=True)
    whole = rows_of(file, "dram")
    assert len(rows) == measured.counters["dram_read_lines"] < len(whole)
    # A front end that has waited goes on where it stopped: the first few may have arrived before.
    shift = measured.started_ps
    expected = np.sort(np.maximum(whole.time_ps.to_numpy()[-len(rows) :] - shift, 0))
    assert abs(rows.time_ps.to_numpy() - expected).max() < 2_000_000
    assert rows.time_ps.iloc[-1] + shift == whole.time_ps.iloc[-1]


def test_a_load_is_a_walk_and_a_line_and_a_store_is_read_before_it_is_flushed(tmp_path: Path) -> None:
    file = made_of("load,4168,8,\nmfence,0,0,\nstore,8264,8,\nclwb,8264,8,\nsfence,0,0,\n", tmp_path)
    rows = rows_of(file, "pmem").drop(columns="time_ps").to_numpy().tolist()
    assert rows == [["read", 4160, 0], ["read", 8256, 0], ["write", 8256, 0]]
    # The upper table, then the last one, each a page of 4 KiB behind what the trace has in DRAM: nothing.
    tables = rows_of(file, "dram")
    pages = (tables.address // 4096).tolist()
    assert pages[:2] == [0, 1]
    assert set(tables.operation) == {"read"}
    assert set(tables.thread) == {0}


def test_streaming_stores_arrive_once_per_line_and_page_tables_follow_the_trace(tmp_path: Path) -> None:
    stores = "".join(f"stream_store,{address},8,\n" for address in range(0, 256, 8))
    file = made_of(stores + "sfence,0,0,\n", tmp_path, pmem=False)
    rows = rows_of(file, "dram")
    written = rows[rows.operation == "write"]
    assert written.address.tolist() == [0, 64, 128, 192]
    assert set(written.thread) == {0}
    read = rows[rows.operation == "read"]
    assert sorted(set(read.address // 4096)) == list(range(1, 1 + len(set(read.address // 4096))))


def test_dependent_loads_arrive_one_after_the_other(tmp_path: Path) -> None:
    # In one page, blocks apart and in no order that a prefetcher knows: a walk, then a latency between two.
    places = [0, 1280, 512, 3072, 1792, 2560, 768, 2048]
    for flag, least, most in (("dependent", 150_000, 1_000_000), ("", 0, 1_000)):
        rows = rows_of(made_of("".join(f"load,{place},8,{flag}\n" for place in places), tmp_path), "pmem")
        gaps = rows.time_ps.diff().iloc[1:]
        assert rows.address.tolist() == places
        assert least <= gaps.min() <= gaps.max() <= most


def fed(monkeypatch: pytest.MonkeyPatch, requests: Sequence[tuple[int, int, int, int]], piece: int = 2) -> None:
    """Let the core say these: time, line, thread, whether it is a write."""

    def trace_requests(*given: Any) -> None:
        take: Callable[[bytes], None] = given[5]
        rows = np.array(requests, dtype=REQUEST)
        for first in range(0, len(rows), piece):
            take(rows[first : first + piece].tobytes())

    monkeypatch.setattr(_native, "trace_requests", trace_requests)


SOME = [
    (0, 1, 0, 0),
    (999, 2, 1, 1),
    (1000, 3, NOBODY, 0),
    (4000, 4, 2, 1),
    (6000, 0x123456789A, NOBODY, 1),
]
DATA = "0" * 128
GOLDEN = {
    "dramsim3": "0x40 READ 0\n0x80 WRITE 0\n0xc0 READ 1\n0x100 WRITE 4\n0x48d159e2680 WRITE 6\n",
    "ramulator2": "LD 0x40\nST 0x80\nLD 0xc0\nST 0x100\nST 0x48d159e2680\n",
    "nvmain": (
        f"NVMV0\n0 R 40 {DATA} 0\n0 W 80 {DATA} 1\n1 R c0 {DATA} 0\n"
        f"4 W 100 {DATA} 2\n6 W 48d159e2680 {DATA} 0\n"
    ),
    # Issued at clocks 0, 1, 2, 4 and 6: one per clock, the third a clock late.
    "vans": "0x40 R\n0x80 W\n0xc0 R:0\n0x100 W:0\n0x48d159e2680 W\n",
    "table": (
        "time_ps,operation,address,thread\n"
        "0,read,64,0\n999,write,128,1\n1000,read,192,\n4000,write,256,2\n6000,write,5003999585920,\n"
    ),
}


@pytest.mark.parametrize("piece", [1, 2, 5])
@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_what_its_simulator_reads(
    form: str, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = made_of("load,0,8,\n", tmp_path)
    fed(monkeypatch, SOME, piece)
    out = tmp_path / ("x.csv" if form == "table" else "x.txt")
    counts = trace.requests(file, out, form=form, medium="pmem", platform=PLATFORM, clock=CLOCKS.get(form))
    assert out.read_text() == GOLDEN[form]
    assert counts == trace.RequestCounts(out, reads=2, writes=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["t.csv", "t.trace", out.name])


@pytest.mark.parametrize(
    ("clock", "ticks"), {"2 ns": [1, 3], "500 MHz": [1, 3], "1333 MHz": [5, 9], "1 ps": [3999, 7000]}.items()
)
def test_clocks_are_periods_or_frequencies(
    clock: str, ticks: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = made_of("load,0,8,\n", tmp_path)
    fed(monkeypatch, [(3999, 1, 0, 0), (7000, 2, 0, 0)])
    trace.requests(file, tmp_path / "x", form="dramsim3", medium="pmem", platform=PLATFORM, clock=clock)
    assert [int(line.split()[2]) for line in (tmp_path / "x").read_text().splitlines()] == ticks


def clocks_of_vans(lines: list[str]) -> list[int]:
    """Return when VANS would issue each line if it never stalled, clock by clock."""
    issued: list[int] = []
    clock, idle = 0, -1  # -1: it may read a line
    while len(issued) < len(lines):
        if idle < 0:
            issued.append(clock)
            _, _, wait = lines[len(issued) - 1].partition(":")
            idle = int(wait) if wait else -1
        elif idle > 0:
            idle -= 1
        else:
            idle = -1
        clock += 1
    return issued


@settings(max_examples=100, deadline=None)
@given(gaps=st.lists(st.integers(0, 5), min_size=1, max_size=30), piece=st.integers(1, 7))
def test_vans_issues_each_request_in_its_clock_or_the_first_free_one(
    gaps: list[int], piece: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("vans")
    file = made_of("load,0,8,\n", folder)
    times = np.cumsum([7, *gaps]).tolist()
    with pytest.MonkeyPatch.context() as patch:
        fed(patch, [(time * 1000, number, 0, 0) for number, time in enumerate(times)], piece)
        trace.requests(file, folder / "x", form="vans", medium="pmem", platform=PLATFORM, clock="1 ns")
    expected = [0]
    for time in times[1:]:
        expected.append(max(time - times[0], expected[-1] + 1))
    assert clocks_of_vans((folder / "x").read_text().splitlines()) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--form", "dramsim", "--medium", "pmem"], "form: 'dramsim' is unknown; did you mean 'dramsim3'?"),
        (["--form", "vans", "--medium", "block"], "medium: 'block' has no lines; choose 'dram' or 'pmem'"),
        (["--form", "vans", "--medium", "pmem"], "clock: form vans counts clocks; say how long one is (tCK of"),
        (["--form", "nvmain", "--medium", "pmem"], "(CPUFreq of its configuration), such as '1.25 ns'"),
        (
            ["--form", "ramulator2", "--medium", "pmem", "--clock", "1 ns"],
            "clock: form ramulator2 has no times; leave this out",
        ),
        (
            ["--form", "table", "--medium", "pmem", "--clock", "1 ns", "--out", "x.csv"],
            "clock: form table has times in picoseconds; leave this out",
        ),
        (["--form", "vans", "--medium", "pmem", "--clock", "1"], "clock: '1' lacks a unit; write a time like"),
        (
            ["--form", "vans", "--medium", "pmem", "--clock", "0 ns"],
            "clock: '0 ns' never ticks; choose a period",
        ),
        (["--form", "vans", "--medium", "pmem", "--clock", "2 GiB"], "clock: '2 GiB' is a size, not a time"),
        (["--form", "table", "--medium", "pmem"], "out: 'x' is no table; choose a name in .parquet, .csv"),
        (
            ["--form", "ramulator2", "--medium", "pmem", "--out", "x.csv"],
            "out: 'x.csv' is a table's name, form ramulator2 is text; choose another one",
        ),
        (["--form", "ramulator2", "--medium", "pmem", "--out", "nowhere/x"], "nowhere/x: "),
        (
            ["--form", "ramulator2", "--medium", "pmem", "--out", "t.trace"],
            "out: 't.trace' is the input; choose",
        ),
        (
            ["--form", "nvmain", "--medium", "pmem", "--clock", "1 ps"],
            "form: nvmain counts at most 2147483647 clocks, this run takes more; choose a longer clock",
        ),
        (
            ["--form", "ramulator2", "--medium", "pmem", "--platform", "spr"],
            "platform 'spr'",
        ),
    ],
)
def test_what_cannot_be_written_is_said_and_an_older_file_stays(
    given: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # 3 ms of computing between two loads.
    made_of("load,0,8,\ncompute,4294967295,1,\ncompute,4294967295,1,\nload,1048576,8,dependent\n", tmp_path)
    Path("x").write_text("older")
    options = given if "--out" in given else [*given, "--out", "x"]
    options = options if "--platform" in given else [*options, "--platform", PLATFORM]
    result = CliRunner().invoke(trace_app, ["requests", "t.trace", *options])
    assert isinstance(result.exception, ConfigError), result.output
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)
    assert Path("x").read_text() == "older"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv", "t.trace", "x"]


def test_a_medium_that_is_not_asked_is_said(tmp_path: Path) -> None:
    file = made_of("load,0,8,\n", tmp_path, pmem=False)
    with pytest.raises(ConfigError, match="nothing is asked of pmem on platform 'tum-6212u'; choose the other"):
        trace.requests(file, tmp_path / "x", form="ramulator2", medium="pmem", platform=PLATFORM)
    assert not (tmp_path / "x").exists()


def test_the_command_says_what_it_has_written(tmp_path: Path) -> None:
    file, out = made_of("stream_store,0,128,\nload,4096,8,\n", tmp_path), tmp_path / "x.trace"
    given = ["requests", str(file), "--out", str(out), "--form", "dramsim3", "--medium", "pmem"]
    result = CliRunner().invoke(trace_app, [*given, "--platform", PLATFORM, "--clock", "1.25 ns"])
    assert result.exit_code == 0, result.output
    assert result.output == f"{out}: 1 reads, 2 writes\n"
    assert sorted(line.rsplit(" ", 1)[0] for line in out.read_text().splitlines()) == [
        "0x0 WRITE",
        "0x1000 READ",
        "0x40 WRITE",
    ]
