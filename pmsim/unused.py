"""Refusing what a scenario sets and none of its points uses."""

from pmsim.errors import ConfigError
from pmsim.kinds import find_kind
from pmsim.kinds.applies import Uses, is_given, without_use
from pmsim.points import Point, points_of
from pmsim.scenario import Scenario
from pmsim.seeds import check_seeds


def checked_points(scenario: Scenario, written: Scenario | None = None) -> list[Point]:
    """Return the points of a scenario, each of whose parameters some point has a use for.

    Parameters
    ----------
    scenario : Scenario
        As it runs.
    written : Scenario
        Before overrides, if it is another one: what it uses itself may stay where overrides leave no use for
        it, such as an option of an engine that is not run this time.

    Raises
    ------
    ConfigError : a point that cannot be run, or a parameter that would change nothing but the seed.
    """
    points = points_of(scenario, written)
    check_seeds(points, scenario.seeds)
    uses = find_kind(scenario.kind).uses
    asked, settled = [point.asked for point in points], [point.parameters for point in points]
    for name in uses:
        message = without_use(name, uses, asked, settled)
        if message and not (written and _is_used(name, uses, written)):
            raise ConfigError(f"{_place(scenario, name)}{message}")
    return points


def _is_used(name: str, uses: Uses, written: Scenario) -> bool:
    try:
        points = points_of(written)
    except ConfigError:  # of a file that is runnable with its overrides alone
        return False
    asked, settled = [point.asked for point in points], [point.parameters for point in points]
    return is_given(name, asked) and not without_use(name, uses, asked, settled)


def _place(scenario: Scenario, name: str) -> str:
    if name in scenario.axes()[0]:
        return "sweep."
    if name in scenario.parameters:
        return "parameters."
    return next((f"{change.key}: " for change in scenario.changes() if name in change.settings), "")
