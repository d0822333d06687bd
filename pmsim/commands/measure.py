"""``pmsim measure``."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pmsim.errors import ConfigError
from pmsim.host_blocks import chosen_blocks
from pmsim.measure import OUTPUTS, MeasureResult, measure
from pmsim.output_place import check_output_folder
from pmsim.path_option import path_option
from pmsim.profiles import load_platform
from pmsim.progress import step_display
from pmsim.terminal import Column, output, print_item, print_table

_DEFAULT_PROFILE = "this-machine.toml"


def measure_command(
    blocks: Annotated[
        list[str] | None,
        typer.Option(
            "--blocks",
            metavar="NAME,...",
            help="Blocks to measure, all by default; or a prototype in C++, FILE.py:CLASS.",
        ),
    ] = None,
    on: Annotated[
        Path | None,
        path_option("New file that stands for persistent memory (DAX); DRAM by default."),
    ] = None,
    platform: Annotated[
        str | None,
        typer.Option(help="Profile of this machine.", show_default=f"{_DEFAULT_PROFILE}, by pmsim calibrate"),
    ] = None,
    out: Annotated[Path, path_option("Output directory.")] = Path("out/measure"),
    quick: Annotated[bool, typer.Option("--quick", help="A few repetitions, in seconds.")] = False,
) -> None:
    """Run building blocks on this machine and print real beside simulated."""
    with step_display("measuring") as doing:
        chosen_blocks(blocks or [], progress=doing)  # bad input first: measuring takes a while
    likeness = load_platform(_profile(platform))
    check_output_folder(out, OUTPUTS)
    with step_display("measuring") as doing:
        result = measure(likeness, blocks=blocks or [], on=on, quick=quick, progress=doing)
    from pmsim.measure_report import save  # frames and figures take a second to import

    _report(result)
    save(result, out)  # behind the table: what was measured is not lost where the disk is full
    output().print(str(out / "report.html"), soft_wrap=True)


def _profile(given: str | None) -> str:
    if given is not None:
        return given
    if not Path(_DEFAULT_PROFILE).is_file():
        raise ConfigError(
            f"{_DEFAULT_PROFILE}: no profile of this machine here; run pmsim calibrate first, or give one with "
            "--platform"
        )
    return _DEFAULT_PROFILE


def _report(result: MeasureResult) -> None:
    console = output()
    _print_rows(console, result)
    near, of = result.near()
    console.print(f"{near} of {of} predictions are within a factor of two.")
    for order in result.orders():
        console.print(order.told())
    for warning in result.warnings:
        print_item(console, "Note", f"{warning}.")


def _print_rows(console: Console, result: MeasureResult) -> None:
    from pmsim.measure_report import shown

    right = [Column(name, right=True) for name in ("real", "spread", "simulated")]
    rows = [
        [
            row.subject.block,
            row.subject.name,
            shown(row.measured),
            f"{100 * row.spread:.0f} %",
            shown(row.simulated),
            row.subject.unit,
            "failed" if row.message else f"{row.ratio:.2f}",
        ]
        for row in result.rows
    ]
    columns: list[Column | str] = ["block", Column("set-up", narrow="wrap"), *right, "unit"]
    columns.append(Column("ratio", right=True))
    print_table(console, columns, rows, result.platform.title)
