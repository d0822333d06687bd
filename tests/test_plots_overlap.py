"""Curves that run under others are wider than all that hide them."""

from itertools import combinations

import pandas as pd
import pytest

from pmsim.plots.layout import plot_layout
from pmsim.plots.overlap import curves_above


@pytest.mark.parametrize(
    ("heights", "expected"),
    [
        ((10, 50, 100), [0, 0, 0]),
        ((100, 100, 100), [2, 1, 0]),
        # The first lies under the second only, which lies under the third.
        ((100, 99.2, 98.4), [2, 1, 0]),
        ((100, 50, 100, 50), [1, 1, 0, 0]),
        ((100, 99.2, 50, 98.4), [2, 1, 0, 0]),
    ],
)
def test_no_curve_is_as_wide_as_one_that_hides_it(heights: tuple[float, ...], expected: list[int]) -> None:
    rows = [{"x": x, "c": f"c{number}", "y": y} for number, y in enumerate(heights) for x in (1, 2)]
    layout = plot_layout(pd.DataFrame(rows), plot=None, axes=["x", "c"], metrics=["y"], default_metric="y")
    above = curves_above(layout, layout.panels[0])
    assert above == expected
    for first, second in combinations(range(len(heights)), 2):
        if abs(heights[first] - heights[second]) < 1:
            assert above[first] > above[second]
