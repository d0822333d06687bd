"""Traces of other programs: what a table or lackey says is what the machine executes."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import pmsim
from pmsim import Scenario, _native, trace
from pmsim.commands.trace import trace_app
from pmsim.errors import ConfigError
from pmsim.trace import table
from pmsim.trace.micro_ops import KINDS, MEDIA, MICRO_OP, OF_LINES, WITHOUT_PLACE

PAGE = 2**21
SUFFIXES = ("csv", "parquet")
LACKEY = """==7== Lackey, an example Valgrind tool
I  04000000,3
 L 1ffe008,8
I  04000003,2
I  04000005,2
I  04000007,3
 M 1ffe03c,8
I  0400000a,2
==7== Counted 1 call to main()
I  0400000c,2
 S 7ff0000000,4
I  0400000e,2
I  04000010,1
"""


def operations_of(path: Path) -> dict[int, list[tuple[Any, ...]]]:
    """Return the micro-operations of each thread: kind, address, bytes, flags, site."""
    reader = _native.TraceReader(path)
    found: dict[int, list[tuple[Any, ...]]] = {}
    for index in range(reader.chunks):
        thread, operations, batches = reader.chunk(index)
        rows = np.frombuffer(operations, dtype=MICRO_OP)
        assert sum(batches) == len(rows)
        found.setdefault(thread, []).extend(
            (KINDS[row["kind"]], int(row["address"]), int(row["bytes"]), int(row["flags"]), int(row["site"]))
            for row in rows
        )
    return found


class PlainAddresses:
    """Pages in the order of their first use, one address at a time."""

    def __init__(self, pmem: tuple[int, int]) -> None:
        self.pmem = range(*pmem)
        self.pages: dict[tuple[int, int], int] = {}

    def place(self, address: int) -> int:
        window = 2 if address in self.pmem else 1
        of_window = [page for page in self.pages if page[0] == window]
        page = self.pages.setdefault((window, address // PAGE), len(of_window))
        return window * 2**44 + page * PAGE + address % PAGE


addresses = st.one_of(
    st.integers(0, 4 * PAGE), st.integers(2**40 - PAGE, 2**40 + 2 * PAGE), st.integers(0, 2**46)
)
PLAIN = ("store", "stream_store", "clwb", "prefetch")
FLAGS = st.sampled_from(("", "dependent"))
accesses = st.one_of(
    st.tuples(st.just("load"), addresses, st.integers(1, 300), FLAGS, st.integers(0, 2)),
    st.tuples(st.sampled_from(PLAIN), addresses, st.integers(1, 300), st.just(""), st.integers(0, 2)),
)
others = st.tuples(
    st.sampled_from(("sfence", "mfence", "compute", "operation_end")),
    st.integers(0, 1000),
    st.integers(0, 1000),
    st.just(""),
    st.integers(0, 2),
)


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.one_of(accesses, others), min_size=1, max_size=60),
    suffix=st.sampled_from(("csv", "parquet")),
)
def test_a_table_of_virtual_addresses_is_what_each_thread_executes(
    rows: list[tuple[str, int, int, str, int]], suffix: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("table")
    pmem = (2**40, 2**40 + PAGE + 777)
    expected: dict[int, list[tuple[Any, ...]]] = {}
    space = PlainAddresses(pmem)
    names = sorted({row[4] for row in rows})  # which threads there are
    for kind, address, size, flag, thread in rows:
        mine = expected.setdefault(names.index(thread), [])
        if kind not in OF_LINES:
            mine.append((kind, address, size, 0, 0))
            continue
        begin = address
        while begin < address + size:
            end = min(address + size, begin // 64 * 64 + 64)
            flags = int(flag == "dependent" and begin == address)
            mine.append((kind, space.place(begin), end - begin, flags, 0))
            begin = end
    columns = {
        "kind": [row[0] for row in rows],
        "address": [row[1] for row in rows],
        "bytes": [row[2] for row in rows],
        "flags": [row[3] or None for row in rows],
        "thread": [row[4] for row in rows],
    }
    file = folder / f"t.{suffix}"
    content = pa.table(columns, schema=pa.schema([(name, table.COLUMNS[name]) for name in columns]))
    (pq.write_table if suffix == "parquet" else pyarrow.csv.write_csv)(content, file)
    imported = trace.import_from(file, folder / "t.trace", pmem=[pmem])
    assert operations_of(folder / "t.trace") == expected
    assert imported == trace.info(folder / "t.trace", verify=True)
    assert imported.operations == sum(map(len, expected.values()))


ENGINE = Scenario(
    kind="oltp",
    platform={"base": "tum-6212u", "block_device": "nvme-p4510"},
    parameters={
        "engine": "three-tier",
        "workload": "ycsb-a",
        "data_size": "1 MiB",
        "dram_capacity": "1 MiB",
        "pmem_capacity": "8 MiB",
        "ssd_capacity": "32 MiB",
        "log_size": "8 MiB",
        "scale": "1",
        "threads": 3,
        "operations": 600,
        "warmup": 60,
        "breakdown": True,
    },
)
GROUPS = Scenario(
    kind="oltp",
    platform={"base": "tum-6212u", "block_device": "nvme-p4510"},
    parameters={
        "engine": "main-memory",
        "workload": "ycsb-a",
        "data_size": "1 MiB",
        "dram_capacity": "8 MiB",
        "pmem_capacity": "8 MiB",
        "ssd_capacity": "32 MiB",
        "log_size": "8 MiB",
        "threads": 4,
        "commits": "group",
        "log_device": "ssd",
        "operations": 400,
        "warmup": 0,
    },
)
CHAIN = Scenario(
    kind="operations",
    platform="perma-a256",
    parameters={"operations": "rp_512,wp_64_cache", "region_size": 2**20, "threads": 2},
)


@pytest.mark.parametrize("scenario", [ENGINE, GROUPS, CHAIN], ids=["engine", "groups", "chain"])
def test_an_exported_trace_is_imported_again_as_the_same_trace(scenario: Scenario, tmp_path: Path) -> None:
    original = trace.record(scenario, tmp_path / "a.trace")
    trace.export(tmp_path / "a.trace", tmp_path / "a.parquet")
    again = trace.import_from(tmp_path / "a.parquet", tmp_path / "b.trace")
    assert operations_of(tmp_path / "b.trace") == operations_of(tmp_path / "a.trace")
    assert again.plan == original.plan
    assert trace.replay(tmp_path / "b.trace") == trace.replay(tmp_path / "a.trace")


def test_csv_needs_to_be_told_what_only_parquet_keeps(tmp_path: Path) -> None:
    plan = trace.record(ENGINE, tmp_path / "a.trace").plan
    trace.export(tmp_path / "a.trace", tmp_path / "a.csv.gz")
    trace.import_from(
        tmp_path / "a.csv.gz",
        tmp_path / "b.trace",
        warmup=plan["warmup_operations"],
        operations=plan["measured_operations"],
        seed=plan["seed"],
    )
    replays = [trace.replay(tmp_path / name, ENGINE.platform) for name in ("a.trace", "b.trace")]
    assert replays[0] == replays[1]


def test_rows_that_were_taken_out_of_an_export_are_measured_as_they_are(tmp_path: Path) -> None:
    trace.record(ENGINE, tmp_path / "a.trace")
    trace.export(tmp_path / "a.trace", tmp_path / "a.parquet")
    whole = pq.read_table(tmp_path / "a.parquet")
    frame = whole.to_pandas()
    frame[frame.thread == 1].to_parquet(tmp_path / "one.parquet")
    one = trace.import_from(tmp_path / "one.parquet", tmp_path / "one.trace")
    assert one.threads == 1
    assert one.plan["warmup_operations"] == 0
    replayed = trace.replay(tmp_path / "one.trace", ENGINE.platform)
    assert replayed.total.operations == one.operations_by_kind["operation_end"]


def test_what_lackey_says_is_loaded_stored_and_computed(tmp_path: Path) -> None:
    log = tmp_path / "lackey.log"
    log.write_text(LACKEY)
    dram, pmem = 2**44, 2 * 2**44
    # The instruction that accesses is the access; of a modified value the load comes first; a line is cut.
    offset = 0x1FFE000 % PAGE
    expected = [
        ("load", dram + offset + 8, 8, 0, 0),
        ("compute", 0, 2, 0, 0),
        ("load", dram + offset + 0x3C, 4, 0, 0),
        ("load", dram + offset + 0x40, 4, 0, 0),
        ("store", dram + offset + 0x3C, 4, 0, 0),
        ("store", dram + offset + 0x40, 4, 0, 0),
        ("compute", 0, 1, 0, 0),
        ("store", pmem, 4, 0, 0),
        ("compute", 0, 2, 0, 0),
    ]
    pmem_range = (0x7FF0000000, 0x7FF0001000)
    imported = trace.import_from(log, tmp_path / "a.trace", pmem=[pmem_range])
    assert operations_of(tmp_path / "a.trace") == {0: expected}
    assert imported.extent_bytes == {"dram": offset + 0x44, "pmem": 4, "block": 0}
    trace.import_from(log, tmp_path / "b.trace", pmem=[pmem_range], loads="dependent")
    flags = [row[3] for row in operations_of(tmp_path / "b.trace")[0]]
    assert flags == [1, 0, 1, 0, 0, 0, 0, 0, 0]


def test_a_store_to_the_mark_ends_an_operation_of_a_program_and_begins_the_next(tmp_path: Path) -> None:
    # The program marks, loads from PMem, marks, loads twice, marks, and goes home.
    loads = [
        "I  04000000,3\n L 7000000000,8\n",
        "I  04000000,3\n L 7000001000,8\nI  04000000,3\n L 7000002000,8\n",
    ]
    mark = "I  04000010,3\n S 00404040,4\n"
    home = "I  04000020,2\n L 7000003000,8\n" * 50
    (tmp_path / "l.log").write_text(home + mark + loads[0] + mark + loads[1] + mark + home)
    given = {"pmem": [(0x7000000000, 0x7000004000)], "loads": "dependent", "mark": 0x404040}
    imported = trace.import_from(tmp_path / "l.log", tmp_path / "a.trace", **given)
    assert imported.operations_by_kind["store"] == 0
    assert imported.operations_by_kind["operation_end"] == 3
    assert (imported.plan["warmup_operations"], imported.plan["measured_operations"]) == (1, 3)
    assert operations_of(tmp_path / "a.trace")[0][-1][0] == "operation_end"
    measured = trace.replay(tmp_path / "a.trace", "tum-6212u").total
    assert measured.operations == 2
    assert measured.elapsed_ps > 3 * 250_000  # three loads from PMem, one after the other
    trace.import_from(tmp_path / "l.log", tmp_path / "a.trace", **given, operations=1)
    assert trace.replay(tmp_path / "a.trace", "tum-6212u").total.operations == 1


def test_lackey_is_read_in_pieces_as_in_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "lackey.log"
    log.write_text(LACKEY * 3)
    trace.import_from(log, tmp_path / "a.trace")
    for lines in (1, 2, 5):
        monkeypatch.setattr("pmsim.trace.lackey._LINES_AT_ONCE", lines)
        trace.import_from(log, tmp_path / "b.trace")
        assert operations_of(tmp_path / "b.trace") == operations_of(tmp_path / "a.trace")


def test_dependent_loads_wait_for_each_other(tmp_path: Path) -> None:
    # 2000 loads of as many pages: one after the other they take a latency each, else ten at a time.
    rows = "\n".join(f"load,{number * 4096 * 7},8" for number in range(2000))
    dependent = "\n".join(f"load,{number * 4096 * 7},8,dependent" for number in range(2000))
    (tmp_path / "a.csv").write_text(f"kind,address,bytes\n{rows}\n")
    (tmp_path / "b.csv").write_text(f"kind,address,bytes,flags\n{dependent}\n")
    took = []
    for name in ("a", "b"):
        trace.import_from(tmp_path / f"{name}.csv", tmp_path / "t.trace", pmem=[(0, 2**40)])
        took.append(trace.replay(tmp_path / "t.trace", "tum-6212u").total.elapsed_ps)
    assert took[1] > 4 * took[0]
    assert took[1] > 2000 * 250_000  # more than a PMem latency each, less than all levels of the TLB


@pytest.mark.parametrize(
    ("content", "message"),
    {
        "no column": (
            "kind,bytes\nload,8\n",
            "address: column is missing; the first line names",
        ),
        "odd column": ("kind,adress,bytes\nload,1,8\n", "'adress': unknown column; did you mean 'address'?"),
        "twice": ("kind,address,bytes,bytes\nload,1,8,8\n", "bytes: column occurs twice; keep one"),
        "no kind": ("kind,address,bytes\n,64,8\n", "kind: row 1: there is none; every row needs one"),
        "odd kind": ("kind,address,bytes\nload,64,8\nlaod,64,8\n", "kind: row 2: 'laod'; did you mean 'load'?"),
        "no address": ("kind,address,bytes\nload,,8\n", "address: row 1: there is none; say where"),
        "no bytes": ("kind,address,bytes\nload,64,\n", "bytes: row 1: load with 0; say how many"),
        "negative": ("kind,address,bytes\nload,-64,8\n", "address: row 1: '-64' cannot stand here; write"),
        "long": (
            "kind,address,bytes\nload,64,16777217\n",
            "row 1: load with 16777217; choose at most 16 MiB",
        ),
        "high": ("kind,address,bytes\nload,0x4000000000000000,8\n", "addresses have at most 62 bits"),
        "beyond": (
            "kind,address,bytes,medium\nload,0x100000000000,8,dram\n",
            "address: row 1: load with 0x100000000000; a medium has 16 TiB",
        ),
        "no medium": (
            "kind,address,bytes,medium\nload,64,8,\n",
            "medium: row 1: there is none; write dram, pmem or block",
        ),
        "odd medium": (
            "kind,address,bytes,medium\nload,64,8,ssd\n",
            "row 1: 'ssd'; known: dram, pmem, block",
        ),
        "wrong medium": (
            "kind,address,bytes,medium\nload,64,8,block\n",
            "medium: row 1: load with block; block_... are of block, all others of dram or pmem",
        ),
        "half a sector": (
            "kind,address,bytes,medium\nblock_read,512,256,block\n",
            "bytes: row 1: block_read with 256; a block device moves whole sectors of 512 bytes",
        ),
        "between sectors": (
            "kind,address,bytes,medium\nblock_write,100,512,block\n",
            "address: row 1: block_write with 0x64; a block device moves whole sectors of 512 bytes",
        ),
        "nothing gathered": (
            "kind,address,bytes,medium\nblock_gather,512,0,block\n",
            "bytes: row 1: block_gather with 0; say how many",
        ),
        "split lock": (
            "kind,address,bytes\natomic,60,8\n",
            "bytes: row 1: atomic with 8; a locked access lies within a line of 64 bytes",
        ),
        "no latch": (
            "kind,address,bytes\nacquire,64,8\n",
            "flags: row 1: a latch needs one; write shared, exclusive, optimistic or attempt",
        ),
        "odd flag": (
            "kind,address,bytes,flags\nload,64,8,exclusive\n",
            "flags: row 1: its kind has no such flag; see docs/traces.md",
        ),
        "no wait": ("kind,address,bytes,flags\nstore,64,8,dependent\n", "row 1: its kind has no such flag"),
        "no rows": ("kind,address,bytes\n", "holds no micro-operation; record some"),
        "empty": ("", "docs/traces.md tells columns and values"),
        "many cycles": (
            "kind,address,bytes\ncompute,4294967296,1\n",
            "address: row 1: compute with 0x100000000; of compute it is the cycles, less than 2^32",
        ),
    }.values(),
)
def test_a_table_that_cannot_be_executed_is_refused_and_an_older_trace_stays(
    content: str, message: str, tmp_path: Path
) -> None:
    file, out = tmp_path / "t.csv", tmp_path / "t.trace"
    file.write_text(content)
    out.write_bytes(b"older")
    with pytest.raises(ConfigError) as refused:
        trace.import_from(file, out)
    assert str(refused.value).startswith(f"{file}: ")
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert out.read_bytes() == b"older"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv", "t.trace"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["import", "absent.csv", "--out", "t"], "absent.csv: no such file"),
        (["import", "text.log", "--out", "t"], "text.log: line 2 is not of valgrind's lackey"),
        (["import", "t.csv", "--out", "t", "--pmem", "16 MiB"], "--pmem: '16 MiB' is no range"),
        (["import", "t.csv", "--out", "t", "--pmem", "a-z"], "--pmem: 'z' is no address"),
        (["import", "text.log", "--out", "t", "--mark", "main"], "--mark: 'main' is no address"),
        (["import", "text.log", "--out", "t", "--mark", "404040"], "nothing is stored to mark 0x404040"),
        (["import", "empty.log", "--out", "t"], "empty.log: holds no micro-operation; record some"),
        (["import", "odd.parquet", "--out", "t"], "metadata pmsim.plan is damaged; export the trace again"),
        (["import", "t.csv", "--out", "t", "--mark", "404040"], "mark: a table says it itself"),
        (["import", "t.csv", "--out", "t", "--pmem", "20-10"], "pmem: 0x20-0x10 holds no address"),
        (
            ["import", "t.csv", "--out", "t", "--pmem", "0-20", "--pmem", "10-30"],
            "ranges overlap at 0x10",
        ),
        (["import", "t.csv", "--out", "t", "--loads", "dependent"], "loads: a table says it itself"),
        (["import", "t.csv", "--out", "t", "--loads", "some"], "loads: 'some' is unknown"),
        (["import", "t.csv", "--out", "t", "--warmup", "1"], "warmup: 1: 0 operations end in the trace"),
        (
            ["import", "t.csv", "--out", "t", "--operations", "2"],
            "operations: 2: 0 operations end",
        ),
        (["import", "t.csv", "--out", "t", "--warmup", "-1"], "warmup: -1 is too few"),
        (["import", "t.csv", "--out", "."], "is a directory"),
        (["import", "t.parquet", "--out", "t"], "t.parquet: "),
        (["export", "t.csv", "--out", "x.csv"], "not a pmsim trace"),
        (["export", "t.trace", "--out", "x.txt"], "out: 'x.txt' is no table; choose a name in .parquet, .csv"),
        (["export", "t.trace", "--out", "nowhere/x.csv"], "nowhere/x.csv: "),
        (["import", "t.csv", "--out", "t.csv"], "out: 't.csv' is the input; choose another file"),
        (["export", "link.csv", "--out", "link.csv"], "out: 'link.csv' is the input; choose another file"),
    ],
)
def test_what_cannot_be_exchanged_is_said(
    given: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("kind,address,bytes\nload,64,8\n")
    Path("text.log").write_text("I  04000000,3\nhello\n")
    Path("t.parquet").write_text("no parquet")
    Path("empty.log").write_text("==7== Lackey, an example Valgrind tool\n")
    column = pa.schema([("kind", pa.string()), ("address", pa.uint64()), ("bytes", pa.uint32())])
    odd = pa.table([["load"], [64], [8]], schema=column.with_metadata({"pmsim.plan": '{"ended": "many"}'}))
    pq.write_table(odd, "odd.parquet")
    trace.import_from("t.csv", "t.trace")
    Path("link.csv").symlink_to("t.trace")
    result = CliRunner().invoke(trace_app, given)
    assert isinstance(result.exception, ConfigError)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)


def test_the_commands_import_describe_and_export(tmp_path: Path) -> None:
    log, out, again = tmp_path / "lackey.log", tmp_path / "a.trace", tmp_path / "a.csv"
    log.write_text(LACKEY)
    runner = CliRunner()
    given = ["import", str(log), "--out", str(out), "--pmem", "7ff0000000-7ff0001000"]
    result = runner.invoke(trace_app, given)
    assert result.exit_code == 0, result.output
    assert "lackey imported by  pmsim" in result.output
    assert "all of it; it does not say where operations of a workload end" in result.output
    assert "pmem touched        4 B" in result.output
    result = runner.invoke(trace_app, ["export", str(out), "--out", str(again)])
    assert result.output == f"{again}: 9 micro-operations\n"
    head, first = again.read_text().splitlines()[:2]
    assert head == "kind,address,bytes,medium,thread,flags,batch,site"
    assert first == f"load,{0x1FFE008 % PAGE},8,dram,0,,0,0"


def test_the_last_operation_is_measured_to_its_end(tmp_path: Path) -> None:
    rows = "operation_begin,0,0,\nload,0,8,\nload,4096,8,dependent\noperation_end,0,16,\n"
    (tmp_path / "t.csv").write_text(f"kind,address,bytes,flags\n{rows}")
    imported = trace.import_from(tmp_path / "t.csv", tmp_path / "t.trace", pmem=[(0, 2**21)])
    measured = trace.replay(tmp_path / "t.trace", "tum-6212u").total
    assert measured.operations == imported.operations_by_kind["operation_end"] == 1
    assert measured.user_bytes == 16
    assert measured.elapsed_ps >= measured.latency.max_ps > 2 * 250_000


def test_every_kind_and_medium_has_its_name_in_tables(tmp_path: Path) -> None:
    assert len(KINDS) == len(set(KINDS)) == 20
    assert tuple(trace.record(CHAIN, tmp_path / "a.trace").extent_bytes) == MEDIA
    assert set(WITHOUT_PLACE) | set(OF_LINES) < set(KINDS)


def test_kind_trace_is_the_replay_on_every_machine_of_a_sweep(tmp_path: Path) -> None:
    log = tmp_path / "lackey.log"
    log.write_text(LACKEY)
    for make in (
        lambda out: trace.import_from(log, out, pmem=[(0x7FF0000000, 0x7FF0001000)]),
        lambda out: trace.record(CHAIN, out),
    ):
        make(tmp_path / "a.trace")
        scenario = Scenario(
            kind="trace",
            platform="perma-a256",
            parameters={"file": str(tmp_path / "a.trace")},
            sweep={"platform.pmem.media_read_latency": ["100 ns", "300 ns"]},
            metrics=["time_ms", *trace.replay(tmp_path / "a.trace", "perma-a256").counted()],
        )
        frame = pmsim.run(scenario, jobs=1).frame
        for row, latency in zip(frame.to_dict("records"), ("100 ns", "300 ns"), strict=True):
            machine = {"base": "perma-a256", "pmem": {"media_read_latency": latency}}
            expected = trace.replay(tmp_path / "a.trace", machine)
            assert row["time_ms"] == expected.total.elapsed_ps / 1e9
            assert {name: row[name] for name in expected.counted()} == expected.counted()
    assert frame["time_ms"][0] < frame["time_ms"][1]


def test_a_finished_point_of_kind_trace_is_run_again_when_the_file_has_changed(tmp_path: Path) -> None:
    file, took = tmp_path / "a.trace", []
    scenario = Scenario(kind="trace", platform="perma-a256", parameters={"file": str(file)})
    for size in (64, 4096):
        (tmp_path / "t.csv").write_text(f"kind,address,bytes\nload,0,{size}\n")
        trace.import_from(tmp_path / "t.csv", file)
        took.append(pmsim.run(scenario, out=tmp_path / "out", jobs=1).frame["time_ms"][0])
    assert took[0] < took[1]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "file: is missing; name a trace"),
        ({"file": "absent.trace"}, "file: trace absent.trace: no such file"),
        ({"file": "t.csv"}, "file: trace t.csv: not a pmsim trace"),
        ({"file": "wide.trace"}, "file: has 3 threads, platform 'one' has 1; choose a larger platform"),
    ],
)
def test_kind_trace_says_what_it_cannot_run(
    parameters: dict[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("kind,address,bytes,thread\nload,64,8,5\nload,64,8,7\nload,64,8,9\n")
    trace.import_from("t.csv", "wide.trace")
    platform = {"base": "tum-6212u", "name": "one", "core": {"cores": 1, "threads_per_core": 1}}
    with pytest.raises(ConfigError, match=re.escape(message)):
        pmsim.run(Scenario(kind="trace", platform=platform, parameters=parameters))
