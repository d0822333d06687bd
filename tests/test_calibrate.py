"""The calibration script finds what a machine was changed by, and says what it cannot do."""

import importlib.util
import math
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pmsim

SCRIPT = Path(__file__).parents[1] / "scripts" / "calibrate.py"
CHANGED = {"media_read_latency": 1.3, "buffer_latency": 0.8}
READS = {r"Read\Sequential": "sequential", r"Read\Random": "random"}


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("calibrate", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["calibrate"] = module  # dataclasses look their module up
    yield spec.loader.exec_module(module) or module
    del sys.modules["calibrate"]


def changed_machine():
    """ucsd-8260 with modules that answer differently."""
    machine = pmsim.load_platform("ucsd-8260")
    values = {name: round(machine.value("pmem", name) * factor) for name, factor in CHANGED.items()}
    return machine.with_values({"pmem": values}, source="test")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Latencies in the layout of OptaneStudy, "measured" on the changed machine."""

    def latency(memory, pattern):
        parameters = {"memory": memory, "operation": "load", "pattern": pattern, "region_size": 1 << 30}
        return pmsim.simulate_point("latency", changed_machine(), parameters)["latency_ns"]

    lines = [",DRAM,DRAM-Err,Optane,Optane-Err"]
    lines += [
        f"{name},{latency('dram', pattern)},1,{latency('pmem', pattern)},1" for name, pattern in READS.items()
    ]
    folder = tmp_path_factory.mktemp("published")
    (folder / "graphs").mkdir()
    (folder / "graphs" / "02-best_case_latency.csv").write_text("\n".join(lines) + "\n")
    return folder


def run(script, *arguments):
    return CliRunner().invoke(script.app, [str(argument) for argument in arguments])


def test_it_prints_errors_by_group_and_by_medium(script, data):
    result = run(script, "--data", data, "--platform", "ucsd-8260")
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert "ucsd-8260: 4 of 4 calibration rows, 4 runs" in lines
    # DRAM has not been changed, so it is predicted exactly.
    assert "graph 02 dram load ns 2 0.0 % 0.0 % +0.0 %" in lines
    assert "all dram 2 0.0 % 0.0 % +0.0 %" in lines
    assert any(line.startswith("graph 02 pmem 6 modules load ns 2 ") for line in lines)
    assert "value =" not in result.output


def test_a_search_finds_the_values_that_the_measurements_were_made_with(script, data):
    fitted = ",".join(f"pmem.{name}" for name in CHANGED)
    result = run(script, "--data", data, "--only", "pmem", "--fit", fitted, "--rounds", 6)
    assert result.exit_code == 0, result.output
    found = tomllib.loads(result.output.partition("Best values:")[2])
    machine = changed_machine()
    for name in CHANGED:
        entry = found["pmem"][name]
        value = pmsim.load_platform({"base": "ucsd-8260", "pmem": {name: entry["value"]}}).value("pmem", name)
        assert value == pytest.approx(machine.value("pmem", name), rel=0.1)
        assert entry["origin"] == "fitted"
        assert entry["source"] == "fitted to optane-study: graph 02 (scripts/calibrate.py, 2 rows, seed 0)"


def test_a_search_that_gains_nothing_says_so(script, data):
    result = run(script, "--data", data, "--only", "dram", "--fit", "dram.row_hit_latency", "--rounds", 1)
    assert result.exit_code == 0, result.output
    assert "No step was better than the profile." in result.output
    assert "value =" not in result.output


def test_the_objective_is_clipped_at_a_factor_of_two(script, data):
    measurement = script.calibration_rows([data], pmsim.load_platform("ucsd-8260"), [])[0]
    exact, high, far, failed = (
        script.Row(measurement, measurement.value),
        script.Row(measurement, measurement.value * 1.25),
        script.Row(measurement, measurement.value / 10),
        script.Row(measurement, message="too many threads"),
    )
    assert [row.cost for row in (exact, far, failed)] == [0, math.log(2), math.log(2)]
    assert high.cost == pytest.approx(math.log(1.25))
    assert script.objective([exact, far]) == pytest.approx(math.log(2) / 2)


def test_a_sample_sees_every_group_and_depends_on_the_seed_alone(script, data):
    rows = script.calibration_rows([data], pmsim.load_platform("ucsd-8260"), [])
    for seed in range(5):
        chosen = script.sample(rows, 2, 6, seed)
        assert sorted(row.medium for row in chosen) == ["dram", "pmem"]
        assert chosen == script.sample(rows, 2, 6, seed)
    assert len({tuple(row.setup for row in script.sample(rows, 2, 6, seed)) for seed in range(20)}) > 1
    assert script.sample(rows, None, 6, 0) == script.sample(rows, 99, 6, 0) == rows


def test_a_step_changes_every_quantity_in_units_that_people_write(script):
    machine = pmsim.load_platform("ucsd-8260")
    time, count, size = script.candidates("pmem.media_read_latency,pmem.reads_per_write,l1.size", machine)
    assert time.moved(37_500, 1.25) == 46_900  # three digits
    assert count.moved(2, 1.0625) == 3  # at least one
    assert count.moved(2, 1 / 1.0625) == 1
    assert count.moved(64, 1.25) is None  # the range ends
    assert size.moved(32 * 1024, 1.0001) == 32 * 1024 + 64


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--platform", "tum-6212u"], "has no calibration measurements of it; it has some of: ucsd-8260"),
        (["--platform", "ucsd-8261"], "unknown platform 'ucsd-8261'"),
        (["--only", "graph 99"], "--only: no group contains 'graph 99'; groups: graph 02 dram load,"),
        (["--fit", "pmem.media_read_latenzy"], "unknown parameter; did you mean 'media_read_latency'"),
        (["--fit", "pmem"], "--fit: pmem: is a section"),
        (["--fit", ""], "unknown section"),
        (["--fit", "controller.eadr"], "is a flag"),
        (["--fit", "pmem.bus_read,pmem.bus_read"], "given twice"),
    ],
)
def test_bad_input_is_one_line_and_exit_status_2(script, data, arguments, message):
    result = run(script, "--data", data, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("calibrate: ")
    assert result.stderr.count("\n") == 1


def test_a_folder_without_measurements_is_refused(script, tmp_path):
    result = run(script, "--data", tmp_path)
    assert result.exit_code == 2
    assert "no known data set here" in result.stderr
