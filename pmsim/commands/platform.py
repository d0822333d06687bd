"""``pmsim platform``."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from pmsim.profiles import load_platform

platform_app = typer.Typer(no_args_is_help=True, help="Look at platform profiles.")


@platform_app.callback()
def _platform() -> None:
    """Look at platform profiles."""


@platform_app.command("show")
def show_command(name: Annotated[str, typer.Argument(help="A profile, or a TOML file of your own.")]) -> None:
    """Show every parameter of a platform with its value, source and origin."""
    platform = load_platform(name)
    console = Console()
    console.print(f"[bold]{platform.name}[/bold]: {platform.title}", highlight=False)
    console.print(f"latencies: {platform.latency_definition}", highlight=False)
    if platform.notes:
        console.print(platform.notes, markup=False, highlight=False)
    table = Table("parameter", "value", "meaning", "origin", "source")
    section = ""
    for row in platform.rows():
        if section and row.section != section:
            table.add_section()
        section = row.section
        table.add_row(f"{row.section}.{row.name}", row.value, row.meaning, row.origin, row.source)
    console.print(table)
    console.print(f"hash {platform.hash}", highlight=False)
