"""Recorded requests: read faithfully, executed on every engine as on a dictionary, refused in one line."""

import gzip
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pmsim
from pmsim import _native
from pmsim.errors import ConfigError
from pmsim.kinds.engine_options import timed_warmup
from pmsim.requests import OPERATIONS, load_requests

MACHINE = {"base": "tum-6212u", "block_device": "nvme-p4510"}
#: Little of everything, so that pages move between tiers.
SMALL = {
    "workload": "requests",
    "scale": 1,
    "row_size": 1000,
    "data_size": "1 MiB",
    "dram_capacity": "256 KiB",
    "pmem_capacity": "512 KiB",
    "ssd_capacity": "64 MiB",
    "log_size": "1 MiB",
    "page_size": 4096,
    "mini_pages": False,
    "check": True,
}
#: Rows of a MiB: 2.64 of 4 for each of 252 leaves; the rest is the catalog and inner nodes.
LOADED = 665
#: Where everything fits: for engines without a tier below.
ROOMY = {"dram_capacity": "32 MiB", "pmem_capacity": "64 MiB"}
ENGINES = [name for name in _native.engines() if name != "fptree"]

requests = st.lists(
    st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 40), st.integers(1, 60)), min_size=4, max_size=200
)


def write(file: Path, rows: Sequence[tuple[str, int, int]]) -> Path:
    """Write requests as CSV; the number counts rows of a scan, bytes of anything else."""
    lines = [
        f"{operation},{key},{'' if operation == 'scan' else count},{count if operation == 'scan' else ''}"
        for operation, key, count in rows
    ]
    file.write_text("\n".join(["operation,key,bytes,rows", *lines]) + "\n")
    return file


def row_of(file: Path, **parameters: object) -> pd.Series:
    scenario = pmsim.Scenario(
        kind="oltp", platform=MACHINE, parameters={**SMALL, "requests": str(file), **parameters}
    )
    return pmsim.run(scenario, jobs=1).frame.iloc[0]


def keys_left(rows: Sequence[tuple[str, int, int]], executed: int) -> int:
    """Return how many more of the requested keys exist after the first requests than at the start."""
    first = {key: operation for operation, key, _ in reversed(rows)}
    start = {key for key, operation in first.items() if operation != "insert"}
    now = set(start)
    for operation, key, _ in rows[:executed]:
        if operation == "insert":
            now.add(key)
        elif operation == "delete":
            now.discard(key)
    return len(now) - len(start)


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=requests)
def test_engines_serve_requests_as_a_dictionary_would(
    tmp_path: Path, engine: str, rows: list[tuple[str, int, int]]
) -> None:
    """The core compares what each request finds with what it should; in the end as many rows are left."""
    file = write(tmp_path / "requests.csv", rows)
    measured = next(n for n in range(len(rows), 0, -1) if n + timed_warmup(n) <= len(rows))
    home = {} if engine in ("three-tier", "ssd-bm", "spitfire") else ROOMY
    row = row_of(file, engine=engine, operations=measured, warmup=0, **home)
    inserted = keys_left(rows, measured + timed_warmup(measured))
    assert row["table_rows"] == LOADED + inserted


def test_the_documented_file_and_scenario_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[1] / "docs" / "requests.md").read_text()
    (csv,) = re.findall(r"```csv\n(.*?)```", page, re.DOTALL)
    at_once, when_they_came = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    head, *lines = csv.splitlines()
    asked = [line.rsplit(",", 1) for line in lines]
    later = [f"{what},{Decimal(second) + number}" for number in range(10) for what, second in asked]
    Path("requests.csv").write_text("\n".join([head, *later]))
    Path("mine.toml").write_text(at_once.replace('"4 GiB"', '"4 MiB"'))
    assert list(pmsim.run("mine.toml", jobs=1).frame["fits"]) == [1, 1, 1]
    Path("mine.toml").write_text(when_they_came.replace("4_000_000", "4_000"))
    assert list(pmsim.run("mine.toml", jobs=1).frame["simulated_ops"]) == [30, 30, 30, 30]


