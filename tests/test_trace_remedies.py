"""What a refused trace, or a machine that is too small for one, is told to become."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import pmsim
from pmsim import Scenario, trace
from pmsim.commands.trace import trace_app
from pmsim.errors import ConfigError

TABLE = "kind,address,bytes\nload,64,8\n"
SSD = {"base": "tum-6212u", "block_device": "nvme-p4510"}
REQUESTS = Scenario(kind="block", platform=SSD, parameters={"operation": "read", "region_size": "1 GiB"})


def refused(*given: str) -> str:
    result = CliRunner().invoke(trace_app, given)
    assert isinstance(result.exception, ConfigError)
    assert "\n" not in str(result.exception)
    return str(result.exception)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("none", "has none; choose a platform with a block_device, or write a profile with base"),
        (
            "small",
            "has one of 1 MiB; choose a platform with a larger block_device, or write a profile with base",
        ),
    ],
)
def test_a_trace_of_a_block_device_asks_for_one(device: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "a.trace"
    touched = trace.record(REQUESTS, file).extent_bytes["block"]
    machine = {"base": "tum-6212u", "block_device": "none"}
    if device == "small":
        machine = SSD | {"block": {"capacity": "1 MiB"}}
    with pytest.raises(ConfigError) as said:
        trace.replay(file, machine)
    assert f"touches {touched:,} B of a block device, platform 'tum-6212u' {message}" in str(said.value)


@pytest.mark.parametrize("command", ["info", "replay"])
def test_a_table_that_is_taken_for_a_trace_can_be_imported(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(TABLE)
    assert refused(command, "a.csv") == (
        "trace a.csv: not a pmsim trace; make one of a table or a log of valgrind's lackey with `pmsim trace "
        "import`, of a scenario with `pmsim trace record`"
    )
    scenario = Scenario(kind="trace", platform="tum-6212u", parameters={"file": "a.csv"})
    with pytest.raises(ConfigError, match=r"file: trace a\.csv: .* `pmsim trace import`"):
        pmsim.run(scenario, jobs=1)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (TABLE.encode(), ".csv"),
        (b'\xef\xbb\xbf"address", "bytes", "kind"\r\n64,8,load\r\n', ".csv"),
        (b"PAR1\x15\x04\x15", ".parquet"),
    ],
    ids=["csv", "mark of the byte order", "parquet"],
)
def test_a_table_whose_name_does_not_say_so_is_told_which_name_does(
    content: bytes, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_bytes(content)
    assert refused("import", "a.txt", "--out", "a.trace") == (
        f"a.txt: line 1 is that of a table, not of valgrind's lackey; name it {name}"
    )


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        ("kind,address,bytes,thread", "load,64,8,1\nload,64,8,", "thread: row 2: there is none"),
        ("kind,address,bytes,thread", "sfence,0,0,\nload,64,8,0", "thread: row 1: there is none"),
        ("kind,address,bytes,batch", "load,64,8,1\nload,64,8,", "batch: row 2: there is none"),
    ],
)
def test_a_gap_is_no_thread_and_no_batch(header: str, rows: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"{header}\n{rows}\n")
    with pytest.raises(ConfigError) as refused:
        trace.import_from(tmp_path / "t.csv", tmp_path / "t.trace")
    assert str(refused.value).startswith(f"{tmp_path / 't.csv'}: {message}")


def test_ranges_of_pmem_are_for_addresses_without_a_medium(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("kind,address,bytes,medium\nload,64,8,dram\n")
    said = "pmem: the table says it itself, in the column 'medium'; leave this out"
    with pytest.raises(ConfigError, match=said):
        trace.import_from(tmp_path / "t.csv", tmp_path / "t.trace", pmem=[(0, 4096)])
    assert not (tmp_path / "t.trace").exists()


def test_ranges_of_pmem_that_nothing_touches_are_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("kind,address,bytes\nload,64,8\n")
    given = ["import", str(tmp_path / "t.csv"), "--out", str(tmp_path / "t.trace"), "--pmem"]
    missed = CliRunner().invoke(trace_app, [*given, "7f0000-7f1000", "--pmem", "80-c0"]).output
    assert "pmem touched       0 B: no address was in 7f0000-7f1000, 80-c0 (--pmem)" in missed
    met = CliRunner().invoke(trace_app, [*given, "40-80"]).output
    assert "no address was in" not in met
    assert "pmem touched" in met
