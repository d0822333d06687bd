"""Sizes on the horizontal axis: linear, or logarithmic where they lie far apart."""

import pandas as pd
import pytest

from pmsim.plot_spec import Mark, Overlay, Plot
from pmsim.plots.figure import figure_of
from pmsim.plots.layout import plot_layout

PAGES = [2**12, 2**21, 2**30]


def layout_of(sizes, column="page_size", **said):
    frame = pd.DataFrame({column: sizes, "y": 1.0})
    return plot_layout(frame, plot=Plot(**said), axes=[column], metrics=["y"], default_metric="y")


def test_page_sizes_are_apart_on_their_axis_and_have_units():
    axis = figure_of(layout_of(PAGES), title="t", y_title="y").layout.xaxis
    assert axis.type == "log"
    assert list(axis.tickvals) == PAGES
    assert list(axis.ticktext) == ["4 KiB", "2 MiB", "1 GiB"]


@pytest.mark.parametrize(
    ("sizes", "said", "log"),
    [
        ([100, 100_000], {}, False),  # three decades
        ([100, 100_001], {}, True),
        ([0, 100, 200_000], {}, False),  # nothing has a logarithm of zero
        (PAGES, {"log_x": False}, False),
        (PAGES, {"style": "bars"}, False),
        (PAGES, {"overlay": [Overlay(label="l", citation="c", points=[[0, 1.0]])]}, False),
        (PAGES, {"overlay": [Overlay(label="l", citation="c", points=[["4 KiB", 1.0]])]}, False),
        (PAGES, {"mark": [Mark(label="l", citation="c", x=0)]}, False),
    ],
)
def test_sizes_have_a_logarithmic_axis_where_they_span_more_than_three_decades(sizes, said, log):
    assert layout_of(sizes, **said).log_x is log


def test_other_numbers_keep_their_linear_axis():
    assert not layout_of([1, 5_000], column="threads").log_x