def test_the_documented_conversion_reads_the_trace_of_a_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[1] / "docs" / "requests.md").read_text()
    (source,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("cluster052").write_text(
        "5,nz:u:eeW511W3dcH3de3d15ec,22,304,7,get,0\n"
        "5,NA,22,304,7,get,0\n"
        "5,nz:u:eeW511W3dcH3de3d15ec,22,0,8,delete,0\n"
        "5,NA,22,0,8,incr,0\n"
        "6,NA,22,120,9,set,86400\n"
    )
    exec(compile(source, "docs/requests.md", "exec"), {})
    requests = load_requests("requests.parquet")
    assert requests.operations == {"read": 2, "insert": 1, "delete": 1, "read-modify-write": 1}
    assert requests.keys == 2
    assert requests.times is not None
    assert requests.times.tolist() == [0, 25 * 10**10, 5 * 10**11, 75 * 10**10, 10**12]


def test_fptree_takes_rows_of_a_word(tmp_path: Path) -> None:
    file = write(tmp_path / "requests.csv", [("insert", key, 8) for key in range(50)] + [("read", 7, 8)] * 50)
    row = row_of(file, engine="fptree", row_size=8, **ROOMY)
    assert row["fits"] == 1


def test_all_forms_of_a_file_are_the_same_requests(tmp_path: Path) -> None:
    plain = write(tmp_path / "plain.csv", [("read", 30, 8), ("scan", 4, 20), ("update", 30, 16)])
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    parquet = tmp_path / "columns.parquet"
    pd.read_csv(plain).astype({"bytes": "Int64", "rows": "Int64"}).to_parquet(parquet)
    forms = [load_requests(file) for file in (plain, packed, parquet)]
    assert {form.digest for form in forms} == {forms[0].digest}
    assert (len(forms[0]), forms[0].keys) == (3, 2)
    assert forms[0].operations == {"read": 1, "update": 1, "scan": 1}


def test_keys_of_text_are_ordered_as_texts(tmp_path: Path) -> None:
    names, numbers = tmp_path / "names.csv", tmp_path / "numbers.csv"
    names.write_text("operation,key\nread,user-b\nread,user-a\nread,user-c\n")
    numbers.write_text("operation,key\nread,20\nread,10\nread,300\n")
    assert load_requests(names).packed == load_requests(numbers).packed


@pytest.mark.parametrize(
    "keys",
    [
        [2**64 - 1, 2**63, -5],  # of hashes
        [10**38 - 1, 10**20, 7],  # of universally unique identifiers
        ["b", "NA", "123"],
        ["2024-01-02", "2024-01-01", "1e5"],
        ["7", "007", "10"],  # three keys
        [" 10", "9", "a"],  # blanks belong to texts
    ],
)
def test_keys_may_have_more_digits_than_a_machine_and_look_like_anything(
    keys: list[int] | list[str], tmp_path: Path
) -> None:
    file = tmp_path / "requests.csv"
    file.write_text("\n".join(["operation,key", *(f"read,{key}" for key in keys)]))
    packed = load_requests(file).packed
    ranks = [int.from_bytes(packed[at : at + 8], "little") for at in range(0, len(packed), 16)]
    assert ranks == [sorted(keys).index(key) for key in keys]  # type: ignore[type-var,arg-type]


def test_keys_that_their_first_request_inserts_do_not_exist_at_the_start(tmp_path: Path) -> None:
    file = tmp_path / "requests.csv"
    file.write_text("operation,key\ninsert,1\nread,1\ndelete,2\ninsert,2\n")
    assert (load_requests(file).keys, load_requests(file).existing) == (2, 1)


def test_a_changed_file_is_another_point(tmp_path: Path) -> None:
    """Results are kept by content: the name of a file says nothing of it."""
    file = tmp_path / "requests.csv"
    scenario = pmsim.Scenario(
        kind="oltp", platform=MACHINE, parameters={**SMALL, "requests": str(file), "engine": "three-tier"}
    )
    kept = []
    for count in (300, 300, 301):
        write(file, [("read", key % 40, 100) for key in range(count)])
        result = pmsim.run(scenario, jobs=1, out=tmp_path / "out")
        kept.append(str(result.frame["configuration"].iloc[0]))
    assert kept[0] == kept[1] != kept[2]


def test_a_trace_of_requests_names_them_by_their_digest(tmp_path: Path) -> None:
    file = write(tmp_path / "requests.csv", [("update", key, 100) for key in range(300)])
    scenario = pmsim.Scenario(kind="oltp", platform=MACHINE, parameters={**SMALL, "requests": str(file)})
    recorded = pmsim.trace.record(scenario, tmp_path / "updates.trace")
    kept = recorded.provenance["workload_parameters"]["requests"]
    assert kept == f"sha256:{load_requests(file).digest}"


def test_every_engine_is_measured_on_the_same_requests(tmp_path: Path) -> None:
    """A benchmark's warm-up ends when an engine is steady; that of a recorded sequence does not."""
    file = write(tmp_path / "requests.csv", [("read", key % 40, 100) for key in range(4000)])
    for engine in ("main-memory", "three-tier", "nvm-direct"):
        row = row_of(file, engine=engine, operations=1000, warmup=2001, **ROOMY)
        assert row["warmup_transactions"] == 2001


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("operation,key\n", "no requests"),
        ("", "name a CSV or Parquet file"),
        ("op,key\nread,1\n", "'op': unknown column"),
        ("operation,key,size\nread,1,2\n", "'size': unknown column"),
        ("key\n1\n", "operation: column is missing"),
        ("operation\nread\n", "key: column is missing"),
        ("operation,key\nread,1\nget,2\n", "operation: request 2: 'get'"),
        ("operation,key\nread,1\n,2\n", "operation: request 2 has none"),
        ("operation,key\nread,1\nread,\n", "key: request 2 has none"),
        ("operation,key\nread,1.5\n", "key: is of type double"),
        ("operation,key\nread, 10\nread, 9\n", "key: request 1: ' 10' is a number with blanks around it"),
        ("operation,key\nread,10\nread,9 \n", "key: request 2: '9 ' is a number with blanks around it"),
        ("operation,key,bytes\nread,1,0\n", "bytes: request 1: 0 is no number"),
        ("operation,key,bytes\nread,1,many\n", "bytes: is of type string"),
        ("operation,key\nscan,1\n", "rows: request 1 is a scan"),
        ("operation,key,rows\nscan,1,5\nscan,1,\n", "rows: request 2 is a scan"),
        ("operation,key\nread,1,2\n", "name a CSV or Parquet file"),
        ("operation,key,key\nread,1,2\n", "key: column occurs twice; keep one"),
        ("operation,operation,key\nread,read,1\n", "operation: column occurs twice; keep one"),
        ("operation,key,bytes,bytes\nread,1,2,3\n", "bytes: column occurs twice; keep one"),
        ("operation,key,size,size\nread,1,2,3\n", "'size': unknown column"),
    ],
)
def test_what_is_no_file_of_requests_is_refused(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "requests.csv"
    file.write_text(content)
    with pytest.raises(ConfigError) as refused:
        load_requests(file)
    assert str(refused.value).startswith(f"{file}: ")
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_column_of_parquet_occurs_once(tmp_path: Path) -> None:
    file = tmp_path / "requests.parquet"
    columns = [pa.array(["read"]), pa.array([1]), pa.array([2])]
    table = pa.Table.from_arrays(columns, ["operation", "key", "key"])
    pyarrow.parquet.write_table(table, file)
    with pytest.raises(ConfigError) as refused:
        load_requests(file)
    assert str(refused.value) == f"{file}: key: column occurs twice; keep one"


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"requests": "nowhere.csv"}, "requests: nowhere.csv: No such file"),
        ({"requests": ""}, "requests: is missing"),
        ({"scale": "1/16"}, "scale: 1/16"),
        ({"row_size": 2000}, "row_size: 2000 B"),
        ({"row_size": 7}, "row_size: 7 B"),
        ({"operations": 41}, "requests: 41 are too few"),
        ({"operations": 30, "warmup": 10}, "requests: 41 are too few"),
        ({"data_size": "16 KiB"}, "requests: 41 of the keys exist"),
        ({"engine": "fptree"}, "choose lookup8, requests with row_size = 8"),
    ],
)
def test_what_cannot_be_run_is_refused(tmp_path: Path, parameters: dict[str, object], says: str) -> None:
    file = write(tmp_path / "requests.csv", [("read", key, 8) for key in range(41)])
    with pytest.raises(ConfigError) as refused:
        row_of(file, **parameters)
    assert says in str(refused.value)
