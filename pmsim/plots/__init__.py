"""Figures: what a researcher would put in a paper."""

from pmsim.plots.effects import effects_figure
from pmsim.plots.figure import figure_of
from pmsim.plots.layout import PlotLayout, front_rows, plot_layout
from pmsim.plots.stack import stack_figure

__all__ = ["PlotLayout", "effects_figure", "figure_of", "front_rows", "plot_layout", "stack_figure"]
