"""Verdicts can fail: each rule, relation and shape is shown from both sides."""

import math
from typing import Any

import pytest

from pmsim.errors import SimulationError
from pmsim.validation.claims import Check, Claim, Suite
from pmsim.validation.measures import Curve, Runs, points_of
from pmsim.validation.seeds import share_of, value_range
from pmsim.validation.summary import Validation
from pmsim.validation.verdict import (
    Outcome,
    check_everywhere,
    check_order,
    check_shape,
    check_value,
    judge,
    median_curve,
    quantile,
    spearman,
)


def claim(**changes: Any) -> Claim:
    fields = {
        "id": "device-x",
        "source": [{"ref": "paper", "where": "Table 1"}],
        "setup": "",
        "quantity": "",
        "kind": "absolute",
        "expected": 100,
        "unit": "ns",
        "precision": "stated",
        "rule": "idle-or-peak",
        "measures": {"m": {"point": "s"}},
        "checks": [{"value": "m"}],
    }
    return Claim.model_validate(fields | changes)


@pytest.mark.parametrize(("value", "passed"), [(95, True), (94.9, False), (105, True), (105.1, False)])
def test_a_value_is_judged_from_both_sides(value: float, passed: bool) -> None:
    result = check_value(claim(), value)
    assert result.passed is passed
    assert result.error == pytest.approx(value / 100 - 1)


def test_what_is_off_from_zero_is_judged_and_has_no_relative_error() -> None:
    nothing = claim(expected=0, kind="ratio", precision="approx", rule="near-one")
    assert check_value(nothing, 0.0).error == 0.0
    for value, passed in ((0.05, True), (0.1, True), (0.11, False), (-295.5, False)):
        result = check_value(nothing, value)
        assert result.passed is passed
        assert result.value == value
        assert result.error is None
    from_zero = claim(expected=[0, 4], kind="absolute", rule="threads")
    assert check_value(from_zero, 5.0).error == pytest.approx(0.25)
    assert check_value(from_zero, -1.0).error is None


def test_what_is_off_from_zero_is_in_no_accuracy_and_not_counted_as_failed_to_run() -> None:
    nothing = claim(expected=0, kind="ratio", precision="approx", rule="near-one")
    series = {"s": {"platform": "m", "kind": "k", "metric": "y"}}
    sources = {"paper": {"citation": "x"}}
    suite = Suite.model_validate(
        {"name": "s", "title": "", "sources": sources, "series": series, "claim": [nothing.model_dump()]}
    )

    def accuracy(outcome: Outcome) -> list[tuple[int, int, float]]:
        rows = Validation(suite, [outcome], [], [], 1).accuracy()
        return [(row.rows, row.failed, row.median) for row in rows]

    off = Outcome(nothing, "fail", [check_value(nothing, 5.0)])
    assert accuracy(off) == []
    assert accuracy(Outcome(nothing, "pass", [check_value(nothing, 0.0)])) == [(1, 0, 0.0)]
    for never in (Outcome(nothing, "fail", [check_value(nothing, math.inf)]), Outcome(nothing, "error")):
        assert [row[:2] for row in accuracy(never)] == [(0, 1)]


def test_an_ordering_of_series_holds_only_where_it_holds_at_each_x() -> None:
    above: Curve = [(8, 5.0), (16, 3.0)]
    below: Curve = [(8, 4.0), (16, 2.0)]
    assert check_everywhere("a > b", {"a": above, "b": below}).passed
    crossed = check_everywhere("a > b", {"a": above, "b": [(8, 4.0), (16, 3.5)]})
    assert not crossed.passed
    assert crossed.predicted == "holds at 1 of 2, not at 16: a 3, b 3.5"


def test_an_ordering_of_series_over_different_x_is_refused() -> None:
    with pytest.raises(SimulationError, match="differ in x"):
        check_everywhere("a > b", {"a": [(8, 5.0)], "b": [(16, 4.0)]})


def test_inside_a_range_the_error_is_zero_and_outside_it_counts_from_the_nearest_end() -> None:
    ranged = claim(expected=[50, 70], rule="stated", kind="ratio")
    assert check_value(ranged, 60).error == 0
    assert check_value(ranged, 77).passed
    assert not check_value(ranged, 77.1).passed
    assert check_value(ranged, 84).error == pytest.approx(0.2)


def test_what_never_happens_has_no_error_but_is_counted() -> None:
    claims = near, never, half = [claim(id=name) for name in ("near", "never", "half")]
    series = {"s": {"platform": "tum-6212u", "kind": "latency", "metric": "latency_ns"}}
    sources = {"paper": {"citation": "x"}}
    suite = Suite(name="x", title="x", sources=sources, series=series, claim=claims)
    outcomes = [
        Outcome(near, "pass", [check_value(near, 104)]),
        Outcome(never, "fail", [check_value(never, math.inf)]),
        Outcome(half, "fail", [check_value(half, 102), check_value(half, math.inf)]),
    ]
    assert outcomes[2].error is None
    (row,) = Validation(suite, outcomes, [], [], 0).accuracy()
    assert (row.rows, row.median, row.failed) == (1, pytest.approx(0.04), 2)


