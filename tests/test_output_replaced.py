"""What is written takes the place of a file, which a link may lead to, and never of a device or a pipe."""

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

import pmsim
from pmsim import des, trace
from pmsim.calibrate import write_profile
from pmsim.cli import main
from pmsim.errors import ConfigError
from pmsim.output_place import RUN_OUTPUTS

SCENARIO = 'kind = "log"\nplatform = "tum-6212u"\n[parameters]\nlog_size = "64 KiB"\n'
CLAIMS = """
title = "One number"
[sources.paper]
citation = "Somebody: Something, 2020"
[series.s]
platform = "tum-6212u"
kind = "latency"
metric = "latency_ns"
parameters = { memory = "dram" }
[[claim]]
id = "device-latency"
source = [{ ref = "paper", where = "Table 1" }]
setup = "one thread"
quantity = "latency"
kind = "absolute"
expected = [1, 1000]
unit = "ns"
precision = "stated"
rule = "stated"
measures.m = { point = "s" }
checks = [{ value = "m" }]
"""
#: What writes a file, and a name for it.
WRITES = {
    "record": (("trace", "record", "s.toml"), "b.trace"),
    "import": (("trace", "import", "table.csv"), "b.trace"),
    "export": (("trace", "export", "a.trace"), "b.csv"),
    "requests": (
        ("trace", "requests", "a.trace", "--form", "vans", "--medium", "pmem", "--clock", "1 ns"),
        "b.txt",
    ),
}


@pytest.fixture(name="inputs", scope="module")
def _inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "s.toml").write_text(SCENARIO)
    trace.record(folder / "s.toml", folder / "a.trace")
    trace.export(folder / "a.trace", folder / "table.csv")
    return folder


@pytest.fixture(name="work")
def _work(inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory that has the inputs, and a folder behind a link."""
    monkeypatch.chdir(tmp_path)
    for file in inputs.iterdir():
        os.link(file, tmp_path / file.name)
    (tmp_path / "far").mkdir()
    return tmp_path


def listen(name: str) -> None:
    """Make a socket in the working directory: to open a pipe instead would wait for its other end."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)


def full(path: Path, content: bytes) -> int:
    """Stand for `Path.write_bytes` where a disk is full: some of a file is there."""
    with path.open("wb") as file:
        file.write(content[:10])
    raise OSError(errno.EFBIG, "File too large")


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (("measure", "--platform", "tum-6212u", "--quick", "--blocks", "latency", "--out", "out"), "idle read"),
        (("validate", "--suite", "claims.toml", "--jobs", "1", "--out", "out"), "device-latency"),
    ],
)
def test_what_cannot_be_written_leaves_the_results_of_before_and_is_shown(
    arguments: tuple[str, ...],
    written: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claims.toml").write_text(CLAIMS)
    assert main(list(arguments)) == 0
    before = {path.name: path.read_bytes() for path in Path("out").iterdir() if path.is_file()}
    capsys.readouterr()
    monkeypatch.setattr(Path, "write_bytes", full)
    assert main(list(arguments)) == 2
    told = capsys.readouterr()
    assert written in told.out
    assert "report.html" not in told.out
    said = "pmsim: out: cannot be written: File too large; choose another with --out"
    assert told.err.splitlines()[-1] == said
    assert {path.name: path.read_bytes() for path in Path("out").iterdir() if path.is_file()} == before


def test_a_profile_that_cannot_be_written_leaves_the_one_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.toml"
    write_profile(pmsim.load_platform("tum-6212u"), file)
    before = file.read_bytes()
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ConfigError, match="cannot be written: File too large"):
        write_profile(pmsim.load_platform("spr-cxl"), file)
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    assert file.read_bytes() == before


@pytest.mark.parametrize("command", WRITES)
@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_stays_what_it_is(command: str, linked: bool, work: Path, complaint: Callable[..., str]) -> None:
    arguments, name = WRITES[command]
    os.mkfifo(work / "pipe" if linked else work / name)
    if linked:
        (work / name).symlink_to("pipe")
    said = complaint(*arguments, "--out", name)
    assert (
        said
        == f"pmsim: out: {name}: is a device, a pipe or a socket, which a file would replace; name a file\n"
    )
    assert (work / name).is_fifo()
    assert (work / name).is_symlink() == linked


@pytest.mark.parametrize("command", WRITES)
@pytest.mark.parametrize("there", [False, True])
def test_a_link_is_followed(command: str, there: bool, work: Path) -> None:
    arguments, name = WRITES[command]
    assert main([*arguments, "--out", f"plain-{name}"]) == 0
    target = work / "far" / "target"
    if there:
        target.write_text("the old one")
    (work / name).symlink_to("far/target")
    assert main([*arguments, "--out", name]) == 0
    assert (work / name).readlink() == Path("far/target")
    assert target.read_bytes() == (work / f"plain-{name}").read_bytes()
    assert list((work / "far").iterdir()) == [target]


@pytest.mark.parametrize("file", RUN_OUTPUTS)
def test_a_run_looks_for_pipes_before_it_begins(
    file: str, work: Path, complaint: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pmsim.api.run_points", lambda *_, **__: pytest.fail("work has begun"))
    (work / "out").mkdir()
    os.mkfifo(work / "out" / file)
    said = complaint("run", "s.toml", "--out", "out")
    assert f"--out out/{file}: is a device, a pipe or a socket" in said
    assert (work / "out" / file).is_fifo()


def test_results_follow_links(work: Path) -> None:
    result = pmsim.run("s.toml", progress=False, jobs=1)
    (work / "out").mkdir()
    (work / "out" / "provenance.json").symlink_to("../far/provenance.json")
    result.save("out")
    assert (work / "out" / "provenance.json").is_symlink()
    assert (work / "far" / "provenance.json").is_file()


def test_a_profile_is_not_written_to_a_socket(
    work: Path, complaint: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pmsim.commands.calibrate.calibrate", lambda **_: pytest.fail("measured"))
    listen("mine.toml")
    assert "--out mine.toml: is a device, a pipe" in complaint("calibrate", "--out", "mine.toml")
    with pytest.raises(ConfigError, match=r"mine\.toml: is a device, a pipe"):
        write_profile(pmsim.load_platform("tum-6212u"), work / "mine.toml")


def test_the_state_of_a_long_run_is_no_socket(work: Path) -> None:
    listen("state")
    with pytest.raises(ConfigError, match="state: is a device, a pipe"):
        des.LongRun(lambda _: pytest.fail("served"), [], segment="1 ms", state=work / "state")


def test_links_in_a_circle_are_one_clear_line(work: Path, complaint: Callable[..., str]) -> None:
    (work / "one.csv").symlink_to("two.csv")
    (work / "two.csv").symlink_to("one.csv")
    said = complaint("trace", "export", "a.trace", "--out", "one.csv")
    assert said == "pmsim: out: one.csv: is a link that cannot be followed; name a file\n"
    assert (work / "one.csv").is_symlink()
