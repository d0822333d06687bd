"""Tables in a terminal's width, and lines that stay whole elsewhere."""

import io
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console
from rich.text import Text

from pmsim.cli import main
from pmsim.commands.run_printed import per_cent_of_interval
from pmsim.terminal import Column, output, print_item, print_table


def printed(width: int, columns: list[Column | str], *rows: list[str | Text], title: str = "") -> list[str]:
    file = io.StringIO()
    print_table(Console(file=file, width=width, markup=False, highlight=False), columns, rows, title)
    return file.getvalue().splitlines()


def test_columns_stand_below_each_other_and_no_line_ends_in_blanks() -> None:
    columns: list[Column | str] = ["name", Column("time [ms]", right=True), "note"]
    assert printed(80, columns, ["a", "12.5", ""], ["bcdef", "3", "[red]x"], title="A [title]") == [
        "A [title]",
        "name   time [ms]  note",
        "a           12.5",
        "bcdef          3  [red]x",
    ]


def test_cells_are_cut_or_go_on_in_the_next_line_before_a_whole_column_suffers() -> None:
    columns: list[Column | str] = ["whole", Column("cut", narrow="cut"), Column("wrap", narrow="wrap")]
    row: list[str | Text] = ["w" * 30, "c" * 30, "word " * 12]
    lines = printed(80, columns, row)
    assert lines[1].startswith("w" * 30 + "  ccccc")
    assert "…" in lines[1]
    assert " ".join(line[30:] for line in lines).split().count("word") == 12
    assert max(map(len, lines)) <= 80
    assert printed(1000, columns, row)[1] == f"{'w' * 30}  {'c' * 30}  {('word ' * 12).strip()}"


def test_a_column_that_may_be_left_out_goes_where_it_does_not_fit_and_is_named() -> None:
    columns: list[Column | str] = ["a", Column("spare", narrow="left out")]
    assert printed(12, columns, ["12345", "67890"]) == ["a      spare", "12345  67890"]
    narrow = printed(11, columns, ["12345", "67890"])
    assert narrow[:2] == ["a", "12345"]
    assert "".join(narrow[2:]).replace(" ", "") == "(awiderterminalalsoshowsspare)"


def test_a_column_of_the_rest_has_what_others_leave() -> None:
    columns: list[Column | str] = [Column("cut", narrow="cut"), Column("rest", narrow="rest", least=10)]
    row: list[str | Text] = ["c" * 20, "r" * 30]
    assert printed(52, columns, row)[1] == "c" * 20 + "  " + "r" * 30
    assert printed(32, columns, row)[1] == "c" * 20 + "  " + "r" * 9 + "…"
    assert printed(31, columns, row)[:2] == ["cut", "c" * 20]
    assert printed(1000, columns, row, ["c", "r"])[1:] == ["c" * 20 + "  " + "r" * 30, "c" + " " * 21 + "r"]


def test_a_name_that_hangs_over_costs_its_own_row_only() -> None:
    columns: list[Column | str] = [Column("name", narrow="hang"), Column("text", narrow="cut"), "last"]
    # The name gives six characters, so the text has 40 - 20 - 4 and two gaps; beside a long name six less.
    first, second = printed(40, columns, ["n" * 26, "t" * 20, "1"], ["n" * 5, "t" * 12, "2"])[1:]
    assert first == "n" * 26 + "  " + "t" * 5 + "…  1"
    assert second == "n" * 5 + " " * 17 + "t" * 12 + "  2"


def test_whole_columns_stay_whole_on_a_terminal_that_is_too_narrow() -> None:
    assert printed(10, ["first", "second"], ["1234567", "8901234"])[1] == "1234567  8901234"


def test_without_a_terminal_nothing_is_wrapped_unless_columns_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "word " * 50
    monkeypatch.delenv("COLUMNS", raising=False)
    print_item(output(), "name", text)
    assert capsys.readouterr().out == f"name: {text}\n"
    monkeypatch.setenv("COLUMNS", "40")
    print_item(output(), "name", text)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40
    assert all(line.startswith("    word") for line in lines[1:])


@pytest.mark.parametrize("chosen", [[], ["--set", 'metrics=["bandwidth_gb_s"]']])
def test_a_table_says_how_certain_a_throughput_is(
    chosen: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """In one column: the ends of the interval are in the results, also where `metrics` does not name them."""
    out = tmp_path / "out"
    arguments = [
        *chosen,
        "--set",
        "sweep.access_size=[64]",
        "--set",
        "sweep.threads=[24]",
        "--out",
        str(out),
        "--jobs",
        "1",
    ]
    assert main(["run", "quickstart", *arguments]) == 0
    shown = capsys.readouterr().out
    assert "bandwidth_gb_s_low" not in shown
    row = pd.read_parquet(out / "results.parquet").iloc[0]
    reach = 50 * (row["bandwidth_gb_s_high"] - row["bandwidth_gb_s_low"]) / row["bandwidth_gb_s"]
    assert f"{row['bandwidth_gb_s']:.4g} ± {reach:.1f} %" in shown


@pytest.mark.parametrize(
    ("reach", "text"), [(0.0, "0.0"), (0.0004, "0.0004"), (0.04, "0.04"), (0.06, "0.1"), (12.34, "12.3")]
)
def test_a_narrow_interval_has_a_digit_that_says_something(reach: float, text: str) -> None:
    assert per_cent_of_interval(reach) == text
