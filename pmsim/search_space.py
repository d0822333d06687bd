"""The points of a sweep as a grid that a search can walk over."""

import math
from dataclasses import dataclass

from pmsim.errors import ConfigError
from pmsim.points import Point

Coordinates = tuple[int, ...]


@dataclass(frozen=True)
class SearchSpace:
    """A full grid of points.

    Attributes
    ----------
    sizes : list of int
        Settings of each axis.
    grid : dict
        Coordinates, the positions of the settings on their axes, to the point there.
    """

    sizes: list[int]
    grid: dict[Coordinates, Point]

    @classmethod
    def of(cls, points: list[Point]) -> "SearchSpace":
        """Lay the points of a sweep out, in the order in which each axis lists its settings.

        An axis that follows from the others is none: of a zipped sweep whose engine follows from its capacities
        only these are searched.

        Raises
        ------
        ConfigError : there is no axis, or the points leave gaps.
        """
        names = list(points[0].axes)
        for name in tuple(names):
            rest = [other for other in names if other != name]
            if rest and len({tuple(point.axes[other] for other in rest) for point in points}) == len(points):
                names = rest
        settings = {name: list(dict.fromkeys(point.axes[name] for point in points)) for name in names}
        sizes = [len(values) for values in settings.values()]
        if not names or math.prod(sizes) != len(points):
            raise ConfigError(
                "sweep: a search needs points that fill a grid: at least one axis, and with mode = 'zip' every "
                "combination of the axes that do not follow from others"
            )
        grid = {
            tuple(values.index(point.axes[name]) for name, values in settings.items()): point
            for point in points
        }
        return cls(sizes, grid)
