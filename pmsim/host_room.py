"""Whether this host's memory holds what points need, as far as their parameters tell before anything runs."""

from collections.abc import Iterable

from pmsim import _native
from pmsim.errors import ConfigError
from pmsim.kinds import find_kind
from pmsim.points import Point


def check_room(points: Iterable[Point]) -> None:
    """Refuse a point that needs more memory than this host has in all.

    What a point needs beyond that shows while it runs; the core looks then.

    Raises
    ------
    ConfigError : names the point and the parameter.
    """
    room = _native.host_room()
    if room is None:
        return
    total = room[0]
    for point in points:
        name, need = find_kind(point.kind).least_host_memory(point.parameters)
        if need > total:
            at = f" (point with {point.describe()})" if point.axes else ""
            raise ConfigError(
                f"parameters.{name}: the simulation takes at least {_size(need)} of memory{at}, and this host "
                f"has {_size(total)}; choose less data, a smaller scale where there is one, or another host"
            )


def _size(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"
