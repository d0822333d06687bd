"""What figures say: units on axes and in legends, and no dash for what a colour says."""

import pandas as pd
import pytest

from pmsim.plot_spec import Plot
from pmsim.plots.layout import plot_layout
from pmsim.plots.style import parameter_title, value_label


@pytest.mark.parametrize(
    ("column", "title"),
    [
        ("time_ms", "time [ms]"),
        ("data_gib", "data [GiB]"),
        ("update_percent", "update [%]"),
        ("rate", "arrivals [1/s]"),
        ("platform.pmem.read_latency_ns", "PMem read latency [ns]"),
        ("group_size", "group size"),
    ],
)
def test_an_axis_names_its_unit(column: str, title: str) -> None:
    assert parameter_title(column) == title


def test_a_legend_keeps_the_unit() -> None:
    assert value_label("timeout_us", 0.1) == "timeout 0.1 us"
    assert value_label("access_size", 65536) == "access size 64 KiB"
    assert value_label("threads", 4) == "threads 4"
    assert value_label("prefetcher", False) == "prefetcher off"


def test_what_a_colour_or_a_panel_says_has_no_dash_of_its_own() -> None:
    frame = pd.DataFrame(
        {"x": [1, 2] * 2, "ps": [5, 5, 7, 7], "us": [5e-6] * 2 + [7e-6] * 2, "other": [0, 1] * 2, "y": 1.0}
    )

    def lines(plot: Plot) -> tuple[str, ...]:
        axes = ["ps", "other", "x"]
        return plot_layout(frame, plot=plot, axes=axes, metrics=["y"], default_metric="y").columns.lines

    assert lines(Plot(x="x", y="y", color="us")) == ("other",)
    assert lines(Plot(x="x", y="y", color="other", facet="us")) == ()
