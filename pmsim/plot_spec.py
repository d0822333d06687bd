"""What a scenario says about its figure."""

import math
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pmsim.errors import ConfigError
from pmsim.messages import shown


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class Overlay(BaseModel):
    """Measured or published values, drawn as markers over the simulated ones."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    label: str = Field(description="what stands in the legend")
    citation: str = Field(min_length=1, description="where the values were published")
    points: list[list[Any]] = Field(min_length=1, description="pairs [x, y] in the units of the axes")
    where: dict[str, Any] = Field(
        default_factory=dict, description="columns and values of the curve that the points belong to"
    )

    @model_validator(mode="after")
    def _pairs(self) -> "Overlay":
        for number, point in enumerate(self.points, start=1):
            if len(point) != 2 or not isinstance(point[0], str | int | float) or not _number(point[1]):
                raise ConfigError(f"points.{number}: {shown(point)} is not a pair [x, y] of numbers; write one")
            if not all(math.isfinite(value) for value in point if _number(value)):
                raise ConfigError(f"points.{number}: {shown(point)} has no place in a figure; write numbers")
        return self


class Mark(BaseModel):
    """A published place on the horizontal axis, such as a crossover, drawn as a dotted vertical line."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    x: float = Field(description="where, in the unit of the axis")
    label: str = Field(min_length=1, description="what stands beside the line")
    citation: str = Field(min_length=1, description="where it was published")
    facet: str | int | float | bool | None = Field(
        None, description="value of the panel that it belongs to; all by default"
    )


class Plot(BaseModel):
    """Axes and curves of the figure; what is not given follows from the sweep."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    x: str = Field("", description="column on the horizontal axis")
    y: str = Field("", description="metric on the vertical axis")
    color: str = Field("", description="column that distinguishes the curves")
    line: str = Field("", description="column that distinguishes curves of one colour, by their dashes")
    facet: str = Field("", description="column that distinguishes the panels")
    along: str = Field("", description="axis of the sweep that each curve runs along, where x is a metric")
    log_x: bool | None = Field(
        None, description="logarithmic horizontal axis; by default where sizes are decades apart"
    )
    log_y: bool | None = Field(
        None, description="logarithmic vertical axis; by default of curves that would else lie at its foot"
    )
    share_y: bool = Field(True, description="panels have one vertical scale; off: each its own")
    stack: Literal["", "share", "time"] = Field(
        "", description="bars of where the time goes: shares of all threads' time, or time per operation"
    )
    style: Literal["auto", "lines", "bars"] = Field("auto", description="curves, or bars for categories")
    front: list[str] = Field(
        default_factory=list,
        description="columns that name the points that no other beats in least x and most y, or least y where "
        "it is a time; they are joined",
    )
    overlay: list[Overlay] = Field(default_factory=list, description="published values")
    mark: list[Mark] = Field(default_factory=list, description="published places on the horizontal axis")

    @model_validator(mode="after")
    def _published_where_logarithms_are(self) -> "Plot":
        # A logarithmic axis has no place for them; Plotly leaves such markers out without a word.
        for number, mark in enumerate(self.mark, start=1):
            if not math.isfinite(mark.x) or (self.log_x and mark.x <= 0):
                axis = "logarithmic axis" if math.isfinite(mark.x) else "axis"
                raise ConfigError(f"mark.{number}.x: {mark.x:g} has no place on the {axis}; choose another")
        for number, overlay in enumerate(self.overlay, start=1):
            for x, y in overlay.points:
                if (self.log_x and _number(x) and x <= 0) or (self.log_y and y <= 0):
                    raise ConfigError(
                        f"overlay.{number}.points: {shown([x, y])} has no place on the logarithmic axis; "
                        "choose another, or a linear axis"
                    )
        return self

    @model_validator(mode="after")
    def _front_of_named_axes(self) -> "Plot":
        if self.front and not (self.x and self.y):
            raise ConfigError("front: needs both axes, cost and gain; name their columns with x and y")
        return self
