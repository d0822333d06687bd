"""Whatever is wrong with a command: one line that names the place and the remedy, and exit status 2."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pmsim.cli import main

LONG = "x" * 300

ARGUMENTS: dict[str, tuple[list[str], str, str]] = {
    "missing file": (["run", "absent.toml"], "absent.toml: no such file", "check the path"),
    "a file without its ending": (["run", "good"], "good: no such file", "did you mean 'good.toml'?"),
    "unknown shipped scenario": (["run", "device/latancy"], "device/latancy: no such", "'device/latency'"),
    "a name longer than files have": (["run", LONG], f"{LONG}: no such file", "known: "),
    "a folder for the dry run longer than names are": (
        ["run", "good.toml", "--dry-run", "--out", LONG],
        LONG,
        "--out",
    ),
    "a folder of measurements longer than names are": (["validate", "--data", LONG], LONG, "--data"),
    "a suite longer than names are": (["validate", "--suite", LONG], f"suite '{LONG}': unknown", "device"),
    "a profile to write longer than names are": (
        ["calibrate", "--out", f"{LONG}.toml"],
        LONG,
        "choose another",
    ),
    "a file to measure on with a long name": (
        ["measure", "--platform", "tum-6212u", "--quick", "--on", f"{LONG}/x"],
        LONG,
        "name a file",
    ),
    "a file without an end": (["run", "/dev/zero"], "/dev/zero: has more than 64 MiB", "name a text file"),
    "directory": (["run", "folder.toml"], "folder.toml: is a directory", "name a file"),
    "binary file": (["run", "binary.toml"], "binary.toml: not TOML", "name a text file"),
    "output directory is a file": (["run", "good.toml", "--out", "binary.toml"], "binary.toml", "--out"),
    "two suites": (
        ["validate", "--suite", "files", "--suite", "placement"],
        "'--suite': it is given more than once",
        "leave one",
    ),
    "two numbers of seeds": (["run", "good.toml", "--seeds", "2", "--seeds=3"], "'--seeds': it", "leave one"),
    "two values of a parameter": (
        ["run", "good.toml", "--set", "threads=1", "--set", "threads = 4"],
        "--set threads: is given more than once",
        "leave one, or a list",
    ),
    "a switch in both directions": (
        ["crash", "page-cow", "--no-mutate", "--mutate"],
        "'--mutate': it is given more than once",
        "leave one",
    ),
    "two traces to write": (
        ["trace", "record", "good.toml", "--out", "a.trace", "--out", "b.trace"],
        "'--out': it is given more than once",
        "leave one",
    ),
    "no jobs": (["run", "good.toml", "--jobs", "0"], "jobs: 0 processes", "choose at least 1"),
    "no jobs for the dry run": (
        ["run", "good.toml", "--dry-run", "--jobs", "0"],
        "jobs: 0 processes",
        "choose at least 1",
    ),
    "jobs without measure": (
        ["run", "good.toml", "--jobs", "100000"],
        "jobs: 100000 processes",
        "choose at most",
    ),
    "many for validate": (["validate", "--jobs", "100000"], "jobs: 100000 processes", "choose at most"),
    "jobs as text": (["run", "good.toml", "--jobs", "two"], "--jobs", "see pmsim run --help"),
    "negative seed": (["run", "good.toml", "--seed", "-1"], "seed: -1", "choose at least 0"),
    "set of the figure": (
        ["run", "good.toml", "--set", "plot.x=threads"],
        "--set plot.x: is not set here",
        "write [plot] in the scenario file",
    ),
    "set without a value": (["run", "good.toml", "--set", "threads"], "--set 'threads'", "--set key=value"),
    "set of an unknown key": (
        ["run", "good.toml", "--set", "thread=1"],
        "--set thread: unknown key",
        "'threads'",
    ),
    "set of a number of thousands of digits": (
        ["run", "good.toml", "--set", f"threads={'9' * 5000}"],
        "parameters.threads: '999",
        "whole number",
    ),
    "set of a broken list": (
        ["run", "good.toml", "--set", "threads=[1,"],
        "--set threads: '[1,'",
        "check brackets",
    ),
    "set of a wrong value": (["run", "good.toml", "--set", "threads=0"], "parameters.threads: 0", "at least 1"),
    "set of a wrong platform value": (
        ["run", "good.toml", "--set", "platform.pmem.dimm=1"],
        "platform.pmem.dimm: unknown parameter",
        "'dimms'",
    ),
    "unknown command": (["rum"], "No such command 'rum'", "see pmsim --help"),
    "unknown option": (["run", "good.toml", "--job", "1"], "--job", "see pmsim run --help"),
    "no scenario": (["run"], "Missing argument 'scenario'", "see pmsim run --help"),
    "nothing to list": (["list", "platform"], "'platform' is not one of", "see pmsim list --help"),
    "unknown platform to show": (["platform", "show", "tum"], "unknown platform 'tum'", "'tum-6212u'"),
    "unknown drive to show": (["platform", "show", "nvme-p451"], "unknown platform", "'nvme-p4510'"),
    "unknown suite": (["validate", "--suite", "devices"], "devices", "device"),
    "no seeds": (["validate", "--seeds", "0"], "--seeds", "see pmsim validate --help"),
    "more seeds than anyone waits for": (
        ["validate", "--seeds", "99999999999"],
        "--seeds",
        "choose at most 10000",
    ),
    "a seed of the core's": (["validate", "--seed", "9" * 23], "--seed", "choose at most 9223372036854775807"),
    "a number of processes in words": (
        ["run", "good.toml", "--jobs", "x"],
        "--jobs",
        "is not a whole number; see",
    ),
    "no processes": (["validate", "--jobs", "0"], "--jobs", "; see pmsim validate --help"),
    "a scenario without a name": (
        ["run", ""],
        "scenario: the empty text names nothing",
        "pmsim list scenarios",
    ),
    "a negative number of seeds": (["validate", "--seeds", "-3"], "--seeds", "see pmsim validate --help"),
    "a number of seeds in words": (["validate", "--seeds", "three"], "--seeds", "see pmsim validate --help"),
    "set of no text": (["run", "good.toml", "--set", "name=\udcff"], "--set name", "correct its bytes"),
    "more moves than anyone waits for": (
        ["tune", "good.toml", "--steps", "9999999999"],
        "steps: 9999999999 is too much",
        "choose at most",
    ),
    "a search for the lowest and the highest": (
        ["tune", "good.toml", "--minimize", "--maximize"],
        "--minimize, --maximize: a search has one goal",
        "leave one of them out",
    ),
    "a search for the highest and the lowest": (
        ["tune", "good.toml", "--maximize", "--minimize"],
        "--minimize, --maximize: a search has one goal",
        "leave one of them out",
    ),
    "more crash states than the core can count": (
        ["crash", "inplace-word", "--states", "99999999999999999999"],
        "states: 99999999999999999999 is too much",
        "choose at most",
    ),
    "missing trace": (["trace", "info", "absent.trace"], "absent.trace", "pmsim trace record"),
    "trace that is none": (["trace", "info", "binary.toml"], "binary.toml", ";"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_bad_arguments(name: str, working_folder: Path, complaint: Callable[..., str]) -> None:
    arguments, place, remedy = ARGUMENTS[name]
    line = complaint(*arguments)
    assert place in line
    assert remedy in line


@pytest.mark.parametrize(
    "arguments", [["run", "absent.toml"], ["run", "good.toml", "--set", "threads=99"], ["list"]]
)
def test_the_installed_command_says_the_same(arguments: list[str], working_folder: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "pmsim.cli", *arguments],
        cwd=working_folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith("pmsim: ")
    assert answer.stderr.count("\n") == 1


def test_what_may_be_repeated_is_taken_whole(working_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["run", "good.toml", "--dry-run", "--dry-run", "--set", "platform=perma-a256", "--set", "seed=3"]
    assert main(given) == 0
    assert "perma-a256" in capsys.readouterr().out
