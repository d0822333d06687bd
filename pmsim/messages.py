"""From pydantic's error lists to one line that names the key, the problem and the remedy."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, get_origin

from pydantic import BaseModel, ValidationError

from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.units import Measures, format_value

_TYPES = {
    "int_type": ("an integer", "write a whole number without quotes"),
    "int_parsing": ("an integer", "write a whole number without quotes"),
    "float_type": ("a number", "write a number without quotes"),
    "float_parsing": ("a number", "write a number without quotes"),
    "string_type": ("text", "write it in quotes"),
    "bool_type": ("a flag", "write true or false"),
    "bool_parsing": ("a flag", "write true or false"),
    "list_type": ("a list", "write [a, b]"),
    "tuple_type": ("a list", "write [a, b]"),
    "dict_type": ("a table", "write {key = value}"),
    "model_type": ("a table", "write {key = value}"),
    "model_attributes_type": ("a table", "write {key = value}"),
}


#: What is wrong with a number, the remedy, and where pydantic keeps the bound.
_BOUNDS = {
    "greater_than_equal": ("too small", "at least", "ge"),
    "less_than_equal": ("too large", "at most", "le"),
    "greater_than": ("too small", "more than", "gt"),
    "less_than": ("too large", "less than", "lt"),
}
#: The rest of what the models ask for.
_OTHERS = {
    "finite_number": ("is not a finite number", "write one"),
    "int_from_float": ("is not a whole number", "write one"),
    "int_parsing_size": ("is too large", "choose a smaller number"),
    "string_too_short": ("is empty", "write a text"),
    "string_pattern_mismatch": ("has characters that it cannot have", "it must match {pattern}"),
    "too_short": ("has {actual_length} members", "give at least {min_length}"),
    "too_long": ("has {actual_length} members", "give at most {max_length}"),
    "invalid_key": ("is not text", "write the key in quotes"),
}


def config_error(error: ValidationError, model: type[BaseModel]) -> ConfigError:
    """Return the first problem of a pydantic error as a ConfigError of one line.

    Parameters
    ----------
    error : ValidationError
        What pydantic found.
    model : type of BaseModel
        The model that was validated, for the names that would have been valid.
    """
    problems = error.errors(include_url=False)
    # A misspelt key also leaves the right one missing: the misspelling is the problem.
    problem = min(problems, key=lambda each: each["type"] != "extra_forbidden")
    key = key_of(dict(problem))
    text = described(dict(problem), model)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return ConfigError(" ".join(f"{key}: {text}{more}".split()) if key else f"{text}{more}")


def unicode_error(values: Mapping[str, Any]) -> ConfigError:
    """Name the value that is no Unicode, as shells and file systems may give them; pydantic cannot tell."""
    odd = next((key for key, value in values.items() if _unencodable([key, value])), "a value")
    return ConfigError(f"{odd}: text that is not Unicode; correct its bytes")


def _unencodable(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(_unencodable([*pair]) for pair in value.items())
    if isinstance(value, list):
        return any(map(_unencodable, value))
    return isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value)


#: What `pmsim list` has for a key.
_LISTED = {"kind": "kinds", "platform": "platforms"}


#: What stands in a place of pydantic's where a key may have values of several types.
_ALTERNATIVES = re.compile(r"(bool|int|float|str)|\w+\[.*\]", re.ASCII)


def key_of(problem: Mapping[str, Any], depth: int = 0) -> str:
    """Return the dotted key of one of pydantic's problems, from a depth on; members of a list count from 1."""
    place = problem["loc"][depth:-2] if _of_key(problem) else problem["loc"][depth:]
    parts = [str(part + 1) if isinstance(part, int) else part for part in place]
    own = len(parts) if problem["type"] == "extra_forbidden" else 0  # the last is a word of the user's
    return ".".join(
        part for number, part in enumerate(parts, start=1) if number == own or not _ALTERNATIVES.fullmatch(part)
    )


def _of_key(problem: Mapping[str, Any]) -> bool:
    """Tell a problem with a key of a table, which pydantic places there, from one with its value."""
    return bool(problem["type"] != "extra_forbidden" and problem["loc"][-1:] == ("[key]",))


def described(problem: Mapping[str, Any], model: type[BaseModel]) -> str:
    """Say what one of pydantic's problems with a model is, and the remedy, without its place."""
    text = _describe(problem, _model_at(model, problem["loc"][:-1]))
    return text if ";" in text or "?" in text else f"{text}; correct it"


def _describe(problem: Mapping[str, Any], model: type[BaseModel] | None) -> str:
    kind, given = str(problem["type"]), problem["input"]
    context = problem.get("ctx", {})
    if kind == "extra_forbidden":
        return f"unknown key; {nearest(str(problem['loc'][-1]), _names(model))}"
    if kind == "missing":
        listed = _LISTED.get(str(problem["loc"][-1]))
        return f"missing; add it, for example one of `pmsim list {listed}`" if listed else "missing; add it"
    if kind == "value_error" and isinstance(context.get("error"), Exception):
        return str(context["error"])
    if kind == "literal_error":
        expected = [part.strip("'") for part in str(context["expected"]).replace(" or ", ", ").split(", ")]
        hint = nearest(given, expected) if isinstance(given, str) else ""
        remedy = hint if hint.endswith("?") else "choose one of them"  # without a near one it lists all again
        return f"{shown(given)} is not one of {', '.join(expected)}; {remedy}"
    if kind in _BOUNDS:
        verdict, choose, bound = _BOUNDS[kind]
        written = _writer(model, problem["loc"][-1:])
        return f"{written(given)} is {verdict}; choose {choose} {written(context[bound])}"
    if kind in _TYPES:
        noun, remedy = _TYPES[kind]
        what = "the key " if _of_key(problem) else ""
        return f"{what}{shown(given)} is not {noun}; {remedy}"
    if kind in _OTHERS:
        verdict, remedy = (text.format(**context) for text in _OTHERS[kind])
        return f"{shown(given)} {verdict}; {remedy}"
    return f"{shown(given)} is nothing that can stand here; correct it"


def _writer(model: type[BaseModel] | None, place: Sequence[int | str]) -> Callable[[Any], str]:
    """Return how a number of a parameter is written: as many base units hardly anybody would write it."""
    info = model.model_fields.get(str(*place)) if model is not None else None
    measured = [item.quantity for item in (info.metadata if info else []) if isinstance(item, Measures)]
    return partial(format_value, quantity=measured[0]) if measured else shown


def shown(value: object) -> str:
    """Return a value as a TOML user would have written it, cut to a readable length."""
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, str):
        text = f"'{value}'"
    else:
        text = repr(value)
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."


def _names(model: type[BaseModel] | None) -> list[str]:
    if model is None:
        return []
    return [info.alias or name for name, info in model.model_fields.items()]


def _model_at(model: type[BaseModel], location: Sequence[int | str]) -> type[BaseModel] | None:
    current: type[BaseModel] | None = model
    named = False  # the part is a key of a table of models, such as [series.NAME]
    for part in location:
        if current is None or isinstance(part, int) or named:
            named = False
            continue
        info = current.model_fields.get(part)
        named = info is not None and get_origin(info.annotation) is dict
        current = None if info is None else _model_in(info.annotation)
    return current


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        if (found := _model_in(argument)) is not None:
            return found
    return None
