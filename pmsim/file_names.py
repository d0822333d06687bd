"""Where a scenario, or a series of claims, names files: profiles, and parameters that are paths."""

from collections.abc import Callable, Mapping
from typing import Any

from pmsim.kinds.types import files_of
from pmsim.profiles import is_profile_file

#: The axis over the SSDs of a machine: names of profiles, like those of the axis ``platform``.
BLOCK_DEVICE = "platform.block_device"
#: Keys of a derived machine whose values name a profile each.
_PROFILES = ("base", "block_device")

#: Gives the path in whose place another one stands.
Move = Callable[[str], str]


def with_files(table: Mapping[str, Any], model: Any, move: Move) -> dict[str, Any]:
    """Return a scenario, or a series of claims, with other paths.

    Parameters
    ----------
    table : mapping
        With the keys of a scenario, those of axes flat.
    model : type of BaseModel
        The parameters of its kind.
    move : callable
        Is given each path, and returns the one in its place.
    """
    moves: dict[str, Move] = {"platform": _of_machine(move), BLOCK_DEVICE: _of_profile(move)}
    for name, words in files_of(model).items():
        moves[name] = _of_file(move, words)
    moved = dict(table)
    if "platform" in table:
        moved["platform"] = moves["platform"](table["platform"])
    if "parameters" in table:
        moved["parameters"] = _changed(table["parameters"], moves)
    for key in ("sweep", "vary"):
        if key in table:
            moved[key] = _changed(table[key], moves)
    if "variant" in table:
        moved["variant"] = [{**variant, "set": _changed(variant["set"], moves)} for variant in table["variant"]]
    if table.get("plot"):
        moved["plot"] = _drawn(table["plot"], moves)
    return moved


def _changed(values: Mapping[str, Any], moves: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    """Change what stands on these axes, one value or a list of them."""
    changed = {}
    for axis, value in values.items():
        move = moves.get(axis, _as_it_is)
        changed[axis] = [move(member) for member in value] if isinstance(value, list) else move(value)
    return changed


def _drawn(plot: Mapping[str, Any], moves: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    # Published values name points by what their rows have.
    drawn = dict(plot)
    if "overlay" in plot:
        drawn["overlay"] = [
            {**overlay, "where": _changed(overlay["where"], moves)} if "where" in overlay else overlay
            for overlay in plot["overlay"]
        ]
    # Where the figure chooses its panels, a file may give them their names all the same.
    panels = moves.get(plot["facet"], _as_it_is) if plot.get("facet") else moves[BLOCK_DEVICE]
    if "mark" in plot:
        drawn["mark"] = [
            {**mark, "facet": panels(mark["facet"])} if "facet" in mark else mark for mark in plot["mark"]
        ]
    return drawn


def _as_it_is(value: Any) -> Any:
    return value


def _of_file(move: Move, words: tuple[str, ...]) -> Callable[[Any], Any]:
    return lambda value: move(value) if isinstance(value, str) and value and value not in words else value


def _of_profile(move: Move) -> Callable[[Any], Any]:
    return lambda value: move(value) if isinstance(value, str) and is_profile_file(value) else value


def _of_machine(move: Move) -> Callable[[Any], Any]:
    profile = _of_profile(move)

    def machine(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: profile(item) if key in _PROFILES else item for key, item in value.items()}
        return profile(value)

    return machine
