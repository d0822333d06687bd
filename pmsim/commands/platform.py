"""``pmsim platform``."""

from typing import Annotated

import typer

from pmsim.commands.once import OnceCommand
from pmsim.platforms import Platform
from pmsim.profiles import load_profile
from pmsim.terminal import Column, output, print_item, print_table

#: Below it sources would stand in columns of a word each.
_WIDE = 120

platform_app = typer.Typer(no_args_is_help=True, help="Look at platform profiles.")


@platform_app.callback()
def _platform() -> None:
    """Look at platform profiles."""


@platform_app.command("show", cls=OnceCommand)
def show_command(
    name: Annotated[str, typer.Argument(help="A machine, a block device, or a TOML file of your own.")],
) -> None:
    """Show every parameter of a platform with its value, range, origin, meaning and source."""
    platform = load_profile(name)
    console = output()
    console.print(f"{platform.name}: {platform.title}", style="bold")
    if platform.latency_definition:
        console.print(f"latencies: {platform.latency_definition}")
    if platform.notes:
        console.print(platform.notes)
    console.print()
    if console.width < _WIDE:
        for row in platform.rows():
            head = f"{row.section}.{row.name} = {row.value} ({row.origin}; {row.range})"
            print_item(console, head, f"{row.meaning}. {row.source}")
    else:
        wrapped = [Column(name, narrow="wrap") for name in ("meaning", "source")]
        print_table(
            console,
            ["parameter", "value", "range", "origin", *wrapped],
            [
                (f"{row.section}.{row.name}", row.value, row.range, row.origin, row.meaning, row.source)
                for row in platform.rows()
            ],
        )
    if isinstance(platform, Platform):
        console.print(f"hash {platform.hash}")
