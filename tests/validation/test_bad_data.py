"""Damaged files of published data sets: one line that names file and place, or left out, counted and shown."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pmsim.errors import ConfigError
from pmsim.validation import cli
from pmsim.validation.loaders import load
from pmsim.validation.runnable import leave_out_impossible

DATA = Path(__file__).parents[1] / "data"
SETS = {"optane_study": "graphs/04-bandwidth_thcount_dram.csv", "perma_bench": "a256_raw.csv"}
RESULTS = "results/apache-128.json"


def copied(name: str, folder: Path) -> Path:
    return Path(shutil.copytree(DATA / name, folder / "set"))


def refusal(folder: Path) -> str:
    with pytest.raises(ConfigError) as raised:
        load([folder])
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "found: nothing; correct the header"),
        ("Größe,Threads\n".encode("utf-16"), "not CSV: not UTF-8 text"),
        (b"\xff\xfe", "not CSV: not UTF-8 text"),
        (b'"', "line 1: not CSV: unexpected end of data"),
    ],
)
def test_files_that_are_no_tables(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    path = copied(name, tmp_path) / SETS[name]
    path.write_bytes(content)
    said = refusal(tmp_path / "set")
    assert said.startswith(str(path))
    assert message in said


def test_a_column_that_is_there_twice(tmp_path: Path) -> None:
    path = copied("optane_study", tmp_path) / SETS["optane_study"]
    lines = path.read_text().splitlines()
    path.write_text("\n".join(f"{line},{line.split(',')[1]}" for line in lines))
    assert f"{path}: two columns 'Read'; remove or rename one" in refusal(tmp_path / "set")


def test_lines_are_counted_as_an_editor_does(tmp_path: Path) -> None:
    path = copied("optane_study", tmp_path) / SETS["optane_study"]
    header, *lines = path.read_text().splitlines()
    path.write_text("\n".join([header, "", "", lines[0], "2,nan,1,1"]))
    assert f"{path}, line 5, column 'Read': 'nan' is not a positive number; correct it" in refusal(
        tmp_path / "set"
    )


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [('"2,3,1,1\n3,3,1,1', "not CSV: unexpected end of data"), ("2,3", "expected 4 values")],
)
def test_the_line_of_a_broken_row_is_told(wrong: str, problem: str, tmp_path: Path) -> None:
    path = copied("optane_study", tmp_path) / SETS["optane_study"]
    header, *lines = path.read_text().splitlines()
    assert header.count(",") == 3
    path.write_text("\n".join([header, lines[0], "", "", wrong]))
    assert f"{path}, line 5: {problem}" in refusal(tmp_path / "set")


@pytest.mark.parametrize("text", ["1_000", "\u0663", "0x10", "1e400", "-inf", "", "true"])
def test_numbers_are_decimal(text: str, tmp_path: Path) -> None:
    path = copied("optane_study", tmp_path) / SETS["optane_study"]
    path.write_text(f"{path.read_text().splitlines()[0]}\n1,{text},1,1\n")
    assert "is not a positive number" in refusal(tmp_path / "set")


@pytest.mark.parametrize(
    ("file", "column", "value"),
    [
        ("bandwidth.csv", "delay", "x"),
        ("bandwidth.csv", "stride_size", "inf"),
        ("bandwidth.csv", "align_size", "-1"),
        ("flush.csv", "fence_size", "1.5"),
        ("flush.csv", "clwb_size", "nan"),
    ],
)
def test_columns_that_may_be_empty(file: str, column: str, value: str, tmp_path: Path) -> None:
    path = copied("optane_study", tmp_path) / "data" / file
    header, first = path.read_text().splitlines()[:2]
    cells = dict(zip(header.split(","), first.split(","), strict=True)) | {column: value}
    path.write_text("\n".join([",".join(cells), ",".join(cells.values())]))
    said = refusal(tmp_path / "set")
    assert f"{path}, line 2, column '{column}': '{value}' is not a" in said


@pytest.mark.parametrize("name", ["graphs/04-bandwidth_thcount_dram.csv", "data/flush.csv", RESULTS])
def test_a_folder_where_a_file_belongs(name: str, tmp_path: Path) -> None:
    path = copied("perma_bench" if name == RESULTS else "optane_study", tmp_path) / name
    path.unlink()
    path.mkdir()
    assert refusal(tmp_path / "set") == f"{path}: is a directory; name a file in it"


def test_a_link_to_nothing(tmp_path: Path) -> None:
    path = copied("optane_study", tmp_path) / SETS["optane_study"]
    path.unlink()
    path.symlink_to("absent")
    assert refusal(tmp_path / "set") == f"{path}: no such file; check the path"


def test_a_file_without_an_end(tmp_path: Path) -> None:
    (tmp_path / "a256_raw.csv").symlink_to("/dev/zero")
    assert "a256_raw.csv: has more than 256 MiB" in refusal(tmp_path)


def of_run(change: Callable[[dict[str, Any]], Any]) -> bytes:
    """Return results whose first run has been changed."""
    content = json.loads((DATA / "perma_bench" / RESULTS).read_text())
    change(content[0]["benchmarks"][0])
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b'[{"bm_name": ' + b"9" * 5_000 + b"}]", "not a JSON file: Exceeds the limit"),
        (b'[{"bm_name": 1, "bm_name": 2}]', "an object with a key twice, among bm_name"),
        (b"{}", "benchmark 0: expected an object"),
        ("[]".encode("utf-16"), "not JSON: not UTF-8 text"),
        (of_run(lambda run: run.update(results=3)), "random_reads, run 0: results = 3: expected an object"),
        (of_run(lambda run: run["results"].update(bandwidth=10**400)), "bandwidth = 1000"),
        (
            of_run(lambda run: run["results"].update(bandwidth=float("nan"))),
            "bandwidth = nan: expected a positive",
        ),
        (of_run(lambda run: run["config"].update(memory_range=[])), "memory_range = []: expected a positive"),
        (of_run(lambda run: run["config"].update(number_partitions="x")), "number_partitions = 'x': expected"),
        (of_run(lambda run: run["config"].update(access_size=None)), "access_size = None: expected a positive"),
    ],
    ids=[
        "nested",
        "digits",
        "twins",
        "object",
        "UTF-16",
        "results",
        "huge",
        "nan",
        "range",
        "partitions",
        "size",
    ],
)
def test_results_that_are_damaged(content: bytes, message: str, tmp_path: Path) -> None:
    path = copied("perma_bench", tmp_path) / RESULTS
    path.write_bytes(content)
    said = refusal(tmp_path / "set")
    assert said.startswith(str(path))
    assert message in said


def test_other_json_files_are_left_out_and_counted(tmp_path: Path) -> None:
    folder = copied("perma_bench", tmp_path)
    (folder / "settings.json").write_text("{")
    (data,) = load([folder])
    assert data.skipped.counts["settings.json: no results of PerMA-Bench"] == 1


def test_what_pmsim_cannot_simulate_is_left_out_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = copied("optane_study", tmp_path) / SETS["optane_study"]
    path.write_text(path.read_text().splitlines()[0] + "\n1,1,1,1\n100,1,1,1\n1e30,1,1,1\n")
    (data,) = cli._data_sets([tmp_path / "set"], "labelled")
    assert sum(row.experiment == path.stem for row in data.rows) == 3
    cli._introduce(cli.output(), data)
    told = " ".join(capsys.readouterr().out.split())
    assert f"left out, 6: {path.stem}: threads: 100 threads on platform 'ucsd-8260'" in told


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Return a file as a bad copy, a bad editor or a bad program may leave it."""
    position = chance.randrange(len(content))
    odd = chance.choice(
        [b"nan", b"-1", b"", b"1e999", b"null", b'"', b"\0", b",", b"[]", b"9" * 30, b"\n", b"x"]
    )
    start, end = (content.rfind(b",", 0, position) + 1, content.find(b",", position))
    return chance.choice(
        [
            content[:position],
            content[:start] + odd + content[end if end > 0 else position :],
            content[:position] + odd + content[position:],
            content[:position] + bytes([chance.randrange(256)]) + content[position + 1 :],
            content[:start] + content[end + 1 :],
            content.replace(b"\n", b"\r"),
        ]
    )


@pytest.mark.parametrize("name", SETS)
def test_whatever_is_damaged_nothing_but_a_line_comes_of_it(name: str, tmp_path: Path) -> None:
    chance = random.Random(7)
    folder = copied(name, tmp_path)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    told = []
    for _ in range(150):
        path = chance.choice(files)
        good = path.read_bytes()
        path.write_bytes(damaged(good, chance))
        try:
            for data in load([folder]):
                leave_out_impossible(data)
        except ConfigError as error:
            told.append(str(error))
        path.write_bytes(good)
    assert len(told) > 50
    assert all(str(folder) in line and len(line) < 600 for line in told)