def test_what_never_happens_fails_and_is_called_never() -> None:
    result = check_value(claim(expected=12, rule="threads", kind="crossover"), float("inf"))
    assert not result.passed
    assert result.predicted == "never"
    assert result.error is None


@pytest.mark.parametrize(
    ("order", "passed"),
    [
        ("a > b", True),
        ("b > a", False),
        ("b < a", True),
        ("a > a", False),
        ("a ~ c", True),
        ("a ~ b", False),
        ("a >= c", True),
        ("c >= a", False),
        ("d >= a", True),
        ("b <= a", True),
        ("a > c > b", True),
        ("a > b > c", False),
        ("b < 6", True),
        ("b < 5", False),
    ],
)
def test_an_ordering_is_exact_and_equality_is_within_15_per_cent(order: str, passed: bool) -> None:
    values = {"a": 10.0, "b": 5.0, "c": 8.6, "d": 9.85}
    assert check_order(order, values).passed is passed


def points(*values: float) -> Curve:
    return [(float(x), y) for x, y in enumerate(values, start=1)]


@pytest.mark.parametrize(
    ("check", "curve", "passed"),
    [
        ({"shape": "flat"}, points(10, 8, 9), True),
        ({"shape": "flat"}, points(10, 7, 9), False),
        ({"shape": "flat", "within": 0.05}, points(10, 8, 9), False),
        ({"shape": "rise_then_flat"}, points(3, 6, 10, 9.5), True),
        ({"shape": "rise_then_flat"}, points(3, 6, 10, 8), False),
        ({"shape": "rise_then_flat"}, points(9.5, 10, 9.8), False),
        ({"shape": "rise_peak_decline", "peak": [2, 3]}, points(4, 10, 9, 6), True),
        ({"shape": "rise_peak_decline", "peak": [3, 4]}, points(4, 10, 9, 6), False),
        ({"shape": "rise_peak_decline"}, points(4, 10, 9.9, 9.5), False),
        ({"shape": "rise_peak_decline"}, points(10, 9, 6), False),
        ({"shape": "rise_peak_decline"}, points(4, 6, 10), False),
        ({"shape": "increasing"}, points(1, 1.2, 1.1, 2), True),
        ({"shape": "increasing"}, points(2, 1.2, 1.1, 1), False),
        ({"shape": "increasing"}, points(1, 3, 2, 1.5, 1.4, 1.2), False),
        ({"shape": "peaks_at", "at": [2, 4]}, points(1, 5, 2, 6, 3), True),
        ({"shape": "peaks_at", "at": [2, 4]}, points(1, 5, 2, 4, 3), False),
        ({"shape": "peaks_at", "at": [2, 4]}, points(1, 5, 5, 6, 3), False),
        ({"shape": "peaks_at", "at": [3]}, points(1, 5, 2, 6, 3), False),
    ],
)
def test_a_shape_can_fail(check: dict[str, Any], curve: Curve, passed: bool) -> None:
    assert check_shape(Check.model_validate({"of": "s", **check}), curve).passed is passed


def test_a_shape_needs_a_curve() -> None:
    with pytest.raises(SimulationError, match="three points"):
        check_shape(Check(shape="flat", of="s"), points(1, 2))


def test_a_local_maximum_needs_neighbours() -> None:
    with pytest.raises(SimulationError, match="needs neighbours"):
        check_shape(Check(shape="peaks_at", of="s", at=[3]), points(1, 2, 3))


def suite_of(*claims: Claim) -> Suite:
    series = {"platform": "p", "kind": "k", "metric": "y", "parameters": {}}
    swept = series | {"sweep": {"threads": [1, 2, 4]}}
    return Suite.model_validate(
        {
            "name": "t",
            "title": "t",
            "sources": {"paper": {"citation": "Somebody, 2020"}},
            "series": {"s": series, "swept": swept},
            "claim": [item.model_dump() for item in claims],
        }
    )


def judged(subject: Claim, *seeds: dict[str, float]) -> tuple[Outcome, list[Outcome]]:
    """Judge by the results of several seeds: over all of them, and with each alone."""
    suite = suite_of(subject)
    runs = [Runs(lambda points, progress, found=found: [found] * len(points)) for found in seeds]
    for one in runs:
        one.compute(point for name in suite.series_of(subject) for point in points_of(suite.series[name]))
    return judge(runs, suite, subject), [judge([one], suite, subject) for one in runs]


def verdict(subject: Claim, **metrics: float) -> str:
    return judged(subject, metrics)[0].verdict


