"""Output that cannot be written is refused before anything runs or is measured."""

from collections.abc import Callable
from pathlib import Path

import pytest

import pmsim.calibrate
import pmsim.commands.calibrate
import pmsim.commands.measure
import pmsim.measure
from pmsim import api
from pmsim.errors import ConfigError
from pmsim.output_place import RUN_OUTPUTS, check_output_folder
from pmsim.validation import cli

COMMANDS = {
    "run": ("run", "good.toml"),
    "dry run": ("run", "good.toml", "--dry-run"),
    "measure": ("measure", "--platform", "tum-6212u"),
    "validate": ("validate", "--suite", "mine.toml"),
}
OUTPUTS = {
    "run": RUN_OUTPUTS,
    "dry run": RUN_OUTPUTS,
    "measure": pmsim.measure.OUTPUTS,
    "validate": cli._OUTPUTS,
}


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch: pytest.MonkeyPatch, working_folder: Path, one_claim: Callable[..., str]) -> None:
    """Fail where work begins."""

    def work(*arguments: object, **named: object) -> None:
        raise AssertionError("work has begun")

    monkeypatch.setattr(api, "run_points", work)
    monkeypatch.setattr(pmsim.commands.measure, "measure", work)
    monkeypatch.setattr(pmsim.commands.calibrate, "calibrate", work)
    monkeypatch.setattr(cli, "run_validation", work)
    (working_folder / "mine.toml").write_text(one_claim())


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("out", ["good.toml", "good.toml/x", "/proc/pmsim", "x" * 300])
def test_a_folder_that_cannot_be(command: str, out: str, complaint: Callable[..., str]) -> None:
    said = complaint(*COMMANDS[command], "--out", out)
    assert f"--out {out}: cannot be written: " in said
    assert "choose another output directory" in said


@pytest.mark.parametrize(
    "arguments",
    [
        *([*command, "--out", ""] for command in COMMANDS.values()),
        ["tune", "good.toml", "--out", ""],
        ["calibrate", "--out", ""],
        ["calibrate", "--on", ""],
        ["measure", "--platform", "tum-6212u", "--on", ""],
        ["trace", "record", "good.toml", "--out", ""],
        ["validate", "--data", ""],
        ["validate", "--suite", ""],
    ],
    ids=" ".join,
)
def test_an_empty_name_is_not_the_working_directory(
    arguments: list[str], working_folder: Path, complaint: Callable[..., str]
) -> None:
    """As ``--out "$OUT"`` gives it where the variable is not set."""
    before = sorted(working_folder.iterdir())
    said = complaint(*arguments)
    assert arguments[-2].removeprefix("--") in said
    assert "the empty text names nothing; " in said
    assert sorted(working_folder.iterdir()) == before


def test_an_empty_name_is_refused_from_python_too() -> None:
    with pytest.raises(ConfigError, match="out: the empty text names nothing"):
        api.run("good.toml", out="", progress=False)


@pytest.mark.parametrize(("command", "file"), [(name, file) for name in OUTPUTS for file in OUTPUTS[name]])
def test_a_folder_where_a_result_belongs(
    command: str, file: str, working_folder: Path, complaint: Callable[..., str]
) -> None:
    (working_folder / "out" / file).mkdir(parents=True)
    assert f"--out out/{file}: is a directory; delete it" in complaint(*COMMANDS[command], "--out", "out")


@pytest.mark.parametrize(
    "out", ["good.toml/x.toml", "/proc/x.toml", "/sys/x.toml", "x" * 251 + ".toml", "folder.toml"]
)
def test_a_profile_that_cannot_be(out: str, complaint: Callable[..., str]) -> None:
    said = complaint("calibrate", "--out", out)
    assert f"--out {out}: " in said
    assert ("is a directory" if out == "folder.toml" else "cannot be written: ") in said


def test_trying_leaves_nothing_behind(working_folder: Path) -> None:
    pmsim.calibrate.check_out(working_folder / "out" / "mine.toml")
    assert not list((working_folder / "out").iterdir())


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_file_where_finished_points_belong(
    more: tuple[str, ...], working_folder: Path, complaint: Callable[..., str]
) -> None:
    (working_folder / "out").mkdir()
    (working_folder / "out" / "points").touch()
    assert "out/points: cannot be made: File exists; " in complaint(*COMMANDS["run"], *more, "--out", "out")


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_link_to_nothing_is_no_folder(
    more: tuple[str, ...], working_folder: Path, complaint: Callable[..., str]
) -> None:
    (working_folder / "out").symlink_to("absent")
    assert "--out out: cannot be written: " in complaint(*COMMANDS["run"], *more, "--out", "out")


@pytest.mark.parametrize("out", ["new", "new/and/deep", "there", "there/new"])
def test_asking_whether_a_folder_can_be_makes_none(out: str, working_folder: Path) -> None:
    (working_folder / "there").mkdir()
    before = sorted(working_folder.rglob("*"))
    check_output_folder(working_folder / out, RUN_OUTPUTS, make=False)
    assert sorted(working_folder.rglob("*")) == before
