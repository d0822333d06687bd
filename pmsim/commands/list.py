"""``pmsim list``."""

import typing
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from rich.console import Console
from rich.text import Text

from pmsim import _native
from pmsim.crash import blocks
from pmsim.des.parts import PARTS, find_part
from pmsim.errors import ConfigError
from pmsim.kinds import KINDS, find_kind
from pmsim.kinds.base import Kind
from pmsim.kinds.counters import RUN_COUNTERS, engine_counters, machine_counters
from pmsim.kinds.types import KindParameters, quantity_of
from pmsim.profiles import load_block_device, load_platform, platform_names
from pmsim.scenario import Scenario
from pmsim.shipped import find_scenario, scenario_names
from pmsim.terminal import Column, output, print_table
from pmsim.units import Quantity, format_value


class What(StrEnum):
    """What can be listed."""

    PLATFORMS = "platforms"
    SCENARIOS = "scenarios"
    KINDS = "kinds"
    PARTS = "parts"
    ENGINES = "engines"
    BLOCKS = "blocks"
    COUNTERS = "counters"


_TITLE = Column("title", narrow="wrap")
_MEANING = Column("meaning", narrow="wrap")


def list_command(
    what: Annotated[
        What,
        typer.Argument(
            metavar="WHAT", help=f"One of {', '.join(What)}.", show_choices=False, show_default=False
        ),
    ],
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="With kinds: of one, its parameters and metrics; with parts: its parameters."
        ),
    ] = None,
) -> None:
    """List what pmsim has."""
    console = output()
    if name is not None and what not in (What.KINDS, What.PARTS):
        raise ConfigError(f"list {what}: takes no name; write pmsim list {what}, or pmsim list kinds KIND")
    if what is What.PLATFORMS:
        rows = [(name, load_platform(name).title) for name in platform_names()]
        print_table(console, ["platform", _TITLE], rows)
        console.print()
        devices = [(name, load_block_device(name).title) for name in platform_names("block-device")]
        print_table(console, ["block_device", _TITLE], devices)
        console.print('platform = { base = "NAME", block_device = "NAME" }', style="dim")
    elif what is What.SCENARIOS:
        scenarios = [Scenario.from_file(find_scenario(name)) for name in scenario_names()]
        named = zip(scenario_names(), scenarios, strict=True)
        print_table(
            console,
            ["scenario", "kind", _TITLE],
            [(name, scenario.kind, scenario.title) for name, scenario in named],
        )
    elif what is What.BLOCKS:
        columns: list[Column | str] = ["block", Column("points", right=True), _TITLE]
        print_table(
            console, columns, [(block.name, str(len(block.points)), block.title) for block in blocks().values()]
        )
        console.print("points: persistence points, each of which pmsim crash removes in turn", style="dim")
    elif what is What.ENGINES:
        engines = [(engine, home, title) for engine, (title, home) in _native.engines().items()]
        print_table(console, ["engine", "home", _TITLE], engines)
        console.print("home: the tier with room for all pages, into which the data have to fit", style="dim")
    elif what is What.COUNTERS:
        counters = [*RUN_COUNTERS.values(), *machine_counters().values(), *engine_counters().values()]
        print_table(
            console,
            ["counter", "unit", Column("meaning", narrow="wrap")],
            [(counter.name, counter.unit, counter.meaning) for counter in counters],
        )
        console.print('in a scenario: metrics = ["counter.NAME"]; counter.engine.*: kind oltp', style="dim")
        console.print(f"of results, not of a pmsim.des.Server: {', '.join(RUN_COUNTERS)}", style="dim")
    elif what is What.PARTS and name is None:
        parts = [(part, _first_line(model)) for part, model in PARTS.items()]
        print_table(console, ["part", _TITLE], parts)
        console.print("of a pmsim.des.Server; pmsim list parts PART: its parameters", style="dim")
    elif what is What.PARTS and name is not None:
        model = find_part("list parts", name)
        _print_parameters(console, model, f"{model.__name__}: {_first_line(model)}")
    elif name is None:
        print_table(console, ["kind", _TITLE], [(kind.name, kind.title) for kind in KINDS.values()])
        console.print("pmsim list kinds KIND: its parameters and metrics", style="dim")
    else:
        _describe(console, find_kind(name))


def _describe(console: Console, kind: Kind[Any]) -> None:
    _print_parameters(console, kind.parameter_model, f"{kind.name}: {kind.title}")
    console.print()
    metrics = {metric.name: metric for metric in [*kind.metric_list(kind.parameters({})), *kind.metrics]}
    print_table(
        console,
        ["metric", "unit", _MEANING],
        [(metric.name, metric.unit, metric.meaning) for metric in metrics.values()],
    )
    console.print("and counters: pmsim list counters", style="dim")


def _print_parameters(console: Console, model: type[KindParameters], title: str) -> None:
    rows = _with_headings(_parameters(model), model.sections)
    print_table(console, ["parameter", "default", Column("values", narrow="wrap"), _MEANING], rows, title)


def _first_line(model: type[KindParameters]) -> str:
    return (model.__doc__ or "").partition("\n")[0].replace("`", "")


def _with_headings(
    rows: Iterable[tuple[str, str, str, str]], sections: Mapping[str, str]
) -> Iterator[tuple[str | Text, str, str, str]]:
    for row in rows:
        if row[0] in sections:
            yield Text(f"-- {sections[row[0]]}", style="dim"), "", "", ""
        yield row


def _parameters(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str, str, str]]:
    """Yield name, default, possible values and meaning; of a list also those of its members."""
    for name, field in model.model_fields.items():
        quantity = quantity_of(model, name)
        default = field.get_default(call_default_factory=True)
        about = field.description or ""
        if isinstance(default, list):
            yield prefix + name, f"{len(default)} {name}", "list", about
            yield from _parameters(type(default[0]), f"{name}.N.")
        else:
            yield prefix + name, _shown(default, quantity), ", ".join(_values(field, quantity)), about


def _shown(default: object, quantity: Quantity | None) -> str:
    if default is PydanticUndefined:
        return ""
    if isinstance(default, bool):
        return str(default).lower()
    return format_value(default, quantity) if quantity and isinstance(default, int) else str(default)


def _values(field: FieldInfo, quantity: Quantity | None) -> list[str]:
    """List what may be written: the words of a choice, and what a number measures."""
    known = [str(quantity)] if quantity else []
    for part in [field.annotation, *typing.get_args(field.annotation)]:
        if typing.get_origin(part) is typing.Literal:
            known += [str(word) for word in typing.get_args(part)]
        elif part in (bool, float):
            known += ["true", "false"] if part is bool else ["number"]
    return list(dict.fromkeys(known))
