"""``pmsim validate`` from end to end, with a made-up simulator."""

import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

from pmsim.cli import main
from pmsim.runner import Progress
from pmsim.validation import cli
from pmsim.validation.measures import Point

DATA = Path(__file__).parents[1] / "data"
SUITE = """
title = "Two numbers"
[sources.paper]
citation = "Somebody: Something, 2020"
[series.s]
platform = "p"
kind = "latency"
metric = "latency_ns"
parameters = { memory = "dram" }
[[claim]]
id = "device-latency"
source = [{ ref = "paper", where = "Table 1" }]
setup = "one thread"
quantity = "latency"
kind = "absolute"
expected = EXPECTED
unit = "ns"
precision = "stated"
medium = "dram"
use = "calibration"
rule = "idle-or-peak"
measures.m = { point = "s" }
checks = [{ value = "m" }]
[[claim]]
id = "device-atomic"
source = [{ ref = "paper", where = "sec. 2" }]
setup = ""
quantity = "atomic unit"
kind = "exact"
expected = 8
unit = "B"
precision = "stated"
not_simulated = "tested elsewhere"
"""


def made_up(points: Sequence[Point], progress: Progress | None) -> list[dict[str, float] | str]:
    answers: list[dict[str, float] | str] = []
    for point in points:
        threads = point.parameters.get("threads", 1)
        groups = {f"group_{number}_bandwidth_gb_s": 3.0 * number for number in (1, 2)}
        rates = {"bandwidth_gb_s": 2.0 * threads, "operations_per_s": 1e6 * threads}
        answers.append({"latency_ns": 100.0 * threads, **rates, **groups})
    return answers


@pytest.fixture
def made_up_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "simulator", lambda **options: made_up)
    monkeypatch.setenv("COLUMNS", "200")


class Validate:
    """Runs the command and keeps what it wrote."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def __call__(self, *arguments: str, expected: float = 100) -> tuple[int, str]:
        suite = self._folder / "suite.toml"
        suite.write_text(SUITE.replace("EXPECTED", str(expected)))
        status = main(["validate", "--suite", str(suite), *arguments])
        written = self._capsys.readouterr()
        return status, written.out + written.err


@pytest.fixture
def validate(made_up_simulator: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Validate:
    return Validate(tmp_path, capsys)


def test_a_prediction_within_its_tolerance_exits_with_0(validate: Validate) -> None:
    status, output = validate()
    assert status == 0, output
    assert "claims of the publications alone" in output
    assert "1 pass, 1 not simulated; 1 runs" in output


def test_a_claim_that_fails_stays_in_the_table_and_exits_with_1(validate: Validate) -> None:
    status, output = validate(expected=200)
    assert status == 1
    assert "device-latency" in output
    assert "-50.0 %" in output
    assert "1 fail" in output


@pytest.mark.parametrize(
    "arguments",
    [
        ["--data", "absent"],
        ["--suite", "nonsense"],
        ["--optane-units", "imperial"],
        ["--jobs", "0"],
        ["--seed", "x"],
    ],
)
def test_bad_input_exits_with_2_and_one_line(validate: Validate, arguments: list[str]) -> None:
    status, output = validate(*arguments)
    assert status == 2
    assert output.count("\n") == 1, output


def test_an_output_folder_that_is_a_file_exits_with_2(validate: Validate, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    status, output = validate("--out", str(tmp_path / "taken"))
    assert (status, output.count("\n")) == (2, 1)


def test_the_report_works_alone_and_the_table_has_every_row(validate: Validate, tmp_path: Path) -> None:
    out = tmp_path / "out"
    status, output = validate("--data", str(DATA), "--out", str(out))
    assert status == 0, output
    page = (out / "report.html").read_text()
    assert "device-latency" in page
    assert not re.search(r"<(script|link)[^>]+(src|href)=", page)
    frame = pd.read_parquet(out / "results.parquet")
    assert (frame["table"] == "claim").sum() == 2
    read = re.findall(r"(?:optane-study|perma-bench): (\d+) measurements", output)
    assert (frame["table"] == "measurement").sum() == sum(int(number) for number in read)
    row = frame[
        (frame["id"] == "optane-study: 04-bandwidth_thcount_optane") & (frame["measured_value"] == 12.5)
    ]
    assert row["error"].item() == pytest.approx(8.0 / 12.5 - 1)


def test_a_measurement_that_cannot_be_simulated_exits_with_1(
    validate: Validate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = "AccessSize,Read,Write(ntstore),Write(clwb)\n64,1,1,1\n"
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "05-bandwidth_accesssize_dram.csv").write_text(table)

    def refuses(points: Sequence[Point], progress: Progress | None) -> list[dict[str, float] | str]:
        metrics = made_up(points, progress)
        return ["too many" if p.kind == "bandwidth" else m for p, m in zip(points, metrics, strict=True)]

    monkeypatch.setattr(cli, "simulator", lambda **options: refuses)
    status, output = validate("--data", str(tmp_path))
    assert status == 1
    assert "3 measurements could not be simulated" in output
    assert "too many" in output


def test_accuracy_is_given_by_set_use_and_medium(validate: Validate) -> None:
    output = validate("--data", str(DATA))[1]
    for group, medium, use in (
        ("claims", "all", "calibration"),
        ("optane-study", "pmem", "calibration"),
        ("optane-study", "dram", "calibration"),
        ("optane-study", "pmem", "prediction"),
        ("perma-bench", "all", "prediction"),
    ):
        assert re.search(rf"{group}\s+[│┃]\s*{medium}\s+[│┃]\s*{use}", output), (group, medium, use)
