"""The resolved scenario: every default and every range written out, and runnable again."""

from collections.abc import Sequence
from typing import Any

from pmsim.kinds.types import quantity_of
from pmsim.points import Point
from pmsim.published import published
from pmsim.scenario import Scenario
from pmsim.units import Quantity, format_value


def resolved_scenario(scenario: Scenario, points: Sequence[Point]) -> Scenario:
    """Return a scenario that gives the same points whatever the defaults of a later version are.

    Parameters
    ----------
    scenario : Scenario
        As it was run.
    points : sequence of Point
        Its points.
    """
    axes, mode = scenario.axes()
    table: dict[str, Any] = scenario.model_dump(exclude_defaults=True)
    if points:
        parameters = points[0].asked
        dumped = parameters.model_dump()
        # Some are kept out of it, since they are not part of what is simulated.
        given = {name: dumped.get(name, getattr(parameters, name)) for name in type(parameters).model_fields}
        table["parameters"] = {
            name: _written(value, quantity_of(type(parameters), name))
            for name, value in given.items()
            if name not in axes
        }
    if points and scenario.plot is not None:
        # Published values of points that the user has left out would be mistakes in a file of its own.
        plot = published(scenario, points).written_in(scenario.plot)
        table["plot"] = plot.model_dump(exclude_defaults=True)
    table["name"] = scenario.name or scenario.kind
    table["seed"] = scenario.seed
    table["seeds"] = scenario.seeds
    if axes:
        table["sweep"] = {**axes, "mode": mode} if "mode" not in axes else dict(axes)
        if mode == "zip" and "mode" in axes:
            del table["sweep"]["mode"]
    if scenario.vary:
        changes: dict[str, list[Any]] = {}
        for change in scenario.changes():
            if change.key.startswith("vary."):
                (axis, value) = next(iter(change.settings.items()))
                changes.setdefault(axis, []).append(value)
        table["vary"] = changes
    return Scenario(**table)


def _written(value: Any, quantity: Quantity | None) -> Any:
    # Of all quantities of parameters times alone have no bare numbers.
    return format_value(value, quantity) if quantity is Quantity.TIME else value
