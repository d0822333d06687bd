"""What would hide each other: curves that run under others are wider, and labels stand clear of curves."""

from itertools import combinations

import pandas as pd
import pytest

from pmsim.plot_spec import Mark, Plot
from pmsim.plots.figure import figure_of
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


@pytest.mark.parametrize("log_y", [False, True])
def test_a_curve_that_runs_under_another_one_shows_beside_it(log_y: bool) -> None:
    heights = {"under": [100.0, 200.0, 300.0], "apart": [100.0, 200.0, 10.0], "over": [100.5, 201.0, 299.5]}
    rows = [(x, name, y) for name, ys in heights.items() for x, y in enumerate(ys, start=1)]
    # In the other panel, at another scale, nothing coincides.
    rows = [(0, *row) for row in rows] + [(1, x, name, y * len(name)) for x, name, y in rows]
    frame = pd.DataFrame(rows, columns=["panel", "x", "name", "y"])
    plot = Plot(x="x", y="y", color="name", facet="panel", log_y=log_y, share_y=False)
    layout = plot_layout(frame, plot=plot, axes=["x"], metrics=["y"], default_metric="y")
    figure = figure_of(layout, title="t", y_title="y")
    widths = {(trace.name, trace.xaxis): (trace.line.width, trace.marker.size) for trace in figure.data}
    assert len(widths) == 6
    usual = widths["name: over", "x"]
    assert widths["name: under", "x"] > usual
    assert widths["name: under", "x"][1] > usual[1]
    assert {wide for key, wide in widths.items() if key != ("name: under", "x")} == {usual}


def test_dashes_let_what_is_under_them_through() -> None:
    rows = [(x, name, buffer, 7.0) for name in "ab" for buffer in (False, True) for x in (1, 2)]
    frame = pd.DataFrame(rows, columns=["x", "name", "buffer", "y"])
    plot = Plot(x="x", y="y", color="name", line="buffer")
    layout = plot_layout(frame, plot=plot, axes=["x"], metrics=["y"], default_metric="y")
    figure = figure_of(layout, title="t", y_title="y")
    usual, wide = sorted({trace.line.width for trace in figure.data})
    # Solid and dashed ones in turns, one on top of the other: the dashed one of a pair hides no solid one.
    assert [trace.line.dash for trace in figure.data] == ["solid", "dash"] * 2
    assert [trace.line.width for trace in figure.data] == [wide, wide, usual, usual]


@pytest.mark.parametrize("log_x", [False, True])
def test_a_mark_is_a_line_with_its_label_in_its_panel(log_x: bool) -> None:
    frame = pd.DataFrame({"x": [1, 100] * 2, "panel": [0, 0, 1, 1], "y": 1.0})
    mark = Mark(x=10, label="crossover", citation="somewhere", facet=1)
    plot = Plot(x="x", y="y", facet="panel", log_x=log_x, mark=[mark])
    layout = plot_layout(frame, plot=plot, axes=["panel", "x"], metrics=["y"], default_metric="y")
    figure = figure_of(layout, title="t", y_title="y")
    (line,) = figure.layout.shapes
    assert (line.x0, line.x1, line.xref, line.yref) == (10, 10, "x2", "y2 domain")
    (label,) = (each for each in figure.layout.annotations if each.text == "crossover")
    assert (label.x, label.xref) == (1 if log_x else 10, "x2")
    # Legible over a curve, which shows through.
    assert (label.xanchor, label.bgcolor) == ("left", "rgba(255, 255, 255, 0.5)")
    assert figure.layout.title.subtitle.text == "Dotted lines: somewhere"


@pytest.mark.parametrize(
    ("heights", "least", "most"),
    [
        ([[5, 5, 10]], 0.98, 0.98),  # free
        ([[10, 9, 5]], 0.3, 0.93),  # below the curve
        ([[10, 9, 5], [2, 2, 2]], 0.4, 0.93),  # between two curves
        ([[10, 9, 5], [8, 8, 8], [6, 6, 6], [4, 4, 4], [2, 2, 2]], 0.98, 0.98),  # nowhere
    ],
)
@pytest.mark.parametrize("log_x", [False, True])
def test_the_label_of_a_mark_stands_where_no_curve_is(
    heights: list[list[float]], least: float, most: float, log_x: bool
) -> None:
    rows = [(x, name, y) for name, curve in enumerate(heights) for x, y in zip((1, 2, 100), curve, strict=True)]
    frame = pd.DataFrame(rows, columns=["x", "name", "y"])
    mark = Mark(x=1, label="crossover", citation="somewhere")
    plot = Plot(x="x", y="y", color="name", log_x=log_x, mark=[mark])
    layout = plot_layout(frame, plot=plot, axes=["x", "name"], metrics=["y"], default_metric="y")
    (label,) = figure_of(layout, title="t", y_title="y").layout.annotations
    assert label.yanchor == "top"
    assert least <= label.y <= most
