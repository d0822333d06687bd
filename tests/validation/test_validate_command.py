"""``pmsim validate`` from end to end, with a made-up simulator."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer
from typer.testing import CliRunner, Result

from pmsim.errors import SimulationError
from pmsim.validation import cli, measures

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


def made_up(kind: str, platform: object, parameters: dict[str, Any], seed: int) -> dict[str, float]:
    threads = parameters.get("threads", 1)
    groups = {f"group_{number}_bandwidth_gb_s": 3.0 * number for number in (1, 2)}
    rate = 1e6 * threads
    return {"latency_ns": 100.0 * threads, "bandwidth_gb_s": 2.0 * threads, "operations_per_s": rate, **groups}


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    monkeypatch.setattr(cli, "Runs", lambda seed, jobs: measures.Runs(made_up, seed=seed, jobs=1))
    monkeypatch.setenv("COLUMNS", "200")
    application = typer.Typer()
    application.command()(cli.validate)
    return application


def run(app: typer.Typer, tmp_path: Path, *arguments: str, expected: float = 100) -> Result:
    suite = tmp_path / "suite.toml"
    suite.write_text(SUITE.replace("EXPECTED", str(expected)))
    return CliRunner().invoke(app, ["--suite", str(suite), *arguments])


def test_a_prediction_within_its_tolerance_exits_with_0(app: typer.Typer, tmp_path: Path) -> None:
    result = run(app, tmp_path)
    assert result.exit_code == 0, result.output
    assert "claims of the publications alone" in result.output
    assert "1 pass, 1 not simulated; 1 runs" in result.output


def test_a_claim_that_fails_stays_in_the_table_and_exits_with_1(app: typer.Typer, tmp_path: Path) -> None:
    result = run(app, tmp_path, expected=200)
    assert result.exit_code == 1
    assert "device-latency" in result.output
    assert "-50.0 %" in result.output
    assert "1 fail" in result.output


@pytest.mark.parametrize(
    "arguments",
    [["--data", "absent"], ["--suite", "nonsense"], ["--optane-units", "imperial"]],
)
def test_bad_input_exits_with_2_and_one_line(app: typer.Typer, tmp_path: Path, arguments: list[str]) -> None:
    result = run(app, tmp_path, *arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert len(re.findall(r"^error: ", result.output, flags=re.MULTILINE)) == 1


def test_an_output_folder_that_is_a_file_exits_with_2(app: typer.Typer, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    assert run(app, tmp_path, "--out", str(tmp_path / "taken")).exit_code == 2


def test_the_report_works_alone_and_the_table_has_every_row(app: typer.Typer, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run(app, tmp_path, "--data", str(DATA), "--out", str(out))
    assert result.exit_code == 0, result.output
    page = (out / "report.html").read_text()
    assert "device-latency" in page
    assert not re.search(r"<(script|link)[^>]+(src|href)=", page)
    frame = pd.read_parquet(out / "results.parquet")
    assert (frame["table"] == "claim").sum() == 2
    read = re.findall(r"(?:optane-study|perma-bench): (\d+) measurements", result.output)
    assert (frame["table"] == "measurement").sum() == sum(int(number) for number in read)
    row = frame[
        (frame["id"] == "optane-study: 04-bandwidth_thcount_optane") & (frame["measured_value"] == 12.5)
    ]
    assert row["error"].item() == pytest.approx(8.0 / 12.5 - 1)


def test_a_measurement_that_cannot_be_simulated_exits_with_1(app: typer.Typer, tmp_path: Path) -> None:
    table = "AccessSize,Read,Write(ntstore),Write(clwb)\n64,1,1,1\n"
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "05-bandwidth_accesssize_dram.csv").write_text(table)

    def refuses(kind: str, platform: object, parameters: dict[str, Any], seed: int) -> dict[str, float]:
        if kind == "bandwidth":
            raise SimulationError("threads: too many")
        return made_up(kind, platform, parameters, seed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "Runs", lambda seed, jobs: measures.Runs(refuses, seed=seed, jobs=1))
        result = run(app, tmp_path, "--data", str(tmp_path))
    assert result.exit_code == 1
    assert "3 measurements could not be simulated" in result.output
    assert "threads: too many" in result.output


def test_accuracy_is_given_by_set_use_and_medium(app: typer.Typer, tmp_path: Path) -> None:
    output = run(app, tmp_path, "--data", str(DATA)).output
    for group, medium, use in (
        ("claims", "all", "calibration"),
        ("optane-study", "pmem", "calibration"),
        ("optane-study", "dram", "calibration"),
        ("optane-study", "pmem", "prediction"),
        ("perma-bench", "all", "prediction"),
    ):
        assert re.search(rf"{group}\s+[│┃]\s*{medium}\s+[│┃]\s*{use}", output), (group, medium, use)
