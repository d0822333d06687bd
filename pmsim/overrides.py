"""Changes to a scenario from the command line or a call: ``--set key=value``."""

import copy
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from pmsim import arguments
from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.kinds import find_kind
from pmsim.messages import shown
from pmsim.plain import plain
from pmsim.scenario import Scenario

#: Tables of a scenario that only its file says.
_FILE_ALONE = ("plot", "variant")
_OWN_KEYS = (
    "name",
    "title",
    "description",
    "platform",
    "parameters",
    "sweep",
    "vary",
    "variant",
    "unchanged",
    "metrics",
    "seed",
    "seeds",
)


def with_overrides(
    scenario: Scenario,
    changes: Mapping[str, Any] | Iterable[str],
    *,
    seed: int | None = None,
    seeds: int | None = None,
) -> Scenario:
    """Return a scenario with changes.

    Parameters
    ----------
    scenario : Scenario
        What to change.
    changes : mapping or iterable of "key=value"
        A parameter (``threads=4``; a list makes it an axis, a single value replaces an axis), ``sweep.AXIS``,
        ``vary.AXIS``, ``platform`` and ``platform.SECTION.NAME`` likewise, or another key of the scenario.
    seed, seeds : int, optional
        Replace those of the scenario.

    Raises
    ------
    ConfigError : ``--set KEY: problem; remedy``.
    """
    pairs = (
        plain(arguments.table("set", changes))
        if isinstance(changes, Mapping)
        else _once(_parse(arguments.text("set", text)) for text in _listed(changes))
    )
    given = {name: value for name, value in (("seed", seed), ("seeds", seeds)) if value is not None}
    for name in given.keys() & pairs.keys():
        raise ConfigError(f"--set {name}: --{name} says it, too; leave one")
    table = scenario.model_dump(exclude_defaults=True)
    problems: dict[str, ConfigError] = {}
    for key, value in pairs.items():
        table = copy.deepcopy(table)
        try:
            _apply(table, key, value, scenario.kind)
        except ConfigError as error:
            raise ConfigError(f"--set {key}: {error}") from None
        try:
            Scenario(**table)
        except ConfigError as error:  # as of the first of two axes that are zipped, until the other one is set
            problems[key] = error
    if not pairs and not given:
        return scenario
    try:
        return Scenario(**table | given)
    except ConfigError as error:
        told = {str(problem): key for key, problem in reversed(problems.items())}
        if not told:
            raise
        key = told.get(str(error), next(iter(told.values())))
        raise ConfigError(f"--set {key}: {error}") from None


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return pairs as a table; of two for one key one would be left without a word."""
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise ConfigError(f"--set {key}: is given more than once; leave one, or a list for an axis")
        table[key] = value
    return table


def _listed(changes: Iterable[str]) -> list[str]:
    if isinstance(changes, str):
        return [changes]
    if not isinstance(changes, Iterable):
        raise ConfigError(
            f"set: {shown(changes)} is neither a table nor a list; give {{key: value}} or [key=value]"
        )
    return list(changes)


def _parse(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    key, value = key.strip(), value.strip()
    if not equals or not key:
        raise ConfigError(f"--set {shown(text)}: has no key and value; write --set key=value")
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        if value[:1] in ("[", "{", '"', "'") or not value or "\n" in value:
            raise ConfigError(
                f"--set {key}: {shown(value)} is not a TOML value; check brackets and quotes"
            ) from None
        return key, value  # bare text, for example operation=store+clwb or region_size=4 GiB


def _apply(table: dict[str, Any], key: str, value: Any, kind: str) -> None:
    model = find_kind(kind).parameter_model.model_fields
    head, _, rest = key.partition(".")
    if head == "parameters" and rest:
        key, head = rest, rest.partition(".")[0]
    elif head == "sweep" and rest:
        table.setdefault("sweep", {})[rest] = value
        if rest in table.get("parameters", {}):
            del table["parameters"][rest]
        return
    elif head == "vary" and rest:
        table.setdefault("vary", {})[rest] = value
        return
    if head in model:
        _set_parameter(table, key, value)
    elif head == "platform" and rest:
        _set_platform(table, rest, value)
    elif key == "platform" and isinstance(value, list):
        table.setdefault("sweep", {})["platform"] = value
    elif key in _OWN_KEYS:
        if key in ("parameters", "sweep", "vary") and not isinstance(value, dict):
            raise ConfigError(f"{shown(value)} is not a table; write {key}.NAME=value")
        table[key] = value
        if key == "platform":
            table.get("sweep", {}).pop("platform", None)
    elif head in _FILE_ALONE:
        raise ConfigError(f"is not set here; write [{head}] in the scenario file, or in a copy of it")
    else:
        raise ConfigError(f"unknown key; {nearest(key, [*model, *_OWN_KEYS])}")


def _set_parameter(table: dict[str, Any], key: str, value: Any) -> None:
    sweep = table.setdefault("sweep", {})
    if isinstance(value, list) and key != "groups":
        table.get("parameters", {}).pop(key, None)
        sweep[key] = value
        return
    if "." in key:
        # A member of a list, such as groups.2.threads: an axis with one value says the same.
        sweep[key] = value if isinstance(value, list) else [value]
        return
    sweep.pop(key, None)
    table.setdefault("parameters", {})[key] = value


def _set_platform(table: dict[str, Any], rest: str, value: Any) -> None:
    if isinstance(value, list):
        table.setdefault("sweep", {})[f"platform.{rest}"] = value
        return
    sweep = table.get("sweep", {})
    sweep.pop(f"platform.{rest}", None)
    machines = sweep.get("platform")
    if isinstance(machines, list) and (rest == "block_device" or "." in rest):
        # Machines of the sweep stand in for `platform`: an axis with one value changes each of them.
        sweep[f"platform.{rest}"] = [value] * (len(machines) if sweep.get("mode") == "zip" else 1)
        return
    base = table["platform"]
    platform: dict[str, Any] = dict(base) if isinstance(base, Mapping) else {"base": base}
    section, _, name = rest.partition(".")
    if not name:
        platform[section] = value
    else:
        known = platform.get(section, {})
        platform[section] = {**known, name: value} if isinstance(known, Mapping) else {name: value}
    table["platform"] = platform