def test_all_conditions_of_a_claim_must_hold() -> None:
    both = claim(checks=[{"value": "m"}, {"order": "m > 101"}])
    assert verdict(both, y=102.0) == "pass"
    assert verdict(both, y=100.0) == "fail"
    assert verdict(both, y=120.0) == "fail"


def test_a_claim_whose_runs_fail_is_an_error_not_a_pass() -> None:
    assert verdict(claim(), x=100.0) == "error"


def test_a_claim_that_is_not_simulated_says_so() -> None:
    listed = claim(checks=[], not_simulated="structural")
    assert verdict(listed) == "not simulated"


def test_the_shape_of_a_ratio_is_point_by_point() -> None:
    over = claim(
        kind="shape",
        expected="flat",
        rule="shape",
        measures={},
        checks=[{"shape": "flat", "of": "swept", "over": "swept"}],
    )
    assert verdict(over, y=3.0) == "pass"
    different = claim(
        kind="shape",
        expected="flat",
        rule="shape",
        measures={},
        checks=[{"shape": "flat", "of": "swept", "over": "s"}],
    )
    assert verdict(different, y=3.0) == "error"


@pytest.mark.parametrize(
    ("values", "passes", "share", "by_chance"),
    [
        ((90, 102, 103), True, "2/3", True),
        ((90, 94, 103), False, "1/3", True),
        ((98, 99, 100), True, "3/3", False),
        ((80, 81, 94), False, "0/3", False),
    ],
)
def test_a_claim_is_judged_by_the_median_over_the_seeds(
    values: tuple[float, ...], passes: bool, share: str, by_chance: bool
) -> None:
    outcome, alone = judged(claim(), *({"y": float(value)} for value in values))
    assert outcome.verdict == ("pass" if passes else "fail")
    assert outcome.checks[0].value == values[1]
    assert outcome.error == pytest.approx(values[1] / 100 - 1)
    found = share_of(alone)
    assert str(found) == share
    assert found.by_chance is by_chance
    assert found.spread == f"{values[0]}..{values[2]}"
    assert value_range(alone) == (values[0], values[2])


def test_the_numbers_of_every_form_of_a_claim_are_medians_with_a_spread() -> None:
    seeds = ({"y": 3.0}, {"y": 9.0}, {"y": 4.0})
    swept = {"s": {"point": "s"}, "top": {"max": ["swept"]}}
    for check, predicted, spread in (
        ({"order": "s > 3"}, "s 4", "s 3..9"),
        ({"order": "top <= s"}, "top 4, s 4", "top 3..9, s 3..9"),
        ({"everywhere": "swept > swept"}, "holds at 0 of 3, not at 1: swept 4", ""),
        (
            {"shape": "flat", "of": "swept"},
            "4 to 4, largest 4 at 1",
            "first 3..9, last 3..9, largest 3..9",
        ),
        (
            {"shape": "flat", "of": "swept", "over": "swept"},
            "1 to 1, largest 1 at 1",
            "",
        ),
    ):
        subject = claim(kind="shape", expected="x", rule="shape", measures=swept, checks=[check])
        outcome, alone = judged(subject, *seeds)
        assert outcome.predicted == predicted
        assert share_of(alone).spread == spread
        assert value_range(alone) is None  # a claim that is no number


def test_a_number_that_several_conditions_compare_has_one_spread() -> None:
    twice = claim(checks=[{"value": "m"}, {"order": "m > 50"}, {"order": "200 > m"}])
    _, alone = judged(twice, {"y": 98.0}, {"y": 99.0})
    assert share_of(alone).spread == "98..99; m 98..99"
    assert value_range(alone) is None


def test_a_run_that_fails_with_one_seed_is_an_error_and_passes_with_the_others() -> None:
    outcome, alone = judged(claim(), {"y": 100.0}, {"x": 1.0}, {"y": 101.0})
    assert outcome.verdict == "error"
    found = share_of(alone)
    assert (str(found), found.spread, found.by_chance) == ("2/3", "100..101", True)


def test_a_median_curve_ends_with_the_shortest_and_needs_the_same_x() -> None:
    assert median_curve([points(1, 5, 9), points(3, 4), points(2, 9, 9)]) == points(2, 5)
    assert median_curve([points(1, 5)]) == points(1, 5)
    with pytest.raises(SimulationError, match="one seed than with another"):
        median_curve([points(1, 2, 3), points(1, 2, 3)[1:]])


def test_quantiles_interpolate() -> None:
    assert quantile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.5
    assert quantile([0.0, 10.0], 0.9) == pytest.approx(9.0)
    assert quantile([7.0], 0.9) == 7.0


def test_rank_correlation_with_ties() -> None:
    assert spearman([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1.0)
    assert spearman([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1.0)
    # Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: 4.5 / sqrt(4.5 * 5).
    assert spearman([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(4.5 / (4.5 * 5.0) ** 0.5)
