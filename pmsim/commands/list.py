"""``pmsim list``."""

from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from pmsim import _native
from pmsim.crash import blocks
from pmsim.kinds import KINDS
from pmsim.profiles import load_platform, platform_names
from pmsim.scenario import Scenario
from pmsim.shipped import find_scenario, scenario_names


class What(StrEnum):
    """What can be listed."""

    PLATFORMS = "platforms"
    SCENARIOS = "scenarios"
    KINDS = "kinds"
    ENGINES = "engines"
    BLOCKS = "blocks"


def list_command(what: Annotated[What, typer.Argument(help="What to list.")]) -> None:
    """List what pmsim has."""
    console = Console()
    if what is What.PLATFORMS:
        console.print(_platforms())
    elif what is What.SCENARIOS:
        console.print(_scenarios())
    elif what is What.KINDS:
        console.print(_kinds())
    elif what is What.BLOCKS:
        console.print(_blocks())
    else:
        console.print(_engines())


def _platforms() -> Table:
    table = Table("platform", "title")
    for name in platform_names():
        table.add_row(name, load_platform(name).title)
    return table


def _scenarios() -> Table:
    table = Table("scenario", "kind", "title")
    for name in scenario_names():
        scenario = Scenario.from_file(find_scenario(name))
        table.add_row(name, scenario.kind, scenario.title)
    return table


def _blocks() -> Table:
    table = Table("block", "persistence points", "title")
    for block in blocks().values():
        table.add_row(block.name, str(len(block.points)), block.title)
    return table


def _engines() -> Table:
    table = Table("engine", "title")
    for name, title in _native.engines().items():
        table.add_row(name, title)
    return table


def _kinds() -> Table:
    table = Table("kind", "title", "parameter", "default", "meaning")
    for kind in KINDS.values():
        label, title = kind.name, kind.title
        for name, field in kind.parameter_model.model_fields.items():
            default = field.get_default(call_default_factory=True)
            shown = f"{len(default)} groups" if isinstance(default, list) else str(default)
            table.add_row(label, title, name, shown, field.description or "")
            label = title = ""
        table.add_section()
    return table
