"""What every test shares: settings, and the line that a command must print for bad input."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from pmsim.cli import main

# No wall clock in a verdict (deadline) and the same examples everywhere (derandomize): red is red for all.
settings.register_profile("pmsim", deadline=None, derandomize=True, database=None)
settings.load_profile("pmsim")


def pytest_runtest_setup() -> None:
    """Let neither the caller's terminal nor pytest-xdist, whose workers have 80, say how wide output is."""
    os.environ.pop("COLUMNS", None)


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a good scenario, a directory and a binary file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.toml").write_text('kind = "bandwidth"\nplatform = "tum-6212u"\n')
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "binary.toml").write_bytes(bytes(range(128, 256)))
    return tmp_path


@pytest.fixture
def complaint(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs the command in this process; returns the one line that it must print, with exit status 2."""

    def run(*arguments: str) -> str:
        status = main(arguments)
        printed = capsys.readouterr()
        assert status == 2, printed
        assert printed.err.startswith("pmsim: "), printed
        assert printed.err.endswith("\n")
        assert printed.err.count("\n") == 1, printed
        assert "Traceback" not in printed.out + printed.err
        return printed.err

    return run


#: A claim of the smallest suite, as TOML writes its values.
_CLAIM = {
    "id": '"device-x"',
    "source": '[{ ref = "paper", where = "Table 1" }]',
    "setup": '"one thread"',
    "quantity": '"latency"',
    "kind": '"absolute"',
    "expected": "100",
    "unit": '"ns"',
    "precision": '"stated"',
    "rule": '"stated"',
    "measures.m": '{ point = "s" }',
    "checks": '[{ value = "m" }]',
}
_SERIES = """[series.s]
platform = "tum-6212u"
kind = "latency"
metric = "latency_ns"
"""


@pytest.fixture
def one_claim() -> Callable[..., str]:
    """Gives the text of a suite with one claim; tests replace its series, and values of the claim."""

    def suite(series: str = _SERIES, **claim: str) -> str:
        lines = "".join(f"{key} = {value}\n" for key, value in (_CLAIM | claim).items())
        paper = '[sources.paper]\ncitation = "Somebody: Something, 2020"\n'
        return f'title = "Mine"\n{paper}{series}[[claim]]\n{lines}'

    return suite
