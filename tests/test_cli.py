"""The command line: what it prints, what it writes, and its exit status."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pytest

import pmsim
from pmsim import Scenario, SimulationError, platform_names, runner, scenario_names
from pmsim.cli import main
from pmsim.des.parts import PARTS
from pmsim.kinds import KINDS
from pmsim.kinds.engine_options import EngineName
from pmsim.points import Point
from pmsim.profiles import load_platform

COMMAND = [sys.executable, "-m", "pmsim"]
SMALL = """
kind = "latency"
name = "small"
title = "Small latencies"
platform = "tum-6212u"
[parameters]
region_size = "64 MiB"
[sweep]
pattern = ["sequential", "random"]
[[plot.overlay]]
label = "measured"
citation = "A paper, Table 1"
points = [["random", 403]]
"""
#: More points than a test waits for.
LONG = """
kind = "bandwidth"
name = "long"
platform = "tum-6212u"
[sweep]
threads = { from = 1, to = 24, steps = 24 }
access_size = { from = 64, to = 6400, steps = 100 }
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def test_run_writes_the_four_files(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["run", str(small), "--out", str(out), "--jobs", "1", "--seed", "3"]) == 0
    assert str(out / "report.html") in capsys.readouterr().out
    frame = pd.read_parquet(out / "results.parquet")
    assert list(frame["pattern"]) == ["sequential", "random"]
    assert frame["configuration"].is_unique
    assert Scenario.from_file(out / "scenario.resolved.toml").seed == 3
    provenance = json.loads((out / "provenance.json").read_text())
    assert provenance["point_seeds"] == list(frame["seed"])
    assert {"pmsim", "native", "platforms", "command", "wall_time_s"} <= provenance.keys()


def test_the_report_needs_no_network(small: Path, tmp_path: Path) -> None:
    main(["run", str(small), "--out", str(tmp_path / "out"), "--jobs", "1"])
    report = (tmp_path / "out" / "report.html").read_text()
    assert "Plotly.newPlot" in report
    assert "A paper, Table 1" in report
    assert '<script src="http' not in report
    assert '<link rel="stylesheet" href="http' not in report


def test_the_report_shows_the_parameters_that_vary_and_every_metric(small: Path, tmp_path: Path) -> None:
    arguments = ["--set", 'sweep.region_size=["4 KiB", "1 MiB"]', "--out", str(tmp_path / "out"), "--jobs", "1"]
    main(["run", str(small), *arguments])
    table = re.search("<table.*?</table>", (tmp_path / "out" / "report.html").read_text(), re.DOTALL)
    assert table is not None
    head = re.findall("<th>(.*?)</th>", table[0])
    assert head[:3] == ["pattern", "region_size", "latency_ns"]
    assert {metric.name for metric in KINDS["latency"].metrics} == set(head[2:])
    assert re.findall("<td>(.*? .iB)</td>", table[0]) == ["4 KiB", "1 MiB"] * 2


