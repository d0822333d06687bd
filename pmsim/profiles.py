"""Platform profiles: TOML files, inheritance, block devices, and platforms derived in a scenario."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from pmsim.capacity import TIERS
from pmsim.errors import ConfigError
from pmsim.fields import fields
from pmsim.hints import nearest
from pmsim.messages import shown
from pmsim.plain import plain
from pmsim.platforms import ORIGINS, PERSISTENCE, BlockDevice, Parameter, Platform, find_field, parse_field
from pmsim.relative import from_here
from pmsim.toml_file import read_toml

_FOLDER = Path(__file__).parent / "data" / "platforms"
_TEXTS = ("name", "title", "kind", "latency_definition", "notes")
#: Texts that are written only where they are not the usual one, and what they may be.
_CHOICES = {"pmem_priced_as": TIERS, "pmem_persistence": PERSISTENCE}
_REFERENCES = ("base", "block_device")
_MACHINE = "machine"
_BLOCK_DEVICE = "block-device"
#: Value of ``block_device`` for a machine without one; also what a profile gets that does not say.
NO_BLOCK_DEVICE = "none"
#: How the notes of a profile begin that pmsim has written.
CALIBRATED = "Written by pmsim calibrate"

_Parameters = dict[str, dict[str, Parameter]]


@dataclass(frozen=True)
class _Profile:
    texts: dict[str, str]
    block_device: str | None = None
    parameters: _Parameters = field(default_factory=dict)


def load_platform(name_or_mapping: "str | Path | Mapping[str, Any] | Platform") -> Platform:
    """Return a platform.

    Parameters
    ----------
    name_or_mapping : str, Path, mapping or Platform
        The name of a profile, the path of a TOML file of one's own, or a derived platform such as
        ``{"base": "tum-6212u", "pmem": {"media_read_latency": "300 ns"}}``.

    Returns
    -------
    Platform : complete and checked.

    Raises
    ------
    ConfigError : unknown name or parameter, a value without its unit, or a machine that cannot be.
    """
    if isinstance(name_or_mapping, Platform):
        return name_or_mapping
    name_or_mapping = plain(name_or_mapping)
    if isinstance(name_or_mapping, str):
        return _named(name_or_mapping)
    if isinstance(name_or_mapping, Mapping):
        return _derived(name_or_mapping)
    raise ConfigError(
        f'platform: {shown(name_or_mapping)} is neither a name nor a table; write platform = "NAME" or '
        'platform = {base = "NAME", SECTION = {NAME = value}}'
    )


def load_block_device(name: str) -> BlockDevice:
    """Return the profile of an SSD or disk.

    Parameters
    ----------
    name : str
        As `platform_names` gives it for "block-device", or the path of a TOML file of one's own.

    Raises
    ------
    ConfigError : unknown name, not a block device, or one whose profile is not complete.
    """
    # A file of the user's own may change between two calls.
    return _block_device(name, Path(name)) if is_profile_file(name) else _shipped_block_device(name)


def is_profile_file(name: str) -> bool:
    """Whether this is the path of a profile of one's own, not the name of one that comes with pmsim."""
    return name.endswith(".toml")


@cache
def _shipped_block_device(name: str) -> BlockDevice:
    return _block_device(name, _shipped_path(name, platform_names(_BLOCK_DEVICE)))


def _block_device(name: str, path: Path) -> BlockDevice:
    profile = _resolve(path, ())
    texts = {"latency_definition": "", **profile.texts}
    if texts.pop("kind") != _BLOCK_DEVICE:
        known = ", ".join(platform_names(_BLOCK_DEVICE))
        raise ConfigError(f"{name}: is not a block device; choose one of {known}")
    section = profile.parameters.get("block", {})
    missing = [parameter for parameter in fields()["block"] if parameter not in section]
    if missing:
        raise ConfigError(f"{path}: block.{missing[0]}: missing; give it a value, source and origin")
    return BlockDevice(**texts, parameters=section)


