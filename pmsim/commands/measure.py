"""``pmsim measure``."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from pmsim.errors import ConfigError
from pmsim.host_blocks import chosen_blocks
from pmsim.measure import MeasureResult, check_out, measure
from pmsim.profiles import load_platform
from pmsim.progress import step_display

_DEFAULT_PROFILE = "this-machine.toml"


def measure_command(
    blocks: Annotated[
        list[str] | None,
        typer.Option("--blocks", metavar="NAME,...", help="Blocks to measure; all by default."),
    ] = None,
    on: Annotated[
        Path | None, typer.Option(help="File that stands for persistent memory (DAX); DRAM by default.")
    ] = None,
    platform: Annotated[
        str | None,
        typer.Option(help="Profile of this machine.", show_default=f"{_DEFAULT_PROFILE}, by pmsim calibrate"),
    ] = None,
    out: Annotated[Path, typer.Option(help="Output directory.")] = Path("out/measure"),
    quick: Annotated[bool, typer.Option("--quick", help="A few repetitions, in seconds.")] = False,
) -> None:
    """Run building blocks on this machine and print real beside simulated."""
    chosen_blocks(blocks or [])  # bad input first: measuring takes a while
    likeness = load_platform(_profile(platform))
    check_out(out)
    with step_display("measuring") as doing:
        result = measure(likeness, blocks=blocks or [], on=on, quick=quick, progress=doing)
    from pmsim.measure_report import save  # frames and figures take a second to import

    save(result, out)
    _report(result, out)


def _profile(given: str | None) -> str:
    if given is not None:
        return given
    if not Path(_DEFAULT_PROFILE).is_file():
        raise ConfigError(
            f"{_DEFAULT_PROFILE}: no profile of this machine here; run pmsim calibrate first, or give one with "
            "--platform"
        )
    return _DEFAULT_PROFILE


def _report(result: MeasureResult, out: Path) -> None:
    console = Console(width=None if sys.stdout.isatty() else 110)
    console.print(_table(result))
    near, of = result.near()
    console.print(f"{near} of {of} predictions are within a factor of two.", highlight=False)
    for order in result.orders():
        console.print(order.told(), markup=False, highlight=False)
    for warning in result.warnings:
        console.print(f"Note: {warning}.", markup=False, highlight=False)
    console.print(str(out / "report.html"), soft_wrap=True, highlight=False)


def _table(result: MeasureResult) -> Table:
    from pmsim.measure_report import shown

    table = Table(title=result.platform.title, title_justify="left", box=SIMPLE)
    table.add_column("block")
    table.add_column("set-up")
    for column in ("real", "spread", "simulated"):
        table.add_column(column, justify="right")
    table.add_column("unit")
    table.add_column("ratio", justify="right")
    last = None
    for row in result.rows:
        if last not in (None, row.subject.block):
            table.add_section()
        table.add_row(
            "" if row.subject.block == last else row.subject.block,
            row.subject.name,
            shown(row.measured),
            f"{100 * row.timing.spread:.0f} %",
            shown(row.simulated),
            row.subject.unit,
            "failed" if row.message else f"{row.ratio:.2f}",
        )
        last = row.subject.block
    return table
