"""docs/validation.md says which files and columns are read, so that one can write them."""

import re
from pathlib import Path

import pytest

from pmsim.validation.loaders import load, optane_study, perma_bench

DATA = Path(__file__).parents[1] / "data"
PAGE = Path(__file__).parents[2] / "docs" / "validation.md"
SECTION = PAGE.read_text(encoding="utf-8").split("### File layouts\n")[1].split("\n## ")[0]


def columns_in_the_docs() -> dict[str, tuple[set[str], set[str]]]:
    """Return of each file of the tables the columns that it needs, and those that it may have."""
    found = {}
    for files, columns, _ in re.findall(r"^\| (`.*?) \| (.*?) \| (.*?) \|$", SECTION, re.MULTILINE):
        needed, _, optional = re.sub(r"\(`.*?\)(?=,)", "", columns).partition("; optional ")
        named = set(re.findall(r"`(.+?)`", needed)) | ({""} if "without a name" in needed else set())
        found |= dict.fromkeys(re.findall(r"`(.+?)`", files), (named, set(re.findall(r"`(.+?)`", optional))))
    return found


def read_of(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Return of each file of the test data the columns that its reader asks for."""
    asked: dict[str, set[str]] = {}

    class Row(dict[str, str]):
        """Notes which of its values are looked at."""

        def __init__(self, name: str, values: dict[str, str]) -> None:
            super().__init__(values)
            self.name = name

        def __getitem__(self, column: str) -> str:
            asked[self.name].add(column)
            return super().__getitem__(column)

        def get(self, column: str, default: str = "") -> str:  # type: ignore[override]
            asked[self.name].add(column)
            return super().get(column, default)

    for module, folder in ((optane_study, DATA / "optane_study"), (perma_bench, DATA / "perma_bench")):
        plain = module.read_csv

        def noted(path, required, plain=plain, folder=folder):
            name = path.relative_to(folder).as_posix()
            asked.setdefault(name, set()).update(required)
            return [(line, Row(name, row)) for line, row in plain(path, required)]

        monkeypatch.setattr(module, "read_csv", noted)
        module.load(folder)
    return asked


def test_the_docs_name_all_columns_that_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    told = columns_in_the_docs()
    in_all_sweeps = {"interleaving", "prefetching", "local", "delay", "avgpower", "peakpower"}
    for name, asked in read_of(monkeypatch).items():
        needed, optional = told[name]
        if name.startswith("data/"):
            optional |= in_all_sweeps
        assert needed <= asked, name
        assert asked <= needed | optional, name


def test_every_file_that_is_read_is_in_the_docs() -> None:
    figures = {f"graphs/{name}.csv" for name in optane_study._FIGURES}
    raw = {f"data/{name}" for name in optane_study._RAW}
    assert set(columns_in_the_docs()) == figures | raw | {optane_study._SUBSET, "a256_raw.csv"}


def test_the_examples_of_the_docs_are_read(tmp_path: Path) -> None:
    (table,) = re.findall(r"```csv\n(.*?)```", SECTION, re.DOTALL)
    (results,) = re.findall(r"```json\n(.*?)```", SECTION, re.DOTALL)
    (tmp_path / "random_bandwidth_subset.csv").write_text(table)
    (tmp_path / "a256.json").write_text(results)
    first, second = load([tmp_path])
    assert [(row.metric, row.value) for row in first.rows] == [("bandwidth_gb_s", 10.0)]
    assert [(row.metric, round(row.value, 2)) for row in second.rows] == [
        ("bandwidth_gb_s", 10.74),
        ("operations_per_s", 5e6),
        ("latency_ns", 800.0),
    ]
    assert not second.skipped.counts
