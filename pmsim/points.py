"""From a scenario to its points: each resolved, validated, and known by the hash of its content."""

import copy
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pmsim.columns import SUFFIX, column_of_axis
from pmsim.errors import ConfigError
from pmsim.fields import fields
from pmsim.file_names import BLOCK_DEVICE
from pmsim.hints import nearest
from pmsim.kinds import find_kind
from pmsim.kinds.base import COUNTER_PREFIX, Scalar
from pmsim.kinds.types import KindParameters, files_of
from pmsim.platforms import Platform, find_field
from pmsim.plot_spec import Plot
from pmsim.profiles import load_platform
from pmsim.published import published
from pmsim.scenario import Scenario
from pmsim.sweep import combinations
from pmsim.units import Quantity
from pmsim.variations import CHANGED, Change


@dataclass(frozen=True)
class Point:
    """One point of a sweep: a pure function of it gives a row.

    Attributes
    ----------
    kind : str
        The kind of experiment.
    platform : Platform
        The machine as the parameters change it.
    parameters : KindParameters
        Validated, complete.
    asked : KindParameters
        The same before the machine decided what they leave open.
    columns : dict
        The parameter columns of its row.
    axes : dict
        What the sweep set for this point, as text for messages.
    base_seed : int
        The seed of the scenario.
    """

    kind: str
    platform: Platform
    parameters: KindParameters
    asked: KindParameters
    columns: Mapping[str, Scalar]
    axes: Mapping[str, str]
    base_seed: int

    @cached_property
    def content(self) -> str:
        """SHA-256 over what is simulated: kind, native values of the machine, parameters; without the seed."""
        return self._hash(self.platform.native())

    @cached_property
    def execution(self) -> str:
        """SHA-256 over what decides on what is executed: the content, or that without the platform's times."""
        if not find_kind(self.kind).executes_regardless_of_time(self.parameters):
            return self.content
        known = fields()
        untimed = {
            section: {
                name: v for name, v in values.items() if known[section][name].quantity is not Quantity.TIME
            }
            for section, values in self.platform.native().items()
        }
        return self._hash(untimed)

    @cached_property
    def seed(self) -> int:
        """Seed of this point, from the scenario's, the kind and the parameters that are not at their default.

        All machines draw the same random numbers (*common random numbers*), so what differs between them is the
        machines' doing, and a parameter more in the model, or in the kind, leaves published results alone.
        Points that differ only in what the kind calls `unseeded` have one seed.
        """
        unseeded = find_kind(self.kind).unseeded
        changed = _regardless_of_folders(
            self.asked, self.asked.model_dump(mode="json", exclude_defaults=True, exclude=set(unseeded))
        )
        text = _canonical({"kind": self.kind, "parameters": changed})
        digest = hashlib.sha256(f"{self.base_seed}:{text}".encode()).digest()
        return int.from_bytes(digest[:8], "big") >> 1

    @property
    def configuration(self) -> str:
        """Hash that stands in the row: content and seed."""
        return hashlib.sha256(f"{self.content}:{self.seed}".encode()).hexdigest()

    def _hash(self, machine: Mapping[str, Mapping[str, int]]) -> str:
        parameters = _regardless_of_folders(self.parameters, self.parameters.model_dump(mode="json"))
        content = {"kind": self.kind, "platform": machine, "parameters": parameters}
        if files := self.parameters.file_contents():
            content["files"] = files
        return hashlib.sha256(_canonical(content).encode()).hexdigest()

    def describe(self) -> str:
        """Return what the sweep set, for messages."""
        return ", ".join(f"{name} = {value}" for name, value in self.axes.items()) or "the only point"


def _regardless_of_folders(parameters: KindParameters, dumped: Mapping[str, Any]) -> dict[str, Any]:
    # From another working directory the same file has another path. What it holds is part of the content.
    files = files_of(type(parameters))
    return {name: Path(value).name if name in files else value for name, value in dumped.items()}


