"""A point that needs more memory than this host has: one clear line, and no other point is lost to it."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import pmsim
from pmsim import ConfigError, HostMemoryError, _native, cli
from pmsim.host_room import check_room
from pmsim.points import points_of

GIB = 2**30

#: Setting up a page takes 4 KiB of the host: by that the last point needs 703 MiB, less than a process may take
#: here; with the interpreter and what stays free it needs more.
PAGES = """
kind = "page-flush"
platform = "tum-6212u"

[sweep]
pages = [1_000, 2_000, 180_000]
"""


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PMSIM_HOST_MEMORY", "800 MiB")
    file = tmp_path / "pages.toml"
    file.write_text(PAGES)
    return file


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_point_that_outgrows_the_host_fails_in_one_line_and_the_others_are_kept(
    pages: Path, tmp_path: Path, jobs: str
) -> None:
    # A process of its own: what this one holds after a thousand tests would count, too.
    command = [
        sys.executable,
        "-m",
        "pmsim.cli",
        "run",
        str(pages),
        "--jobs",
        jobs,
        "--out",
        str(tmp_path / "out"),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1
    told = ended.stderr
    assert told.startswith("pmsim: point 3 (pages = 180000): what is simulated needs more memory than this")
    assert "of its 800 MiB" in told
    assert "--jobs" in told
    assert told.count("\n") == 1
    assert list(pd.read_parquet(tmp_path / "out" / "results.parquet")["pages"]) == [1_000, 2_000]


@pytest.mark.parametrize("more", [["--dry-run"], ["--jobs", "2"]])
def test_what_the_parameters_tell_is_refused_before_anything_runs(
    pages: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    out = tmp_path / "out"
    arguments = ["run", str(pages), "--set", "sweep.pages=[1000, 210_000]", "--out", str(out), *more]
    assert cli.main(arguments) == 2
    told = capsys.readouterr().err
    assert "parameters.pages: the simulation takes at least 820 MiB" in told
    assert "(point with pages = 210000), and this host has 800 MiB" in told
    assert told.count("\n") == 1
    assert not list(out.glob("points/*"))


def test_a_point_that_is_finished_needs_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pages.toml"
    file.write_text(PAGES.replace("180_000", "70_000"))
    command = ["run", str(file), "--jobs", "1", "--out", str(tmp_path / "out")]
    assert cli.main(command) == 0
    monkeypatch.setenv("PMSIM_HOST_MEMORY", "200 MiB")  # less than 70,000 pages of 4 KiB
    assert cli.main(command) == 0
    assert "(3 kept from before)" in capsys.readouterr().out
    assert cli.main([*command, "--dry-run"]) == 0
    assert cli.main([*command[:-1], str(tmp_path / "other")]) == 2


def test_rows_of_an_engine_count_where_they_lie_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def scenario(**changes: object) -> pmsim.Scenario:
        parameters = {"engine": "nvm-direct", "scale": "1", "data_size": "8 GiB", "fill_factor": 0.5} | changes
        machine = {"base": "tum-6212u", "block_device": "hymem-ssd"}
        return pmsim.Scenario(kind="oltp", platform=machine, parameters=parameters)

    monkeypatch.setenv("PMSIM_HOST_MEMORY", "3 GiB")
    with pytest.raises(ConfigError, match=r"parameters.data_size: the simulation takes at least 4.0 GiB"):
        check_room(points_of(scenario()))
    # Data that the engine cannot hold are a row with `fits` 0 and are not loaded; those in a file do not count.
    check_room(points_of(scenario(pmem_capacity="7 GiB")))
    check_room(points_of(scenario(engine="ssd-bm")))


def test_a_single_point_and_a_trace_end_in_one_line(
    pages: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(HostMemoryError, match="this process has taken"):
        pmsim.simulate_point("page-flush", "tum-6212u", {"pages": 180_000})
    trace = ["trace", "record", str(pages), "--point", "3", "--out", str(tmp_path / "a.trace")]
    assert cli.main(trace) == 1
    assert cli.main([*trace, "--set", "sweep.pages=[1000, 2000, 210_000]"]) == 2
    assert cli.main(["tune", str(pages)]) == 1
    for line in capsys.readouterr().err.splitlines():
        assert line.startswith("pmsim: ")
        assert "memory" in line


def test_measuring_this_machine_takes_no_more_than_it_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PMSIM_HOST_MEMORY", "100 MiB")
    assert cli.main(["measure", "--quick", "--platform", "tum-6212u", "--out", str(tmp_path / "out")]) == 1
    assert "more memory than this host can give" in capsys.readouterr().err


def test_a_limit_that_is_no_size_is_refused(
    pages: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PMSIM_HOST_MEMORY", "much")
    assert cli.main(["run", str(pages), "--jobs", "1"]) == 2
    assert "PMSIM_HOST_MEMORY: 'much' is no size; write, for example, \"8 GiB\"" in capsys.readouterr().err


def test_a_limit_has_the_units_of_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, size in (("1 GB", 10**9), ("1 GiB", 2**30), ("1000 MB", 10**9), ("1000000 kB", 10**9)):
        monkeypatch.setenv("PMSIM_HOST_MEMORY", text)
        room = _native.host_room()
        assert room is not None
        assert room[0] == size
