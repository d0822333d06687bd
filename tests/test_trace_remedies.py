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
