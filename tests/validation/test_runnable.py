"""A suite of one's own that cannot be run or judged is refused before the first run."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pmsim.validation.runnable import check_suite
from pmsim.validation.suite_files import load_suite, suites

SERIES = """[series.s]
platform = { base = "tum-6212u", pmem = { dimms = 2 } }
kind = "bandwidth"
metric = "bandwidth_gb_s"
parameters = { pattern = "random" }
sweep = { threads = [1, 2] }
[series.t]
platform = "tum-6212u"
kind = "bandwidth"
metric = "bandwidth_gb_s"
sweep = { threads = [1, 2] }
"""


@pytest.fixture
def suite(one_claim: Callable[..., str]) -> str:
    """The text of a suite that compares random reads with sequential ones."""
    ratio = {"measures.m": '{ median_ratio = ["s", "t"] }'}
    return one_claim(
        SERIES, id='"mine"', kind='"ratio"', expected="1", unit='""', quantity='"bandwidth"', **ratio
    )


WRONG = {
    "a field of the platform": ("dimms = 2", "dimm = 2", "series 's': platform.pmem.dimm: unknown"),
    "a section of the platform": ("pmem = {", "pmen = {", "series 's': platform.pmen: unknown"),
    "a value of the platform": ("dimms = 2", 'dimms = "2 GB"', "series 's': platform.pmem.dimms: "),
    "the platform": (
        'platform = "tum-6212u"',
        'platform = "tum"',
        "series 't': platform: unknown platform 'tum'",
    ),
    "a parameter": (
        'pattern = "r',
        'patern = "r',
        "series 's': parameters.patern: unknown key; did you mean 'pattern'",
    ),
    "a swept parameter": (
        "sweep = { threads",
        "sweep = { thread",
        "series 's': sweep.thread: unknown key; did you",
    ),
    "a swept value": ("[1, 2]", "[1, 2000]", "series 's': sweep.threads: 2000 threads on platform 'tum-6212u'"),
    "the kind": ('kind = "bandwidth"', 'kind = "bandwith"', "series 's': kind: unknown"),
    "the metric": ('"bandwidth_gb_s"', '"bandwidth"', "series 's': metric: unknown metric 'bandwidth' of kind"),
    "a derived metric": (
        '"bandwidth_gb_s"',
        '"transaction_ns"',
        "series 's': metric: 'transaction_ns' follows from",
    ),
    "two curves": ("[1, 2]", "[1, 3]", "claim 'mine': two series that are divided by each other differ in x"),
    "one number": (
        "median_ratio = [",
        'sum = ["n"] }\nmeasures.n = { point = "s" } #',
        "claim 'mine': 'point' needs a",
    ),
}


@pytest.mark.parametrize(("good", "bad", "message"), WRONG.values(), ids=WRONG)
def test_it_is_told_in_one_line_before_anything_runs(
    good: str, bad: str, message: str, suite: str, working_folder: Path, complaint: Callable[..., str]
) -> None:
    (working_folder / "mine.toml").write_text(suite.replace(good, bad, 1))
    said = complaint("validate", "--suite", "mine.toml", "--out", "out")
    assert f"mine.toml: {message}" in said
    assert not (working_folder / "out").exists()


def test_in_a_folder_the_line_names_the_file(
    suite: str, working_folder: Path, complaint: Callable[..., str]
) -> None:
    (working_folder / "mine").mkdir()
    (working_folder / "mine" / "one.toml").write_text(suite)
    other = suite.replace("series.s]", "series.u]").replace("series.t]", "series.v]")
    other = other.replace('"mine"', '"other"').replace('["s", "t"]', '["u", "v"]').replace("dimms", "dims")
    (working_folder / "mine" / "two.toml").write_text(other)
    assert "mine/two.toml: series 'u': platform.pmem.dims: unknown" in complaint("validate", "--suite", "mine")


@pytest.mark.parametrize("name", suites())
def test_the_suites_that_come_with_pmsim_are_accepted(name: str) -> None:
    check_suite(load_suite(name))


def test_numbers_that_differ_by_nothing_do_not_refuse_a_claim(suite: str, tmp_path: Path) -> None:
    # The suite is judged with results that are all one; a run's are not.
    measures = (
        'measures.s = { at = "s", x = 1 }\nmeasures.t = { at = "t", x = 1 }\n'
        'measures.m = { slowdown = ["s", "t"] }\nmeasures.n = { ratio = ["s", "m"] }'
    )
    suite = suite.replace('measures.m = { median_ratio = ["s", "t"] }', measures).replace('"m" }]', '"n" }]')
    (tmp_path / "mine.toml").write_text(suite)
    check_suite(load_suite(tmp_path / "mine.toml"))
