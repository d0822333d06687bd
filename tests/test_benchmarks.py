"""The benchmarks run; what they measure is no matter of a test."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).parents[1] / "benchmarks" / "run.py"


@pytest.fixture
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmarks_run", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_benchmark_gives_a_number(
    benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The points themselves take milliseconds; these take minutes.
    monkeypatch.setattr(benchmark, "CRASH_STATES", 100)
    assert "inplace-fam" in benchmark.CRASH_BLOCKS
    monkeypatch.setattr(benchmark, "CRASH_BLOCKS", ["inplace-fam", "pages-ssd-home", "engine-main-memory"])
    monkeypatch.setattr(benchmark, "OLTP_OPERATIONS", 20_000)
    monkeypatch.setattr(benchmark, "OLTP_WARMUP", 10_000)
    small = {name: given | {"data_size": "16 MiB"} for name, given in benchmark.OLTP_POINTS.items()}
    monkeypatch.setattr(benchmark, "OLTP_POINTS", small)
    monkeypatch.setattr(sys, "argv", [str(FILE), "--runs", "1"])
    benchmark.main()
    shown = capsys.readouterr().out
    names = [*benchmark.POINTS, *benchmark.LOG_POINTS, *small, *benchmark.CRASH_BLOCKS]
    for name in names:
        (line, *_) = (line for line in shown.splitlines() if line.startswith(name))
        assert [float(number) for number in line.removeprefix(name).split()]
