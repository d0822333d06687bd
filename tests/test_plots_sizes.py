"""Sizes on the horizontal axis: linear, or logarithmic where they lie far apart."""

import pandas as pd
import pytest

import pmsim
from pmsim.plot_spec import Mark, Overlay, Plot
from pmsim.plots.figure import figure_of
from pmsim.plots.layout import plot_layout
from pmsim.plots.style import value_label

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


@pytest.mark.parametrize(
    ("column", "values", "title", "drawn"),
    [
        ("platform.core.frequency_hz", [800_000_000, 2_000_000_000], "core frequency [GHz]", [0.8, 2]),
        ("platform.core.frequency_hz", [100_000_000, 900_000_000], "core frequency [MHz]", [100, 900]),
        ("platform.block.read_bandwidth_bytes_per_s", [2 * 10**9, 10**10], "read bandwidth [GB/s]", [2, 10]),
    ],
)
def test_frequencies_and_bandwidths_are_in_a_unit_of_their_size(column, values, title, drawn):
    """Plotly had written 2B for 2 GHz."""
    figure = figure_of(layout_of(values, column), title="t", y_title="y")
    (curve,) = figure.data
    assert figure.layout.xaxis.title.text.endswith(title)
    assert list(curve.x) == drawn


def test_a_legend_writes_frequencies_and_bandwidths_with_a_unit_of_their_size():
    assert value_label("platform.core.frequency_hz", 2_000_000_000) == "core frequency 2 GHz"
    assert value_label("platform.block.read_bandwidth_bytes_per_s", 2_500_000_000.0).endswith(" 2.5 GB/s")


def test_a_linear_axis_stays_one_when_a_scenario_is_written_and_read(tmp_path):
    file = tmp_path / "pages.toml"
    file.write_text(
        'kind = "bandwidth"\nplatform = "tum-6212u"\n[parameters]\nlength = 1\n'
        "[sweep]\nregion_size = [16_384, 67_108_864]\n[plot]\nlog_x = false\n"
    )
    result = pmsim.run(file, jobs=1, seed=3, out=tmp_path / "out")
    again = pmsim.run(tmp_path / "out" / "scenario.resolved.toml", jobs=1)
    assert [one.figure().layout.xaxis.type for one in (result, again)] == [None, None]
