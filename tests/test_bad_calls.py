"""Whatever a Python caller gives to a public function: it works, or a ConfigError says what to give instead."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pmsim
from pmsim import capacity, crash, trace, tuning
from pmsim.errors import ConfigError

SWEPT = pmsim.Scenario(kind="latency", platform="tum-6212u", sweep={"memory": ["dram", "pmem"]})
ONE = pmsim.Scenario(kind="latency", platform="tum-6212u")

#: Nothing of this is a name, a number, a path or a table of anything.
ODD: dict[str, Any] = {
    "bytes": b"x",
    "a float": 1.5,
    "an object": object(),
    "a function": print,
    "a set": {1},
    "a table of numbers": {1: 2},
    "a table without a name": {None: 1},
    "a list of nothing": [None],
    "a list of lists": [[]],
    "no name for a file": "a\0b",
    "no text": "\ud800",
    "a large number": 10**30,
    "a flag": True,
}

Call = Callable[[Any], object]
CALLS: dict[str, Call] = {
    "run": lambda odd: pmsim.run(odd),
    "run, set": lambda odd: pmsim.run(ONE, set=odd, jobs=1),
    "run, out": lambda odd: pmsim.run(ONE, out=odd, jobs=1),
    "run, jobs": lambda odd: pmsim.run(ONE, jobs=odd if odd != 10**30 else 0),
    "run, seed": lambda odd: pmsim.run(ONE, seed=odd, jobs=1),
    "run, executor": lambda odd: pmsim.run(ONE, executor=odd),
    "run, progress": lambda odd: pmsim.run(ONE, progress=0 if odd is True else odd, jobs=1),
    "tune, progress": lambda odd: tuning.tune(SWEPT, steps=1, progress=3 if callable(odd) else odd),
    "Scenario, kind": lambda odd: pmsim.Scenario(kind=odd, platform="tum-6212u"),
    "Scenario, name": lambda odd: pmsim.Scenario(kind="latency", name=odd, platform="tum-6212u"),
    "Scenario, platform": lambda odd: pmsim.run(pmsim.Scenario(kind="latency", platform=odd), jobs=1),
    "Scenario, sweep": lambda odd: pmsim.Scenario(kind="latency", platform="tum-6212u", sweep=odd),
    "Scenario, axis": lambda odd: pmsim.Scenario(kind="latency", platform="tum-6212u", sweep={"threads": odd}),
    "Scenario, plot": lambda odd: pmsim.Scenario(kind="latency", platform="tum-6212u", plot=odd),
    "Scenario.from_toml": lambda odd: pmsim.Scenario.from_toml(odd),
    "Scenario.from_file": lambda odd: pmsim.Scenario.from_file(odd),
    "simulate_point, kind": lambda odd: pmsim.simulate_point(odd, "tum-6212u", {}),
    "simulate_point, platform": lambda odd: pmsim.simulate_point("latency", odd, {}),
    "simulate_point, parameters": lambda odd: pmsim.simulate_point("latency", "tum-6212u", odd),
    "simulate_point, a parameter": lambda odd: pmsim.simulate_point("latency", "tum-6212u", {"memory": odd}),
    "simulate_point, seed": lambda odd: pmsim.simulate_point("latency", "tum-6212u", {}, odd),
    "load_platform": lambda odd: pmsim.load_platform(odd),
    "load_platform, base": lambda odd: pmsim.load_platform({"base": odd}),
    "load_platform, block_device": lambda odd: pmsim.load_platform({"base": "tum-6212u", "block_device": odd}),
    "load_platform, a section": lambda odd: pmsim.load_platform({"base": "tum-6212u", "pmem": odd}),
    "load_platform, a value": lambda odd: pmsim.load_platform({"base": "tum-6212u", "pmem": {"dimms": odd}}),
    "platform_names": lambda odd: pmsim.platform_names(odd),
    "trace.info": lambda odd: trace.info(odd),
    "trace.replay": lambda odd: trace.replay(odd),
    "trace.export": lambda odd: trace.export(odd, "t.csv"),
    "trace.export, out": lambda odd: trace.export("t.trace", odd),
    "trace.import_from": lambda odd: trace.import_from(odd, "t.trace"),
    "trace.import_from, out": lambda odd: trace.import_from("t.csv", odd),
    "trace.import_from, pmem": lambda odd: trace.import_from("t.csv", "t.trace", pmem=odd),
    "trace.import_from, a range": lambda odd: trace.import_from("t.csv", "t.trace", pmem=[odd]),
    "trace.import_from, loads": lambda odd: trace.import_from("t.csv", "t.trace", loads=odd),
    "trace.requests": lambda odd: trace.requests(odd, "r.csv", form="table", medium="dram"),
    "trace.requests, form": lambda odd: trace.requests("t.trace", "r.csv", form=odd, medium="dram"),
    "trace.requests, medium": lambda odd: trace.requests("t.trace", "r.csv", form="table", medium=odd),
    "trace.record, out": lambda odd: trace.record(ONE, odd),
    "trace.record, point": lambda odd: trace.record(SWEPT, "t.trace", point=odd if odd is not True else 0),
    "tune, metric": lambda odd: tuning.tune(SWEPT, metric=odd, steps=1),
    "tune, minimize": lambda odd: tuning.tune(SWEPT, minimize=0 if odd is True else odd, steps=1),
    "tune, require": lambda odd: tuning.tune(SWEPT, require=odd, steps=1),
    "tune, a requirement": lambda odd: tuning.tune(SWEPT, require=[odd], steps=1),
    "tune, steps": lambda odd: tuning.tune(SWEPT, steps=odd),
    "tune, seed": lambda odd: tuning.tune(SWEPT, steps=1, seed=odd),
    "tune, jobs": lambda odd: tuning.tune(SWEPT, steps=1, jobs=odd),
    "tune, out": lambda odd: tuning.tune(SWEPT, steps=1, out=odd),
    "crash.check_block": lambda odd: crash.check_block(odd, states=1),
    "crash.check_block, states": lambda odd: crash.check_block("inplace-word", states=odd, mutate=False),
    "crash.check_block, seed": lambda odd: crash.check_block("inplace-word", states=1, seed=odd, mutate=False),
    "crash.check_block, jobs": lambda odd: crash.check_block("inplace-word", states=1, jobs=odd, mutate=False),
    "capacity.load_prices": lambda odd: capacity.load_prices(odd),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("call", CALLS)
def test_an_odd_argument(call: str, odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as refused:
        CALLS[call](ODD[odd])
    assert "\n" not in str(refused.value)
    assert ":" in str(refused.value)


def test_a_number_of_another_library_is_one() -> None:
    numpy = pytest.importorskip("numpy")
    assert crash.check_block("inplace-word", states=numpy.int64(5), seed=numpy.uint8(1), mutate=False).seed == 1