def load_profile(name: str) -> Platform | BlockDevice:
    """Return a machine or a block device, whichever has this name or is in this TOML file."""
    if name in platform_names(_BLOCK_DEVICE):
        return load_block_device(name)
    if is_profile_file(name) and _resolve(Path(name), ()).texts["kind"] == _BLOCK_DEVICE:
        return load_block_device(name)
    if not is_profile_file(name):
        _shipped_path(name, list(_kinds_in(_FOLDER)))
    return load_platform(name)


def platform_names(kind: str = _MACHINE) -> list[str]:
    """Return the names of the shipped profiles of a kind, "machine" or "block-device", sorted.

    Raises
    ------
    ConfigError : another kind.
    """
    if kind not in (known := (_MACHINE, _BLOCK_DEVICE)):
        raise ConfigError(f"kind: {shown(kind)} is no kind of platform; {nearest(kind, known)}")
    return [name for name, its_kind in _kinds_in(_FOLDER).items() if its_kind == kind]


@cache
def _kinds_in(folder: Path) -> dict[str, str]:
    """Return the kind of each profile, by name."""
    tables = {path.stem: _read(path) for path in sorted(folder.glob("*.toml"))}
    return {name: _kind_of(name, tables) for name in tables}


def _kind_of(name: str, tables: Mapping[str, Mapping[str, Any]]) -> str:
    # Its base says it where a profile lists only what differs. What is wrong with one is told when it is used.
    seen = set[str]()
    while name in tables and name not in seen:
        seen.add(name)
        if "kind" in tables[name]:
            return str(tables[name]["kind"])
        name = str(tables[name].get("base", ""))
    return _MACHINE


def _named(name: str) -> Platform:
    if is_profile_file(name):
        # A file of the user's own may change between two calls.
        return _build(Path(name))
    return _shipped(name)


@cache
def _shipped(name: str) -> Platform:
    return _build(_shipped_path(name, platform_names()))


def _build(path: Path) -> Platform:
    profile = _resolve(path, ())
    kind = profile.texts["kind"]
    if kind != _MACHINE:
        origin = "platform" if path.parent == _FOLDER else path
        raise ConfigError(
            f"{origin}: '{profile.texts['name']}' is a {kind}, not a machine; use it as "
            f"block_device, or choose a machine: {', '.join(platform_names())}"
        )
    platform = Platform(**profile.texts, parameters=_complete(profile, path))
    try:
        platform.check()
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    return platform


def _derived(mapping: Mapping[str, Any]) -> Platform:
    if "base" not in mapping:
        raise ConfigError('platform: a derived platform needs a base; write platform = {base = "NAME", ...}')
    base = mapping["base"]
    if not isinstance(base, str):
        raise ConfigError(f"platform.base: {shown(base)} is not a name; write the name of a profile in quotes")
    platform = _named(base)
    block_device = mapping.get("block_device")
    if block_device is not None:
        parameters = {section: dict(values) for section, values in platform.parameters.items()}
        parameters["block"] = _block_section(block_device, "platform.block_device")
        platform = replace(platform, parameters=parameters)
    values: dict[str, dict[str, int]] = {}
    for section, changes in mapping.items():
        if section in _REFERENCES:
            continue
        if section == "name":
            platform = replace(platform, name=_text(changes, "platform.name"))
            continue
        if section in _CHOICES:
            chosen: Any = {section: _choice(changes, section, f"platform.{section}")}
            platform = replace(platform, **chosen)
            continue
        if section not in fields() or not isinstance(changes, Mapping):
            _refuse_section(section)
        for name, value in changes.items():
            try:
                values.setdefault(section, {})[name] = parse_field(section, name, value)
            except ConfigError as error:
                raise ConfigError(f"platform.{error}") from None
    if not values:
        return platform
    try:
        return platform.with_values(values, source="set in the scenario")
    except ConfigError as error:
        raise ConfigError(f"platform: {error}") from None


