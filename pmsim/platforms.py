"""Platforms: every parameter of a machine, with its value, source and origin."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from pmsim import _native
from pmsim.errors import ConfigError
from pmsim.fields import Field, fields
from pmsim.hints import nearest
from pmsim.units import format_value, parse

ORIGINS = ("datasheet", "paper", "measured", "fitted", "assumed")
#: Origin of a value that a scenario, a kind's parameter or a caller has set.
SCENARIO_ORIGIN = "scenario"
#: What the tier "pmem" of a machine may be when the power fails; the second is a CXL expander of DRAM.
PERSISTENCE = DURABLE, VOLATILE = ("durable", "volatile")


@dataclass(frozen=True)
class Parameter:
    """A value in base units, where it comes from, and on what kind of evidence."""

    value: int
    source: str
    origin: str


@dataclass(frozen=True)
class Row:
    """A line of the table that ``pmsim platform show`` prints."""

    section: str
    name: str
    value: str
    range: str
    meaning: str
    source: str
    origin: str


@dataclass(frozen=True)
class Platform:
    """A machine; immutable, complete, and checked by the native core.

    Attributes
    ----------
    name, title, kind, latency_definition, notes : str
        As in the profile.
    parameters : mapping
        Section to name to Parameter; complete: every field of the native table is there.
    pmem_priced_as : str
        The tier whose price the modules of the tier "pmem" have: "dram" of an expander, which is made of it.
    pmem_persistence : str
        Whether the tier "pmem" keeps its contents without power, of `PERSISTENCE`.
    """

    name: str
    title: str
    kind: str
    latency_definition: str
    notes: str
    parameters: Mapping[str, Mapping[str, Parameter]]
    pmem_priced_as: str = "pmem"
    pmem_persistence: str = DURABLE

    def __post_init__(self) -> None:
        frozen = {section: MappingProxyType(dict(values)) for section, values in self.parameters.items()}
        object.__setattr__(self, "parameters", MappingProxyType(frozen))

    def __reduce__(self) -> tuple[object, ...]:
        plain = {section: dict(values) for section, values in self.parameters.items()}
        texts = (self.name, self.title, self.kind, self.latency_definition, self.notes)
        return Platform, (*texts, plain, self.pmem_priced_as, self.pmem_persistence)

    def native(self) -> dict[str, dict[str, int]]:
        """Return what the native core wants: section to name to value in base units."""
        return {
            section: {name: self.parameters[section][name].value for name in names}
            for section, names in fields().items()
        }

    def value(self, section: str, name: str) -> int:
        """Return one value in base units."""
        return self.parameters[section][name].value

    @cached_property
    def hash(self) -> str:
        """SHA-256 over the canonical JSON of the native values: equal machines have equal hashes."""
        text = json.dumps(self.native(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def rows(self) -> list[Row]:
        """Return the table of parameters, in the order of the native table."""
        return rows_of(self.parameters)

    def with_values(self, values: Mapping[str, Mapping[str, int]], *, source: str) -> "Platform":
        """Return this machine with some values, in base units, replaced.

        Parameters
        ----------
        values : mapping
            Section to name to value in base units.
        source : str
            Who asked for it; becomes the source of the new values.

        Raises
        ------
        ConfigError : unknown parameter, or a machine that cannot be.
        """
        parameters = {section: dict(known) for section, known in self.parameters.items()}
        for section, changes in values.items():
            for name, value in changes.items():
                field = find_field(section, name)
                check_range(field, value)
                parameters[section][name] = Parameter(value, source, SCENARIO_ORIGIN)
        changed = replace(self, parameters=parameters)
        changed.check()
        return changed

    def check(self) -> None:
        """Let the native core check the rules between parameters.

        Raises
        ------
        ConfigError : a machine that cannot be.
        """
        try:
            _native.validate_platform(self.native())
        except ConfigError as error:
            raise ConfigError(f"platform '{self.name}': {error}") from None


@dataclass(frozen=True)
class BlockDevice:
    """An SSD or disk: a profile of one section, which a machine names as its ``block_device``."""

    name: str
    title: str
    latency_definition: str
    notes: str
    parameters: Mapping[str, Parameter]

    def rows(self) -> list[Row]:
        """Return the table of parameters, in the order of the native table."""
        return rows_of({"block": self.parameters})


def rows_of(parameters: Mapping[str, Mapping[str, Parameter]]) -> list[Row]:
    """Return the table of the parameters of some sections, in the order of the native table."""
    return [
        Row(
            section,
            name,
            format_value(parameters[section][name].value, field.quantity),
            field.range,
            field.meaning,
            parameters[section][name].source,
            parameters[section][name].origin,
        )
        for section, names in fields().items()
        if section in parameters
        for name, field in names.items()
    ]


def find_field(section: str, name: str | None) -> Field:
    """Return the field of a section and name, or raise a ConfigError with the nearest names."""
    table = fields()
    if section not in table:
        raise ConfigError(f"{section}: unknown section of a platform; {nearest(section, table)}")
    if name is None:
        raise ConfigError(f"{section}: is a section of parameters; write {section} = {{NAME = value}}")
    if name not in table[section]:
        raise ConfigError(f"{section}.{name}: unknown parameter; {nearest(name, table[section])}")
    return table[section][name]


def check_range(field: Field, value: int) -> None:
    """Check one value in base units against the range of its field."""
    if not field.minimum <= value <= field.maximum:
        shown = format_value(value, field.quantity) if value >= 0 else str(value)
        raise ConfigError(f"{field.key}: {shown} is out of range; choose {field.range}")


def parse_field(section: str, name: str, value: object) -> int:
    """Parse one value of a platform parameter, with its unit, and check its range."""
    field = find_field(section, name)
    try:
        number = parse(value, field.quantity)
    except ConfigError as error:
        raise ConfigError(f"{field.key}: {error}") from None
    check_range(field, number)
    return number
