"""Tables that are no trace: the message names column, row and remedy. And those of an older version."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pmsim import Scenario, trace
from pmsim.errors import ConfigError
from pmsim.trace import table
from pmsim.trace.micro_ops import FLAGS

ROOT = Path(__file__).parents[1]

HEAD = "kind,address,bytes\n"
GOOD = "load,64,8\n"


def refused(file: Path) -> str:
    with pytest.raises(ConfigError) as error:
        trace.import_from(file, file.with_suffix(".trace"))
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(f"{file}: ")
    return str(error.value).removeprefix(f"{file}: ")


@pytest.mark.parametrize(
    ("rows", "message"),
    {
        "negative": (
            GOOD + "load,-8,8\n",
            "address: row 2: '-8' cannot stand here; write a whole number from 0 to 4611686018427387903, "
            "decimal or with 0x",
        ),
        "many bytes": (
            GOOD * 3 + "load,64,99999999999\n",
            "bytes: row 4: '99999999999' cannot stand here; write a whole number from 0 to 4294967295",
        ),
        "a fraction": ("\n\nload,64,1.5\n", "bytes: row 1: '1.5' cannot stand here; write a whole number"),
        "a value too few": (
            GOOD + "load,64\n",
            "row 2: 2 values where the first line names 3 columns; write as many",
        ),
        "a value too many": (
            GOOD + "load,64,8,1\n",
            "row 2: 4 values where the first line names 3 columns; write as many",
        ),
    }.values(),
)
@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_what_arrow_cannot_read_of_a_csv_is_told_by_column_and_row(
    rows: str, message: str, suffix: str, tmp_path: Path
) -> None:
    file = tmp_path / f"t.{suffix}"
    content = (HEAD + rows).encode()
    file.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    assert refused(file).startswith(message)


def test_rows_are_counted_over_all_of_a_long_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "_CSV_BLOCK_BYTES", 64)
    (tmp_path / "t.csv").write_text("kind,address,bytes,site\n" + "load,64,8,1\n" * 1000 + "load,64,8,70000\n")
    assert refused(tmp_path / "t.csv").startswith(
        "site: row 1001: '70000' cannot stand here; write a whole number from 0 to 65535"
    )


def test_a_csv_that_is_not_utf_8_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(HEAD.encode() + b"lo\xff,64,8\n")
    assert refused(tmp_path / "t.csv") == "kind: row 1: not UTF-8 text; write the file in UTF-8"


def test_a_number_that_a_parquet_column_cannot_hold_is_told_by_column_and_row(tmp_path: Path) -> None:
    columns = {"kind": ["load"] * 2, "address": [64, -8], "bytes": [8, 8]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    assert refused(tmp_path / "t.parquet").startswith("address: row 2: -8 cannot stand here; write")


@pytest.mark.parametrize(
    ("marks", "message"),
    {
        "nested": (
            "bbe",
            "kind: row 2: operation_begin, and the one of row 1 has not ended on thread 0; add operation_end "
            "before it",
        ),
        "twice ended": (
            "b.ee",
            "kind: row 4: operation_end, and none has begun on thread 0; add operation_begin before it",
        ),
        "never ended": (
            "b..",
            "kind: row 1: operation_begin, and no operation ends in this file; add operation_end, or leave out "
            "the marks",
        ),
    }.values(),
)
@pytest.mark.parametrize("block", [2**23, 64])
def test_marks_that_do_not_fit_together_are_refused(
    marks: str, message: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "_CSV_BLOCK_BYTES", block)
    row = {"b": "operation_begin,0,0\n", "e": "operation_end,0,0\n", ".": GOOD}
    (tmp_path / "t.csv").write_text(HEAD + "".join(row[mark] for mark in marks))
    assert refused(tmp_path / "t.csv") == message


@pytest.mark.parametrize("marks", ["b.eb.eb.", ".e.e.e", ".eb.e"])
def test_marks_of_each_thread_are_its_own_and_the_last_operation_may_be_cut_off(
    marks: str, tmp_path: Path
) -> None:
    row = {"b": "operation_begin,0,0,{0}\n", "e": "operation_end,0,0,{0}\n", ".": "load,64,8,{0}\n"}
    rows = "".join(row[mark].format(thread) for mark in marks for thread in (7, 9))
    (tmp_path / "t.csv").write_text("kind,address,bytes,thread\n" + rows)
    imported = trace.import_from(tmp_path / "t.csv", tmp_path / "t.trace")
    assert imported.operations_by_kind["operation_end"] == 2 * marks.count("e")


@pytest.mark.parametrize("suffix", ["csv.gz", "parquet"])
def test_exports_of_runs_that_begin_operations_anew_are_imported(suffix: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "kind,address,bytes,batch\noperation_begin,0,0,0\noperation_begin,0,0,0\noperation_end,0,0,0\n"
    )
    trace.import_from(tmp_path / "t.csv", tmp_path / "a.trace")
    trace.export(tmp_path / "a.trace", tmp_path / f"b.{suffix}")
    again = trace.import_from(tmp_path / f"b.{suffix}", tmp_path / "b.trace")
    assert again.operations_by_kind["operation_begin"] == 2


def test_a_table_that_an_older_pmsim_has_exported_is_timed_from_its_first_operation_on(tmp_path: Path) -> None:
    chain = Scenario(
        kind="operations",
        platform="perma-a256",
        parameters={"operations": "rp_512", "region_size": 2**20, "threads": 2},
    )
    recorded = trace.record(chain, tmp_path / "a.trace").plan
    assert recorded["untimed_operations"] > 0
    trace.export(tmp_path / "a.trace", tmp_path / "a.parquet")
    rows = pq.read_table(tmp_path / "a.parquet")
    plan = json.loads(rows.schema.metadata[b"pmsim.plan"])
    del plan["untimed_operations"]
    pq.write_table(rows.replace_schema_metadata({"pmsim.plan": json.dumps(plan)}), tmp_path / "old.parquet")
    imported = trace.import_from(tmp_path / "old.parquet", tmp_path / "old.trace").plan
    assert imported == {**recorded, "untimed_operations": 0}


def test_a_plan_with_more_untimed_operations_than_its_warm_up_is_damaged(tmp_path: Path) -> None:
    plan = {"provenance": {}, "ended": 0, "seed": 0, "warmup_operations": 1, "untimed_operations": 2}
    plan |= {"measured_operations": 1, "pmem_footprint": 0, "group_of_thread": [0]}
    rows = pa.table({"kind": ["load"], "address": [64], "bytes": [8]}).replace_schema_metadata(
        {"pmsim.plan": json.dumps(plan)}
    )
    pq.write_table(rows, tmp_path / "a.parquet")
    assert refused(tmp_path / "a.parquet") == "metadata pmsim.plan is damaged; export the trace again"


def test_the_documentation_names_every_flag_of_a_table():
    row = next(
        line for line in (ROOT / "docs" / "traces.md").read_text().splitlines() if line[:9] == "| `flags`"
    )
    assert [flag for flag in FLAGS[1:] if f"`{flag}`" not in row] == []