def _canonical(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def points_of(scenario: Scenario, written: Scenario | None = None) -> list[Point]:
    """Return the points of a scenario, in the order of its rows.

    Parameters
    ----------
    scenario : Scenario
        What to run.
    written : Scenario, optional
        What it was before the user changed it for this run. Published values of its figure that belong to
        points of that one, and to none that is left, are no mistake.

    Raises
    ------
    ConfigError : a point that cannot be run, before any is run.
    """
    points = _all_points(scenario, written)
    if points:
        _check_plot(scenario, points, written)
    return points


def _all_points(scenario: Scenario, written: Scenario | None = None) -> list[Point]:
    changes = scenario.changes()
    varied = dict.fromkeys(axis for change in changes for axis in change.settings)
    axes, mode = scenario.axes()
    _check_names(axes.get("platform", []))
    # A change of one member, such as groups.2.threads, is an axis that nobody has written (`overrides`).
    own = axes if written is None else written.axes()[0]
    swept = [axis for axis in axes if axis in own or len(axes[axis]) > 1 or "." not in axis]
    points = []
    for setting in combinations(axes, mode):
        as_it_is = _point(scenario, setting, varied, swept)
        points.append(as_it_is)
        for change in changes:
            point = _point(scenario, setting, varied, swept, change)
            if point.content == as_it_is.content:
                raise ConfigError(
                    f"{change.key}: with '{change.label}' the same is simulated as without; remove it"
                )
            points.append(point)
    return points


def _check_names(platforms: Sequence[Any]) -> None:
    # Rows and curves know a machine by its name. A zipped axis may repeat a value.
    named: dict[str, Any] = {}
    for platform in platforms:
        name = _machine("sweep.platform", platform).name
        if named.setdefault(name, platform) != platform:
            raise ConfigError(
                f"sweep.platform: two machines are named '{name}'; give each a name: {{base = ..., "
                'name = "..."}'
            )


def _point(
    scenario: Scenario,
    setting: Mapping[str, Any],
    varied: Iterable[str],
    swept: Sequence[str],
    change: Change | None = None,
) -> Point:
    kind = find_kind(scenario.kind)
    wanted = {**setting, **(change.settings if change else {})}
    platform_of = {axis: value for axis, value in wanted.items() if axis.split(".")[0] == "platform"}
    given = copy.deepcopy(scenario.parameters)
    for axis, value in wanted.items():
        if axis not in platform_of:
            _set(given, axis, value, kind.parameter_model)
    platform = _platform(scenario.platform, platform_of, change)
    try:
        machine, parameters, asked = kind.prepared(platform, given)
        own = kind.columns(machine, parameters)
    except ConfigError as error:
        raise ConfigError(_located(str(error), swept, change, kind.parameter_model)) from None
    for metric in scenario.metrics:
        try:
            kind.check_metric(metric, parameters)
        except ConfigError as error:
            raise ConfigError(f"metrics: {error}") from None
    columns: dict[str, Scalar] = {"platform": machine.name}
    said = {axis: str(value) for axis, value in setting.items()}
    if varied:
        said[CHANGED] = columns[CHANGED] = change.label if change else scenario.unchanged
    for axis in (*setting, *varied):
        if axis.startswith("platform.") and (axis != BLOCK_DEVICE or axis in platform_of):
            name, column = _platform_column(axis, machine, platform_of.get(axis))
            columns[name] = column
    return Point(
        kind=kind.name,
        platform=machine,
        parameters=parameters,
        asked=asked,
        columns=columns | own,
        axes=said,
        base_seed=scenario.seed,
    )


def _check_stack(plot: Plot, scenario: Scenario, points: Sequence[Point]) -> None:
    kind = find_kind(scenario.kind)
    if plot.stack == "time" and not (kind.rate and f"{COUNTER_PREFIX}elapsed_ps" in kind.counters()):
        raise ConfigError(f"plot.stack: kind '{kind.name}' has no rate of operations; choose \"share\"")
    if any(kind.curve(point.parameters) for point in points):
        raise ConfigError("plot.stack: rows of these points are a curve, which has none; remove it")
    for key in sorted(plot.model_fields_set - {"stack", "x"}):
        raise ConfigError(f"plot.{key}: bars of where the time goes have none; remove it, or plot.stack")
    columns = [*map(column_of_axis, scenario.axes()[0]), *([CHANGED] if scenario.changes() else [])]
    if plot.x and column_of_axis(plot.x) not in columns:
        raise ConfigError(
            f"plot.x: '{plot.x}' is no axis of the sweep, and bars of where the time goes have one each; "
            f"{nearest(plot.x, columns) if columns else 'remove it'}"
        )


def _check_plot(scenario: Scenario, points: Sequence[Point], written: Scenario | None) -> None:
    # Before anything runs: nobody wants to learn of a typo in the figure after an hour.
    plot, point = scenario.plot, points[0]
    if plot is None:
        return
    if plot.stack:
        _check_stack(plot, scenario, points)
    if not plot.x and scenario.changes():
        for key in ("color", "line", "facet", "overlay", "mark"):
            if getattr(plot, key):
                raise ConfigError(
                    f"plot.{key}: the figure of changes made one at a time has none; remove it, or name plot.x "
                    "to draw another figure"
                )
    kind = find_kind(scenario.kind)
    metrics = scenario.metrics or [metric.name for metric in kind.metric_list(point.parameters)]
    known = [*point.columns, *metrics]
    named = {key: getattr(plot, key) for key in ("x", "y", "color", "line", "facet", "along")}
    for number, overlay in enumerate(plot.overlay, start=1):
        named |= {f"overlay.{number}.where.{column}": column for column in overlay.where}
    named |= {f"front.{number}": column for number, column in enumerate(plot.front, start=1)}
    for key, name in named.items():
        if name and column_of_axis(name) not in known:
            raise ConfigError(f"plot.{key}: unknown column '{name}'; {nearest(name, known)}")
    y = column_of_axis(plot.y)
    if any(isinstance(point.columns.get(y), str | bool) for point in points):
        raise ConfigError(f"plot.y: '{plot.y}' has no numbers; choose one of {', '.join(metrics)}")
    categories = isinstance(point.columns.get(column_of_axis(plot.x)), str | bool) or plot.style == "bars"
    if plot.mark and (not plot.x or categories):
        raise ConfigError("plot.mark: needs a horizontal axis of numbers; name its column with plot.x")
    if plot.log_x and categories:
        raise ConfigError("plot.log_x: needs a horizontal axis of numbers; choose another plot.x, or no bars")
    if plot.front and categories:
        raise ConfigError("plot.front: needs a horizontal axis of numbers; choose another plot.x, or no bars")
    _check_published(scenario, points, written)


def _check_published(scenario: Scenario, points: Sequence[Point], written: Scenario | None) -> None:
    problems = published(scenario, points).problems
    if problems and written is not None and written != scenario:
        try:
            own = published(written, _all_points(written)).problems
        except ConfigError:  # only the changes make it one that can be run
            own = {}
        problems = {key: own[key] for key in problems if key in own}
    if problems:
        raise next(iter(problems.values()))


def _platform(base: Any, setting: Mapping[str, Any], change: Change | None) -> Platform:
    name = setting.get("platform", base)
    namer = "platform"
    if "platform" in setting:
        namer = change.key if change and "platform" in change.settings else "sweep.platform"
    if not setting.keys() - {"platform"}:
        return _machine(namer, name)
    table: dict[str, Any] = copy.deepcopy(dict(name)) if isinstance(name, Mapping) else {"base": name}
    for axis, value in setting.items():
        if axis == BLOCK_DEVICE:
            table["block_device"] = value
        elif axis != "platform":
            section, parameter = axis.split(".", 1)[1].split(".", 1)
            table.setdefault(section, {})[parameter] = value
    try:
        return load_platform(table)
    except ConfigError as error:
        message = str(error)
    try:
        load_platform(name)
    except ConfigError as error:
        if str(error) == message:  # no axis has changed that
            raise ConfigError(_placed(namer, message)) from None
    raise ConfigError(_placed(change.key if change else f"sweep.{', '.join(setting)}", message, setting))


def _machine(where: str, platform: Any) -> Platform:
    try:
        return load_platform(platform)
    except ConfigError as error:
        raise ConfigError(_placed(where, str(error))) from None


def _placed(where: str, message: str, setting: Iterable[str] = ()) -> str:
    """Say in which place of the scenario a machine is wrong; the message may name one of its own."""
    key, _, rest = message.partition(": ")
    if key.split(".")[0] != "platform":
        return f"{where}: {message}"
    if where == "platform":
        return message
    if key in setting and where.startswith("sweep."):
        return f"sweep.{message}"
    if where == f"vary.{key}":
        return f"{where}: {rest}"
    if where.startswith(("sweep.", "vary.")):
        return f"{where}: {message[len('platform') :].lstrip('.: ')}"
    return f"{where}: {message}"


def _set(given: dict[str, Any], axis: str, value: Any, model: type[KindParameters]) -> None:
    parts = axis.split(".")
    if len(parts) == 1:
        given[axis] = value
        return
    # A member of a list, for example groups.2.threads: the scenario has checked that it exists.
    name, number, key = parts
    if name not in given:
        members = model.model_fields[name].get_default(call_default_factory=True)
        given[name] = [member.model_dump() for member in members]
    member = given[name][int(number) - 1]
    if isinstance(member, dict):  # anything else is refused when the parameters are validated
        member[key] = value


def _located(message: str, swept: Sequence[str], change: Change | None, model: type[KindParameters]) -> str:
    if change:  # without it the point can be run
        return f"{change.key}: {message}"
    key = message.partition(":")[0]
    if key in swept:
        return f"sweep.{message}"
    if key.split(".")[0] in model.model_fields:
        return f"parameters.{message}"
    return message


def _platform_column(axis: str, machine: Platform, given: Any) -> tuple[str, Scalar]:
    if axis == BLOCK_DEVICE:
        return axis, str(given)
    section, name = axis.split(".", 1)[1].split(".", 1)
    quantity = find_field(section, name).quantity
    value = machine.value(section, name)
    column = axis + SUFFIX[quantity]
    if quantity is Quantity.TIME:
        return column, value / 1_000
    return column, bool(value) if quantity is Quantity.FLAG else value
