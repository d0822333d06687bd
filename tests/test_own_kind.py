"""A kind in a module outside of the tree, as docs/adding.md shows it."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pmsim
from pmsim import ConfigError, Scenario
from pmsim.kinds import KINDS, find_kind
from pmsim.tuning import tune
from pmsim.versions import files_of

PAGE = Path(__file__).parents[1] / "docs" / "adding.md"
MODULE = "own_kind_of_the_docs"


@pytest.fixture
def gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scenario]:
    """A scenario of the kind of the page, whose module can be imported."""
    (source,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / f"{MODULE}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module(MODULE)
    yield Scenario(kind="gap", platform="tum-6212u", sweep={"region_size": ["1 MiB", "1 GiB"]})
    del KINDS["gap"], sys.modules[MODULE]  # the next test has another folder


def test_its_points_run_in_this_process_and_in_others(gap: Scenario) -> None:
    here = pmsim.run(gap, jobs=1)
    cached, beyond = here.frame["gap"]
    assert cached == pytest.approx(1, rel=0.2)
    assert beyond > 2
    assert pmsim.run(gap, jobs=2).frame.equals(here.frame)


def test_it_is_tuned_and_recorded(gap: Scenario, tmp_path: Path) -> None:
    assert tune(gap, steps=4, minimize=False).best == {"region_size": "1 GiB"}
    recorded = pmsim.trace.record(gap, tmp_path / "a.trace")
    assert recorded.provenance["workload"] == "latency"


def test_it_refuses_what_its_check_and_its_parameters_refuse(gap: Scenario) -> None:
    for parameters, message in (
        ({"region_size": "1 TiB"}, "region_size: 1 TiB do not fit the 192 GiB of dram of platform 'tum-6212u'"),
        ({"region": "1 GiB"}, "region: unknown parameter of kind 'gap'; did you mean 'region_size'"),
    ):
        with pytest.raises(ConfigError, match=message):
            pmsim.run(Scenario(kind="gap", platform="tum-6212u", parameters=parameters), jobs=1)


def test_what_simulates_decides_on_points_and_what_shows_them_does_not(gap: Scenario) -> None:
    package = Path(pmsim.__file__).parent
    files = files_of(type(find_kind(gap.kind)))
    decide = ("des/studies.py", "kinds/intervals.py", "kinds/engine_options.py", "seeds.py")
    assert {package / file for file in decide} < set(files)
    assert not {package / "plots", package / "commands"} & {file.parent for file in files}
    assert sys.modules[MODULE].__file__ in map(str, files)


def test_finished_points_of_changed_code_are_simulated_again(gap: Scenario, tmp_path: Path) -> None:
    before = pmsim.run(gap, out=tmp_path / "out", jobs=1)
    assert pmsim.run(gap, out=tmp_path / "out", jobs=1).provenance["points_from_cache"] == 2
    module = tmp_path / f"{MODULE}.py"
    module.write_text(module.read_text().replace('"gap": latency', '"gap": 2 * latency'))
    importlib.invalidate_caches()
    importlib.reload(sys.modules[MODULE])
    after = pmsim.run(gap, out=tmp_path / "out", jobs=1)
    assert after.provenance["points_from_cache"] == 0
    assert list(after.frame["gap"]) == [2 * ratio for ratio in before.frame["gap"]]
