"""``pmsim calibrate``."""

from pathlib import Path
from typing import Annotated

import typer

from pmsim.calibrate import Calibration, Row, calibrate, check_out, write_profile
from pmsim.path_option import path_option
from pmsim.progress import step_display
from pmsim.terminal import Column, output, print_item, print_table


def calibrate_command(
    out: Annotated[Path, path_option("Profile to write.")] = Path("this-machine.toml"),
    on: Annotated[
        Path | None,
        path_option("New file whose memory the pmem tier stands for (DAX); DRAM by default."),
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
    console = output()
    right = [Column(name, right=True) for name in ("measured", "spread", "simulated")]
    columns: list[Column | str] = [Column("microbenchmark", narrow="wrap"), *right, "unit"]
    columns += [Column("ratio", right=True), "use"]
    print_table(console, columns, [_cells(row) for row in found.rows], found.platform.title)
    for warning in found.warnings:
        print_item(console, "Note", f"{warning}.")
    use = f'{out}: use it as platform = "{out}", see it with: pmsim platform show {out}'
    console.print(use, soft_wrap=True)


def _cells(row: Row) -> list[str]:
    """Write measured beside predicted; rows that no search saw are predictions."""
    return [
        row.subject.name + (", file" if row.subject.host.get("memory") == "pmem" else ""),
        f"{row.measured:.4g}",
        f"{100 * row.spread:.0f} %",
        f"{row.predicted:.4g}",
        row.subject.unit,
        f"{row.ratio:.2f}",
        "fitted, not reached" if row.missed else "fitted" if row.fitted else "prediction",
    ]