def _refuse_section(section: str) -> None:
    if section in fields():
        raise ConfigError(f"platform.{section}: is a section of parameters; write {section} = {{NAME = value}}")
    known = [*fields(), "name", *_CHOICES, *_REFERENCES]
    raise ConfigError(f"platform.{section}: unknown key; {nearest(section, known)}")


def _shipped_path(name: str, known: Sequence[str]) -> Path:
    # Only what may stand here is offered: a drive as a platform would be refused next.
    if name not in _kinds_in(_FOLDER):
        raise ConfigError(f"platform: {_unknown('platform', name, known)}")
    return _FOLDER / f"{name}.toml"


def _unknown(what: str, name: str, known: Sequence[str], folder: Path = Path()) -> str:
    own = f"{name}.toml"
    if os.path.isfile(folder / own):
        return f"unknown {what} '{name}'; {nearest(name, [own])}"
    return f"unknown {what} '{name}'; {nearest(name, known)}; or give the path of a TOML file"


def _inherited(table: Mapping[str, Any], path: Path, children: tuple[Path, ...]) -> _Profile:
    base = _text(table["base"], f"{path}: base")
    if is_profile_file(base):
        try:
            return _resolve(Path(from_here(path.parent, base)), (*children, path))
        except ConfigError as error:
            raise error.prefixed(f"{path}: base") from None
    if base not in _kinds_in(_FOLDER):
        # Where the file does not say what it is, its sections do: a drive has one.
        sections = fields().keys() & table.keys()
        kind = table.get("kind", _BLOCK_DEVICE if sections == {"block"} else _MACHINE)
        known = platform_names(_BLOCK_DEVICE if kind == _BLOCK_DEVICE else _MACHINE)
        raise ConfigError(f"{path}: base: {_unknown('platform', base, known, path.parent)}")
    return _resolve(_FOLDER / f"{base}.toml", (*children, path))


def _resolve(path: Path, children: tuple[Path, ...]) -> _Profile:
    if path in children:
        raise ConfigError(f"{path}: base: the profile is its own ancestor; remove one of the base keys")
    table = _read(path)
    known = [*_TEXTS, *_CHOICES, *_REFERENCES, *fields()]
    for key in table:
        if key not in known:
            raise ConfigError(f"{path}: {key}: unknown key; {nearest(key, known)}")
    inherited = _Profile(texts={"notes": ""})
    if "base" in table:
        inherited = _inherited(table, path, children)
    texts = dict(inherited.texts)
    if "base" in table:
        # With its base's name the two could not stand in one sweep, nor be told apart in any other table.
        texts["name"] = path.stem
        texts["title"] = f"{texts['title']}, changed by {path.name}"
    for key in _TEXTS:
        if key in table:
            texts[key] = _text(table[key], f"{path}: {key}")
        elif key not in texts and not (key == "latency_definition" and table.get("kind") == _BLOCK_DEVICE):
            raise ConfigError(f'{path}: {key}: missing; add {key} = "..."')
    if texts["kind"] not in (kinds := (_MACHINE, _BLOCK_DEVICE)):
        raise ConfigError(f"{path}: kind: unknown kind {shown(texts['kind'])}; {nearest(texts['kind'], kinds)}")
    of_machines = {*_CHOICES, *_REFERENCES, *fields()} - {"base", "block"}
    for key in table:
        if texts["kind"] == _BLOCK_DEVICE and key in of_machines:
            raise ConfigError(
                f"{path}: {key}: is of machines; remove it from a block-device, or choose a machine as its base"
            )
    for key in _CHOICES.keys() & table.keys():
        texts[key] = _choice(table[key], key, f"{path}: {key}")
    parameters: _Parameters = {section: dict(values) for section, values in inherited.parameters.items()}
    if "block_device" in table:
        parameters.pop("block", None)
    for section, names in table.items():
        if section not in fields():
            continue
        if not isinstance(names, dict):
            raise ConfigError(
                f"{path}: {section}: is not a table; write [{section}] and one parameter per line"
            )
        for name, entry in names.items():
            parameters.setdefault(section, {})[name] = _entry(path, section, name, entry)
    block_device = inherited.block_device
    if "block_device" in table:
        block_device = _text(table["block_device"], f"{path}: block_device")
        if is_profile_file(block_device):
            block_device = from_here(path.parent, block_device)
    return _Profile(texts, block_device, parameters)


