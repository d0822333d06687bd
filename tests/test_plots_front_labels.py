"""The names of the points of a front: where nothing else is, and not on each other."""

import pandas as pd
import pytest

from pmsim.plot_spec import Plot
from pmsim.plots.figure import figure_of
from pmsim.plots.layout import plot_layout


def drawn(points: dict[str, tuple[float, float]], *, low_y: bool = False, **plot: bool) -> dict[str, str]:
    """Return the labels of a front that are shown, and where; those of all are there for who points at them."""
    frame = pd.DataFrame([(x, y, name) for name, (x, y) in points.items()], columns=["cost", "rate", "name"])
    layout = plot_layout(
        frame,
        plot=Plot(x="cost", y="rate", color="", front=["name"], **plot),
        axes=["cost"],
        metrics=["rate"],
        default_metric="rate",
        low_y=low_y,
    )
    (front,) = (
        trace for trace in figure_of(layout, title="t", y_title="y").data if trace.name == "Pareto front"
    )
    assert all(shown in ("", name) for shown, name in zip(front.text, front.hovertext, strict=True))
    places = zip(front.text, front.textposition, strict=True)
    return {label.removeprefix("name: "): place for label, place in places if label}


def test_labels_are_on_the_side_where_nothing_is_better() -> None:
    rising = {"a": (1, 10), "b": (2, 20), "c": (3, 30)}
    assert drawn(rising) == {"a": "top center", "b": "top left", "c": "top left"}
    falling = {"a": (1, 30), "b": (2, 20), "c": (3, 10)}
    assert drawn(falling, low_y=True) == {"a": "top center", "b": "bottom left", "c": "bottom left"}


@pytest.mark.parametrize("log_y", [False, True])
def test_of_labels_that_would_collide_one_is_shown_and_both_ends_are(log_y: bool) -> None:
    beaten = {"z": (150, 1.0)}
    level = {"a": (1, 100.0), "b": (40, 100.1), "c": (55, 100.2), "d": (100, 100.3)}
    assert list(drawn(level | beaten, log_y=log_y)) == ["a", "b", "c", "d"]
    named = {name * 15: place for name, place in level.items()}
    assert [name[0] for name in drawn(named | beaten, log_y=log_y)] == ["a", "b", "d"]
    apart = {name: (x, 10.0 * number) for number, (name, (x, _)) in enumerate(named.items(), start=1)}
    assert [name[0] for name in drawn(apart | beaten, log_y=log_y)] == ["a", "b", "c", "d"]


def test_no_label_stands_on_the_marker_of_a_neighbour() -> None:
    # Left of "ccc..." and a little above it is the marker of a point that is nearly as good and as cheap.
    steps = {"a": (1, 1.0), "b": (90, 100.0), "c" * 20: (95, 103.0), "d": (200, 180.0)}
    assert "c" * 20 not in drawn(steps)
    assert "c" * 20 in drawn(steps | {"c" * 20: (95, 170.0)})


def test_a_front_of_one_point_or_without_an_extent_is_labelled() -> None:
    assert drawn({"a": (1, 1.0)}) == {"a": "top center"}
    assert drawn({"a": (0, 0.0)}, log_x=True, log_y=True) == {"a": "top center"}