def test_the_default_output_directory_has_the_scenarios_name(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(small.parent)
    assert main(["run", "small.toml", "--jobs", "1"]) == 0
    assert (small.parent / "out" / "small" / "results.parquet").is_file()


def test_dry_run_says_what_would_run_and_runs_nothing(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["run", str(small), "--dry-run", "--out", str(out), "--set", "pattern=random"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("Small latencies, on tum-6212u\n")
    assert "1 points, 0 of them finished" in told
    assert not out.exists()
    small.write_text('kind = "latency"\nplatform = "tum-6212u"\n')
    assert main(["run", str(small), "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("latency, on tum-6212u\n")
    assert main(["run", str(small), "--dry-run", "--set", 'sweep.platform=["tum-6212u", "ucsd-8260"]']) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["point", "platform"]


def test_a_failing_point_makes_the_exit_status_1(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate = runner.evaluate

    def failing(point: Point) -> dict[str, Any]:
        if point.columns["pattern"] == "random":
            raise SimulationError("a deadlock")
        return evaluate(point)

    monkeypatch.setattr(runner, "evaluate", failing)
    assert main(["run", str(small), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 1
    assert capsys.readouterr().err == "pmsim: point 2 (pattern = random): a deadlock\n"
    assert len(pd.read_parquet(tmp_path / "out" / "results.parquet")) == 1


def is_gone(group: int) -> bool:
    """Whether all processes of a group end; Python's own resource tracker takes a moment longer."""
    for _ in range(500):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(("jobs", "ended_by"), [("1", "Ctrl-C"), ("2", "Ctrl-C"), ("2", "kill")])
def test_what_ends_a_run_keeps_what_is_finished_and_says_how_to_resume(
    tmp_path: Path, jobs: str, ended_by: str
) -> None:
    (tmp_path / "long.toml").write_text(LONG)
    command = [*COMMAND, "run", "long.toml", "--out", "out", "--jobs", jobs]
    # A shell's background job ignores Ctrl-C, and its children inherit that; a user at a terminal does not.
    launcher = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", launcher, *command],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    points = tmp_path / "out" / "points"
    while process.poll() is None and not (points.is_dir() and any(points.glob("*.json"))):
        time.sleep(0.02)
    if ended_by == "Ctrl-C":
        os.killpg(process.pid, signal.SIGINT)  # the terminal sends it to every process
    else:
        process.terminate()
    _, errors = process.communicate(timeout=60)
    assert is_gone(process.pid), "a worker is left"
    assert process.returncode == 130
    assert errors.count("\n") == 1
    finished = len(list(points.glob("*.json")))
    assert f"{finished} of 2400 points are kept in out; run the same command again to resume" in errors


def test_workers_end_with_a_run_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(LONG)
    command = [*COMMAND, "run", "long.toml", "--out", "out", "--jobs", "2"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL, start_new_session=True)
    points = tmp_path / "out" / "points"
    while process.poll() is None and not (points.is_dir() and any(points.glob("*.json"))):
        time.sleep(0.02)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    left = not is_gone(process.pid)
    if left:
        os.killpg(process.pid, signal.SIGKILL)
    assert not left, "a worker is left"


def test_ctrl_c_in_a_command_that_keeps_nothing_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pmsim.commands.list.scenario_names", interrupted)
    assert main(["list", "scenarios"]) == 130
    assert capsys.readouterr().err == "pmsim: interrupted\n"


#: A point of seconds, and one whose loading or warm-up takes longer than a test waits for.
ENGINE = """
kind = "{kind}"
name = "engine"
platform = "sep-e5-4620v2"
[parameters]
engine = "{engine}"
workload = "{workload}"
loading = "inserts"
scale = 1
operations = 500
[sweep]
mode = "zip"
data_size = ["1 MiB", "{data_size}"]
warmup = [1000, {warmup}]
"""
#: `pmsim run`, which leaves a file when the native core begins with a point.
TELLING = """
import signal, sys
from pathlib import Path
from pmsim.cli import main
from pmsim.kinds.measurement import simulator
signal.signal(signal.SIGINT, signal.default_int_handler)
native, begun = simulator.get(), 0
def telling(*arguments):
    global begun
    begun += 1
    Path(f"begun-{begun}").touch()
    return native(*arguments)
simulator.set(telling)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("kind", "engine", "workload", "data_size", "warmup"),
    [
        ("oltp", "fptree", "lookup8", "4 GiB", 0),
        ("oltp", "three-tier", "ycsb-a", "64 MiB", 10_000_000_000),
        ("restart", "three-tier", "ycsb-ro", "64 MiB", 10_000_000_000),
    ],
)
def test_ctrl_c_ends_the_loading_and_the_warm_up_of_an_engine(
    tmp_path: Path, kind: str, engine: str, workload: str, data_size: str, warmup: int
) -> None:
    text = ENGINE.format(kind=kind, engine=engine, workload=workload, data_size=data_size, warmup=warmup)
    (tmp_path / "engine.toml").write_text(text)
    command = ["run", "engine.toml", "--out", "out", "--jobs", "1"]
    process = subprocess.Popen(
        [sys.executable, "-c", TELLING, *command],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        while process.poll() is None and not (tmp_path / "begun-2").exists():
            time.sleep(0.02)
        time.sleep(0.5)  # from Python into the core's loop
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert errors == (
        "pmsim: interrupted; 1 of 2 points are kept in out; run the same command again to resume\n"
    )
    # Nothing half done is left: the finished point is found again, the other one runs.
    changes = ["--set", 'sweep.data_size=["1 MiB", "2 MiB"]', "--set", "sweep.warmup=[1000, 2000]"]
    resumed = subprocess.run(
        [*COMMAND, *command, *changes], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert resumed.returncode == 0, resumed.stderr
    assert "2 of 2 points (1 kept from before)" in resumed.stdout
    assert pd.read_parquet(tmp_path / "out" / "results.parquet")["configuration"].nunique() == 2


def test_without_a_command_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    told = capsys.readouterr()
    assert all(f" {name} " in told.out + told.err for name in ("run", "list", "validate", "crash", "trace"))


def test_list_and_show_name_what_exists(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "platforms"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in [*platform_names(), *platform_names("block-device")])
    assert main(["list", "scenarios"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in scenario_names())
    assert main(["list", "kinds"]) == 0
    listed = capsys.readouterr().out
    assert all(f"{kind.name} " in listed for kind in KINDS.values())
    assert main(["list", "engines"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in get_args(EngineName))


@pytest.mark.parametrize(
    "what",
    ["platforms", "scenarios", "kinds", "parts", "engines", "blocks", "counters", "kinds oltp"],
)
def test_a_list_has_one_line_per_name_behind_a_pipe_and_fits_a_narrow_terminal(
    what: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["list", *what.split()]) == 0
    whole = capsys.readouterr().out.splitlines()
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["list", *what.split()]) == 0
    narrow = capsys.readouterr().out.splitlines()
    assert max(map(len, narrow)) <= 80
    assert not any(line.startswith(" ") for line in whole), "a row goes on in the next line"
    names = [line.split()[0] for line in whole if line]
    assert [line.split()[0] for line in narrow if line and not line.startswith(" ")] == names
    assert len(names) > 5


def test_list_parts_tells_what_a_server_is_made_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "parts"]) == 0
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()[1:-1]} == set(PARTS)
    for name, part in PARTS.items():
        assert main(["list", "parts", name]) == 0
        assert set(part.model_fields) <= {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert main(["list", "parts", "engin"]) == 2
    assert capsys.readouterr().err == "pmsim: list parts: unknown part 'engin'; did you mean 'engine'?\n"


def test_list_kinds_tells_parameters_with_what_may_be_written_and_metrics(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    for kind in KINDS.values():
        assert main(["list", "kinds", kind.name]) == 0
        lines = [line for line in capsys.readouterr().out.splitlines() if line]
        names = [line.split()[0] for line in lines]
        assert set(kind.parameter_model.model_fields) <= set(names)
        assert {metric.name for metric in kind.metrics} <= set(names)
        below = {name: line for line, name in itertools.pairwise(lines[1:]) if line.startswith("-- ")}
        headings = {line.split()[0]: heading.strip() for line, heading in below.items()}
        assert headings == {name: f"-- {head}" for name, head in kind.parameter_model.sections.items()}
    assert main(["list", "kinds", "mixed"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line}
    assert " ".join(lines["region_size"].split()).startswith("region_size 10 GiB size bytes of")
    assert "dram, pmem" in lines["groups.N.memory"]
    assert "group_1_bandwidth_gb_s" in lines
    assert main(["list", "platforms", "mixed"]) == 2
    assert "pmsim list kinds KIND" in capsys.readouterr().err


def test_the_table_of_a_run_writes_sizes_as_scenarios_do_and_leaves_out_metrics_that_do_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SMALL.replace('pattern = ["sequential", "random"]', 'region_size = ["4 KiB", "1 MiB"]')
    text = text.replace('region_size = "64 MiB"', "").replace('["random", 403]', "[4096, 403]")
    (tmp_path / "small.toml").write_text(text)
    run = ["run", str(tmp_path / "small.toml"), "--out", str(tmp_path / "out"), "--jobs", "1"]
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(run) == 0
    title, head, *rows = capsys.readouterr().out.splitlines()[:4]
    assert title == "Small latencies"
    assert head.split() == ["region_size", "latency_ns", "latency_p50_ns", "latency_p95_ns"]
    assert [row.split("  ")[0] for row in rows] == ["4 KiB", "1 MiB"]
    monkeypatch.setenv("COLUMNS", "48")  # the mean has its interval beside it
    assert main(run) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[1].split() == ["region_size", "latency_ns", "latency_p50_ns"]
    assert "latency_p95_ns" in shown[4]
    assert max(map(len, shown[:5])) <= 48


def test_where_a_metric_is_the_horizontal_axis_its_column_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SMALL.split("[[plot")[0] + '[plot]\nx = "latency_p99_ns"\ny = "latency_max_ns"\n'
    (tmp_path / "small.toml").write_text(text)
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["run", str(tmp_path / "small.toml"), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 0
    head = capsys.readouterr().out.splitlines()[1].split()
    assert head == ["pattern", "latency_p99_ns", "latency_max_ns", "latency_ns"]
    report = (tmp_path / "out" / "report.html").read_text()
    assert re.findall("<th>(.*?)</th>", report)[:3] == ["pattern", "latency_p99_ns", "latency_max_ns"]


@pytest.mark.parametrize("y", ["threads", "access_size", "out_of_range_count"])
@pytest.mark.parametrize("x", ["threads", "out_of_range_count"])
def test_any_column_of_numbers_may_be_an_axis_of_the_figure(
    x: str, y: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = 'kind = "persist"\nplatform = "tum-6212u"\n[sweep]\nthreads = [1, 2]\n'
    (tmp_path / "s.toml").write_text(f'{text}[plot]\nx = "{x}"\ny = "{y}"\nlog_x = true\n')
    assert main(["run", str(tmp_path / "s.toml"), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 0
    head = capsys.readouterr().out.splitlines()[1].split()
    assert head.count("threads") == 1
    assert (tmp_path / "out" / "report.html").exists()


def test_platform_show_gives_every_value_its_source(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    rows = load_platform("tum-6212u").rows()
    assert main(["platform", "show", "tum-6212u"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line}
    for row in rows:
        line = " ".join(lines[f"{row.section}.{row.name}"].split())
        whole = f"{row.section}.{row.name} {row.value} {row.range} {row.origin} {row.meaning} {row.source}"
        assert line == whole
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["platform", "show", "tum-6212u"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    for row in rows:
        head = f"{row.section}.{row.name} = {row.value} ({row.origin}; {row.range})"
        assert f"{head}: {row.meaning}. {row.source}" in " ".join(shown.split())


@pytest.mark.parametrize("device", platform_names("block-device"))
def test_platform_show_knows_block_devices(device: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["platform", "show", device]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    rows = load_platform({"base": "tum-6212u", "block_device": device}).rows()
    for row in [row for row in rows if row.section == "block"]:
        assert f"block.{row.name} {row.value} {row.range} {row.origin} {row.meaning} {row.source}" in shown
    assert "core.cores" not in shown


def test_a_block_device_of_ones_own_is_a_file_like_a_machine(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """
    name = "mine"
    title = "A faster drive"
    kind = "block-device"
    base = "nvme-p4510"
    [block]
    read_latency = { value = "20 us", source = "assumed: a drive of next year", origin = "assumed" }
    """
    (working_folder / "mine.toml").write_text(text)
    assert main(["platform", "show", "mine.toml"]) == 0
    assert re.search(r"block\.read_latency +20 us", capsys.readouterr().out)
    (working_folder / "read.toml").write_text(
        'kind = "block"\nplatform = { base = "tum-6212u", block_device = "mine.toml" }\n'
        '[sweep]\n"platform.block_device" = ["mine.toml", "nvme-p4510"]\n'
    )
    mine, theirs = pmsim.run("read.toml", jobs=1).frame["latency_p50_ns"]
    assert mine < theirs - 50_000
    assert main(["run", "read.toml", "--set", 'platform="mine.toml"']) == 2
    assert "mine.toml: 'mine' is a block-device, not a machine" in capsys.readouterr().err
    (working_folder / "mine.toml").write_text(text.replace("block-device", "machine"))
    assert main(["run", "read.toml"]) == 2
    devices = ", ".join(platform_names("block-device"))
    assert f"is not a block device; choose one of {devices}" in capsys.readouterr().err


def test_a_script_without_a_main_guard_can_run_in_parallel(tmp_path: Path, small: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import pmsim\nprint(len(pmsim.run({str(small)!r}, jobs=2).frame))\n")
    answer = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert (answer.stdout, answer.stderr) == ("2\n", "")


def test_replacing_the_results_of_another_scenario_is_told(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, region in (("one", "64 MiB"), ("two", "32 MiB")):
        text = f'kind = "latency"\nname = "{name}"\nplatform = "tum-6212u"\n'
        (working_folder / f"{name}.toml").write_text(f'{text}[parameters]\nregion_size = "{region}"\n')
    assert main(["run", "one.toml", "--out", "out", "--jobs", "1"]) == 0
    assert main(["run", "one.toml", "--out", "out", "--set", "pattern=random", "--jobs", "1"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["run", "two.toml", "--out", "out", "--jobs", "1"]) == 0
    told = capsys.readouterr().err
    assert told.startswith("pmsim: out held the results of another scenario, 'one'; they are replaced")


def test_the_same_scenario_again_replaces_nothing_of_another(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):  # good.toml has no name
        assert main(["run", "good.toml", "--out", "out", "--jobs", "1"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_output_without_room_is_one_line(small: Path, tmp_path: Path) -> None:
    command = [*COMMAND, "run", small, "--out", tmp_path / "out", "--jobs", "1"]
    with Path("/dev/full").open("w") as full:
        answer = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert answer.returncode == 1
    assert answer.stderr == "pmsim: the output: cannot be written: No space left on device; free some space\n"


def test_a_reader_that_leaves_is_no_failure() -> None:
    read, write = os.pipe()
    os.close(read)
    answer = subprocess.run([*COMMAND, "list", "counters"], stdout=write, stderr=subprocess.PIPE, timeout=120)
    os.close(write)
    assert (answer.returncode, answer.stderr) == (0, b"")
