"""What a trace does not mark is not measured: no number stands for it, least of all the lowest one."""

import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pmsim
from pmsim import Scenario, trace
from pmsim.commands.trace import trace_app
from pmsim.kinds.measurement import LATENCY_METRICS
from pmsim.tuning import tune

LOADS = "kind,address,bytes\nload,64,8\nload,4096,8\n"
ENDS = LOADS + "operation_end,0,8\n"
ENDS_OF_NO_BYTES = LOADS + "operation_end,0,0\n"
TIMED = "kind,address,bytes\noperation_begin,0,0\nload,64,8\noperation_end,0,8\n"

LATENCIES = {metric.name for metric in LATENCY_METRICS}


def made_of(table: str, folder: Path) -> Path:
    (folder / "t.csv").write_text(table)
    return trace.import_from(folder / "t.csv", folder / "t.trace").path


@pytest.mark.parametrize(
    ("table", "unmeasured"),
    [
        (LOADS, {"operations_per_s", "bandwidth_gb_s"} | LATENCIES),
        (ENDS, LATENCIES),
        (ENDS_OF_NO_BYTES, {"bandwidth_gb_s"} | LATENCIES),
        (TIMED, set()),
    ],
    ids=["loads", "ends", "ends of no bytes", "timed"],
)
def test_kind_trace_has_no_number_of_what_is_not_marked(
    table: str, unmeasured: set[str], tmp_path: Path
) -> None:
    asked = ["operations_per_s", "bandwidth_gb_s", *sorted(LATENCIES), "time_ms"]
    file = str(made_of(table, tmp_path))
    scenario = Scenario(kind="trace", platform="tum-6212u", parameters={"file": file}, metrics=asked)
    (row,) = pmsim.run(scenario, jobs=1).frame[asked].to_dict("records")
    assert {name for name, value in row.items() if math.isnan(value)} == unmeasured
    assert all(row[name] > 0 for name in set(asked) - unmeasured)


def test_a_search_finds_no_latency_in_a_trace_that_has_none(tmp_path: Path) -> None:
    scenario = Scenario(
        kind="trace",
        platform="tum-6212u",
        parameters={"file": str(made_of(LOADS, tmp_path))},
        sweep={"platform.dram.row_hit_latency": ["20 ns", "40 ns"]},
    )
    found = tune(scenario, metric="latency_ns", steps=3)
    assert found.best is None
    assert math.isnan(found.value)


@pytest.mark.parametrize(
    ("table", "operations", "bandwidth"),
    [
        (LOADS, "not marked", "not marked"),
        (ENDS, "1", None),
        (ENDS_OF_NO_BYTES, "1", "not marked"),
        (TIMED, "1", None),
    ],
    ids=["loads", "ends", "ends of no bytes", "timed"],
)
def test_replay_says_what_is_not_marked(
    table: str, operations: str, bandwidth: str | None, tmp_path: Path
) -> None:
    given = ["replay", str(made_of(table, tmp_path)), "--platform", "tum-6212u"]
    result = CliRunner().invoke(trace_app, given)
    _, row = result.output.splitlines()
    cells = [cell for cell in row.split("  ") if cell]
    assert cells[2].strip() == operations
    assert (cells[3].strip() == "not marked") == (bandwidth is not None)


@pytest.mark.parametrize(("kind", "overlapping"), [("log", True), ("in-place", False)])
def test_of_a_point_of_two_runs_a_trace_has_the_throughput_and_not_the_latency(
    kind: str, overlapping: bool, tmp_path: Path
) -> None:
    scenario = Scenario(kind=kind, platform="tum-6212u")
    (point,) = pmsim.run(scenario, jobs=1).frame.to_dict("records")
    trace.record(scenario, tmp_path / "a.trace")
    replayed = trace.replay(tmp_path / "a.trace").total
    assert replayed.operations_per_s == point["ops_per_s"]
    assert replayed.latency.is_measured == overlapping
    assert replayed.latency.mean_ps / 1e3 != point["latency_ns"]