def _entry(path: Path, section: str, name: str, entry: object) -> Parameter:
    key = f"{path}: {section}.{name}"
    try:
        find_field(section, name)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    form = '{ value = ..., source = "...", origin = "..." }'
    if not isinstance(entry, dict):
        raise ConfigError(f"{key}: has no source and origin; write {name} = {form}")
    for part in entry:
        if part not in ("value", "source", "origin"):
            raise ConfigError(f"{key}.{part}: unknown key; {nearest(part, ('value', 'source', 'origin'))}")
    for part in ("value", "source", "origin"):
        if part not in entry:
            raise ConfigError(f"{key}: {part} is missing; write {name} = {form}")
    source = _text(entry["source"], f"{key}.source")
    origin = _text(entry["origin"], f"{key}.origin")
    if origin not in ORIGINS:
        raise ConfigError(f"{key}.origin: unknown origin '{origin}'; {nearest(origin, ORIGINS)}")
    try:
        value = parse_field(section, name, entry["value"])
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    return Parameter(value, source, origin)


def _complete(profile: _Profile, path: Path) -> _Parameters:
    parameters = {section: dict(values) for section, values in profile.parameters.items()}
    device = _block_section(profile.block_device or NO_BLOCK_DEVICE, f"{path}: block_device")
    parameters["block"] = device | parameters.get("block", {})
    missing = [
        f"{section}.{name}"
        for section, names in fields().items()
        for name in names
        if name not in parameters.get(section, {})
    ]
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        if profile.texts["notes"].startswith(CALIBRATED):
            remedy = "an earlier version of pmsim calibrate has written the profile, run it again"
        else:
            remedy = "give it a value, source and origin, or a base"
        raise ConfigError(f"{path}: {missing[0]}: missing{more}; {remedy}")
    return parameters


def _block_section(name: object, key: str) -> dict[str, Parameter]:
    device = _text(name, key)
    if device == NO_BLOCK_DEVICE:
        return {
            name: Parameter(field.minimum, "the machine has no block device", "assumed")
            for name, field in fields()["block"].items()
        }
    names = [NO_BLOCK_DEVICE, *platform_names(_BLOCK_DEVICE)]
    if not is_profile_file(device) and device not in names:
        raise ConfigError(f"{key}: {_unknown('block device', device, names)}")
    try:
        return dict(load_block_device(device).parameters)
    except ConfigError as error:
        raise error.prefixed(key) from None


def _text(value: object, key: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{key}: {shown(value)} is not text; write it in quotes")
    if not value.strip() and not key.endswith("notes"):
        raise ConfigError(f"{key}: is empty; say what it is")
    return value


def _choice(value: object, key: str, where: str) -> str:
    text = _text(value, where)
    if text not in _CHOICES[key]:
        raise ConfigError(f"{where}: {shown(text)} is none of its values; {nearest(text, _CHOICES[key])}")
    return text


def _read(path: Path) -> dict[str, Any]:
    # A file of the user's own may change between two calls; the shipped ones do not.
    return _read_shipped(path) if path.parent == _FOLDER else read_toml(path)


@cache
def _read_shipped(path: Path) -> dict[str, Any]:
    return read_toml(path)


__all__ = [
    "CALIBRATED",
    "NO_BLOCK_DEVICE",
    "load_block_device",
    "load_platform",
    "load_profile",
    "platform_names",
]
