"""``pmsim calibrate``."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from pmsim.calibrate import Calibration, Row, calibrate, check_out, write_profile
from pmsim.progress import step_display


def calibrate_command(
    out: Annotated[Path, typer.Option(help="Profile to write.")] = Path("this-machine.toml"),
    on: Annotated[
        Path | None,
        typer.Option(help="File whose memory the pmem tier stands for (DAX); DRAM by default."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Seconds instead of a minute, and coarser.")] = False,
) -> None:
    """Fit a platform profile to this machine, from its own latencies and bandwidths."""
    check_out(out)
    with step_display("calibrating") as doing:
        found = calibrate(name=out.stem, on=on, quick=quick, progress=doing)
    write_profile(found.platform, out)
    _report(found, out)


def _report(found: Calibration, out: Path) -> None:
    console = Console(width=None if sys.stdout.isatty() else 110)
    console.print(fit_table(found.rows, found.platform.title))
    for warning in found.warnings:
        console.print(f"Note: {warning}.", markup=False, highlight=False)
    console.print(
        f'{out}: use it as platform = "{out}", see it with: pmsim platform show {out}',
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def fit_table(rows: tuple[Row, ...], title: str) -> Table:
    """Tabulate measured beside predicted; rows that no search saw are predictions."""
    table = Table(title=title, title_justify="left", box=SIMPLE)
    table.add_column("microbenchmark")
    for column in ("measured", "spread", "simulated"):
        table.add_column(column, justify="right")
    table.add_column("unit")
    table.add_column("ratio", justify="right")
    table.add_column("use")
    for row in rows:
        table.add_row(
            row.subject.name + (", file" if row.subject.host["memory"] == "pmem" else ""),
            f"{row.measured:.4g}",
            f"{100 * row.timing.spread:.0f} %",
            f"{row.predicted:.4g}",
            row.subject.unit,
            f"{row.ratio:.2f}",
            "fitted" if row.fitted else "prediction",
        )
    return table
