"""Scenarios: one question each, as a TOML file or as an object with the same names."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pmsim import arguments
from pmsim.errors import ConfigError
from pmsim.file_names import BLOCK_DEVICE, Move, with_files
from pmsim.hints import nearest
from pmsim.kinds import find_kind
from pmsim.kinds.types import quantity_of
from pmsim.messages import config_error, shown, unicode_error
from pmsim.plain import plain
from pmsim.platforms import Platform, find_field
from pmsim.plot_spec import Plot
from pmsim.relative import from_folder, from_here
from pmsim.sweep import axes_of, flatten
from pmsim.toml_file import parse_toml, read_text
from pmsim.units import Quantity
from pmsim.variations import AS_IT_IS, Change, Variant, changes_of

_NAME_CHARACTERS = r"[A-Za-z0-9][A-Za-z0-9._ -]*"
#: File systems have folders of 255 letters, some of fewer.
_LONGEST_NAME = 120


class Scenario(BaseModel):
    """A question: a kind of experiment, a platform, parameters, and what to sweep.

    Attributes
    ----------
    kind : str
        One of ``pmsim list kinds``.
    platform : str or dict
        The name of a profile, or ``{"base": NAME, SECTION: {NAME: value}}``.
    name, title, description : str
        For people; the name also names the output folder.
    parameters : dict
        Of the kind; what is not given takes the kind's documented default.
    sweep : dict
        Axis to list or range ``{from, to, steps, scale}``; an axis is a parameter, ``platform``, or
        ``platform.SECTION.NAME``. ``mode`` = "cross" (default) or "zip".
    vary : dict
        Axis to list or range, as in ``sweep``: changes made one at a time, at every point of the sweep.
    variant : list of Variant
        Changes of several parameters together, each with a label; made one at a time like those of ``vary``.
    unchanged : str
        What tables and figures call a point that nothing has changed.
    metrics : list of str
        Columns of the result; empty: all of the kind. ``counter.NAME`` adds a counter.
    plot : Plot, optional
        Axes, curves, and published values to lay over them.
    seed : int
        All randomness follows from it.
    seeds : int
        Of every point, from `seed` on: with more than one its metrics are means, with intervals over the seeds.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    kind: str
    name: str = Field("", description="for people and output folders; by default the kind")
    title: str = ""
    description: str = ""
    platform: Any
    parameters: dict[str, Any] = Field(default_factory=dict)
    sweep: dict[str, Any] = Field(default_factory=dict)
    vary: dict[str, Any] = Field(default_factory=dict)
    variant: list[Variant] = Field(default_factory=list)
    unchanged: str = Field(AS_IT_IS, min_length=1)
    metrics: list[str] = Field(default_factory=list)
    plot: Plot | None = None
    seed: int = Field(0, ge=0, lt=2**63)
    seeds: int = Field(1, ge=1, le=10_000)

    def __init__(self, **values: Any) -> None:
        try:
            values = plain(values)
            _refuse_machines(values)
            super().__init__(**values)
        except ValidationError as error:
            raise config_error(error, type(self)) from None
        except UnicodeEncodeError:
            raise unicode_error(values) from None

    @model_validator(mode="before")
    @classmethod
    def _flat_axes(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        tables = {key: values[key] for key in ("sweep", "vary") if isinstance(values.get(key), Mapping)}
        flat = values | {key: flatten(table, of=key) for key, table in tables.items()}
        swept = flat["sweep"].get("platform") if "sweep" in tables else None
        if "platform" not in flat and isinstance(swept, list) and swept and isinstance(swept[0], str | Mapping):
            flat["platform"] = swept[0]  # each point replaces it
        return flat

    @model_validator(mode="after")
    def _check(self) -> "Scenario":
        if isinstance(self.platform, list):
            raise ConfigError(
                "platform: several machines are an axis; write sweep.platform = [...], and one of them here"
            )
        if not isinstance(self.platform, str | dict):
            raise ConfigError(
                f'platform: {shown(self.platform)} is neither a name nor a table; write platform = "NAME" or '
                'platform = {base = "NAME", SECTION = {NAME = value}}'
            )
        if self.name and not re.fullmatch(_NAME_CHARACTERS, self.name):
            raise ConfigError(
                f"name: {shown(self.name)} cannot name a folder; use a to z, A to Z, digits, blanks, '-', '_' "
                "and '.', a letter or digit first; `title` may be any text"
            )
        if len(self.name) > _LONGEST_NAME:
            raise ConfigError(
                f"name: {shown(self.name)} has {len(self.name)} letters, too many for a folder; choose at most "
                f"{_LONGEST_NAME}; `title` may be any text"
            )
        kind = find_kind(self.kind)
        known = kind.parameter_model.model_fields
        for key in self.parameters:
            if key not in known:
                raise ConfigError(
                    f"parameters.{key}: unknown parameter of kind '{self.kind}'; {nearest(key, known)}"
                )
        for metric in self.metrics:
            if self.metrics.count(metric) > 1:
                raise ConfigError(f"metrics: holds {shown(metric)} twice; remove one")
        axes, _ = axes_of(self.sweep, self.quantity_of)
        for axis in axes:
            if axis in self.parameters:
                raise ConfigError(f"sweep.{axis}: is also set in parameters; remove one of the two")
        for change in self.changes():
            for axis in change.settings:
                if axis in axes:
                    raise ConfigError(
                        f"{change.key}: {axis} is also an axis of the sweep; remove one of the two"
                    )
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other values, which are checked as those of a new scenario."""
        if not update:
            return super().model_copy(deep=deep)
        return type(self)(**{name: getattr(self, name) for name in self.model_fields_set} | dict(update))

    def axes(self) -> tuple[dict[str, list[Any]], str]:
        """Return the expanded axes of the sweep and how they combine."""
        return axes_of(self.sweep, self.quantity_of)

    def changes(self) -> list[Change]:
        """Return what ``vary`` and the variants change, one at a time, in the order of the file."""
        return changes_of(self.vary, self.variant, self.quantity_of, self.unchanged)

    def quantity_of(self, axis: str) -> Quantity | None:
        """Return what an axis measures, or refuse an unknown axis."""
        model: Any = find_kind(self.kind).parameter_model
        parts = axis.split(".")
        if parts[0] == "platform" and "platform" not in model.model_fields:
            if len(parts) == 1 or axis == BLOCK_DEVICE:
                return None
            section, name = parts[1], ".".join(parts[2:])
            return find_field(section, name or None).quantity
        if parts[0] not in model.model_fields:
            raise ConfigError(
                f"unknown axis of kind '{self.kind}'; {nearest(axis, [*model.model_fields, 'platform'])}"
            )
        if len(parts) == 1:
            return quantity_of(model, parts[0])
        return _member_quantity(model, parts, self.parameters)

    @classmethod
    def from_toml(cls, text: str, origin: str = "scenario") -> "Scenario":
        """Return the scenario that a TOML text describes; ``origin`` names it in messages.

        Raises
        ------
        ConfigError : ``ORIGIN: KEY: problem; remedy``.
        """
        text = arguments.text("text", text)
        if "\n" not in text and text.strip().endswith(".toml"):
            raise ConfigError(
                f"text: {shown(text)} looks like the path of a file, and this takes its text; use "
                "Scenario.from_file(path), or pmsim.run(path)"
            )
        table = parse_toml(text, origin)
        try:
            return cls(**table)
        except ConfigError as error:
            raise error.prefixed(origin) from None
        except TypeError:
            raise ConfigError(f"{origin}: keys: a key is not usable; correct the file") from None

    @classmethod
    def from_file(cls, path: str | Path) -> "Scenario":
        """Return the scenario of a file. Relative paths in it are meant from its folder."""
        file = arguments.path("path", path)
        scenario = cls.from_toml(read_text(file), str(path))
        try:
            return scenario._with_files(lambda named: from_here(file.parent, named))
        except ConfigError as error:
            raise error.prefixed(str(path)) from None

    def written_to(self, folder: Path) -> Self:
        """Return this scenario as a file of that folder says it: with relative paths from there."""
        return self._with_files(lambda named: from_folder(folder, named))

    def _with_files(self, move: Move) -> Self:
        table = self.model_dump(exclude_defaults=True)
        moved = with_files(table, find_kind(self.kind).parameter_model, move)
        return self if moved == table else type(self)(**moved)

    def to_toml(self) -> str:
        """Return the TOML text of this scenario; what has its default is left out."""
        table = self.model_dump(exclude_defaults=True)
        return tomli_w.dumps({"kind": self.kind, **table})


def _refuse_machines(value: Any, key: str = "") -> None:
    """Refuse objects in the place of what a file says, which `save` could not write."""
    if isinstance(value, Platform) and key != "platform":
        raise ConfigError(
            f"{key}: a Platform object ('{value.name}') has no place here; give its name, or a table like "
            "{base = ..., SECTION = {NAME = value}}"
        )
    items = (
        value.items() if isinstance(value, Mapping) else enumerate(value, 1) if isinstance(value, list) else ()
    )
    for name, item in items:
        _refuse_machines(item, f"{key}.{name}".lstrip("."))


def _member_quantity(model: Any, parts: list[str], parameters: Mapping[str, Any]) -> Quantity | None:
    """Return what an axis like ``groups.2.threads`` measures; members of lists are counted from 1."""
    field = model.model_fields[parts[0]]
    members = [argument for argument in getattr(field.annotation, "__args__", ()) if isinstance(argument, type)]
    if len(parts) != 3 or not members or not issubclass(members[0], BaseModel):
        raise ConfigError(f"unknown axis; did you mean '{parts[0]}'?")
    given = parameters.get(parts[0], field.get_default(call_default_factory=True))
    count = len(given) if isinstance(given, list) else 0
    if not parts[1].isdecimal() or not 1 <= int(parts[1]) <= count:
        raise ConfigError(f"there is no {parts[0]}.{parts[1]}; choose {parts[0]}.1 to {parts[0]}.{count}")
    if parts[2] not in members[0].model_fields:
        raise ConfigError(f"unknown key '{parts[2]}'; {nearest(parts[2], members[0].model_fields)}")
    return quantity_of(members[0], parts[2])
