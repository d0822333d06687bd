"""A claim whose unit is not that of its metric is refused, unless a measure converts."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pmsim.errors import ConfigError
from pmsim.validation.runnable import check_suite
from pmsim.validation.suite_files import load_suite

BANDWIDTH = ("bandwidth", "bandwidth_gb_s")
LATENCY = ("latency", "latency_ns")
RATE = ("log", "ops_per_s")
LINE_TIME = ("bandwidth", "line_time_ns")
GROUP = ("mixed", "group_1_bandwidth_gb_s")
RATIO = ("bandwidth", "read_amplification")

Checked = Callable[..., None]


@pytest.fixture
def checked(one_claim: Callable[..., str], tmp_path: Path) -> Checked:
    """Check a suite of one claim about two series of this kind and metric."""

    def check(run: tuple[str, str], unit: str, **measures: str) -> None:
        kind, metric = run
        groups = 'parameters = { groups = [{ task = "scan" }] }\n' if kind == "mixed" else ""
        series = "".join(
            f'[series.{name}]\nplatform = "tum-6212u"\nkind = "{kind}"\nmetric = "{metric}"\n{groups}'
            for name in "st"
        )
        given = measures or {"m": '{ point = "s" }'}
        named = {f"measures.{name}": measure for name, measure in given.items()}
        claim = {"id": '"mine"', "expected": "1", "unit": f'"{unit}"'} | named
        (tmp_path / "mine.toml").write_text(one_claim(series, **claim))
        check_suite(load_suite(tmp_path / "mine.toml"))

    return check


@pytest.mark.parametrize(
    ("run", "unit", "metric_unit"),
    [
        (BANDWIDTH, "MB/s", "GB/s"),
        (GROUP, "GiB/s", "GB/s"),
        (LATENCY, "us", "ns"),
        (LINE_TIME, "cycles", "ns"),
        *((RATE, unit, "1/s") for unit in ("MTx/s", "M/s", "Mops/s", "kTx/s", "kops/s", "GB/s", "Tx/ms")),
        *(
            (RATE, unit, "1/s")
            for unit in ("Kops/s", "KTx/s", "ktx/s", "K/s", "kpages/s", "1e6 Tx/s", "bytes/s")
        ),
    ],
)
def test_another_unit_than_the_metrics_is_refused(
    run: tuple[str, str], unit: str, metric_unit: str, checked: Checked
) -> None:
    with pytest.raises(ConfigError) as refused:
        checked(run, unit)
    assert f"mine.toml: claim 'mine': unit: '{unit}', and metric '{run[1]}' is in {metric_unit}; " in str(
        refused.value
    )
    assert 'a measure that converts: { scaled = "m", by = ... }' in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "measures",
    [
        {"m": '{ max = ["s", "t"] }'},
        {"m": '{ min = ["s"] }'},
        {"m": '{ sum = ["n", "n"] }', "n": '{ point = "s" }'},
    ],
    ids=["max", "min", "sum"],
)
def test_what_keeps_the_unit_of_its_series_is_held_to_it(measures: dict[str, str], checked: Checked) -> None:
    checked(BANDWIDTH, "GB/s", **measures)
    with pytest.raises(ConfigError, match="unit: 'MB/s', and metric 'bandwidth_gb_s' is in GB/s"):
        checked(BANDWIDTH, "MB/s", **measures)


@pytest.mark.parametrize(
    ("run", "unit"),
    [
        (BANDWIDTH, "GB/s"),
        (BANDWIDTH, ""),
        (LATENCY, "ns"),
        (LINE_TIME, "ns"),
        (RATIO, "lines"),
        *((RATE, unit) for unit in ("1/s", "Tx/s", "pages/s", "keys/s", "GETs/s", "Messages/s")),
    ],
)
def test_the_metrics_own_unit_and_any_name_of_what_is_counted_are_accepted(
    run: tuple[str, str], unit: str, checked: Checked
) -> None:
    checked(run, unit)


@pytest.mark.parametrize(
    "measures",
    [
        {"m": '{ scaled = "n", by = 1000 }', "n": '{ point = "s" }'},
        {"m": '{ ratio = ["n", "n"] }', "n": '{ point = "s" }'},
        {"m": '{ peak_x = "s" }'},
    ],
    ids=["scaled", "ratio", "place"],
)
def test_measures_that_have_another_unit_than_their_series_have_any(
    measures: dict[str, str], checked: Checked
) -> None:
    checked(BANDWIDTH, "MB/s", **measures)
