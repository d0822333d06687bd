"""``pmsim tune``."""

import math
from pathlib import Path
from typing import Annotated

import typer

from pmsim.errors import ConfigError
from pmsim.exit_status import FAILED, INTERRUPTED
from pmsim.path_option import path_option
from pmsim.progress import progress_bar
from pmsim.standing import watched
from pmsim.terminal import complaints, output
from pmsim.tuning import Step, tune
from pmsim.units import number


def tune_command(
    scenario: Annotated[str, typer.Argument(help="A scenario; its sweep is the space that is searched.")],
    metric: Annotated[str | None, typer.Option(help="What to improve.", show_default="the kind's")] = None,
    # Two options: of one pair of switches the last would win, and half of a contradiction be taken.
    minimize: Annotated[
        bool, typer.Option("--minimize", help="Seek the lowest value; by default that of times.")
    ] = False,
    maximize: Annotated[
        bool, typer.Option("--maximize", help="Seek the highest value; by default that of rates.")
    ] = False,
    require: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help='What a point has to meet: "latency_p99_ns <= 2000".'),
    ] = None,
    steps: Annotated[int, typer.Option(help="Moves to try.")] = 60,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    jobs: Annotated[
        int, typer.Option(help="Processes; more than one simulate ahead what the search may ask for next.")
    ] = 1,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change the scenario, as for pmsim run."),
    ] = None,
    out: Annotated[
        Path | None,
        path_option("Keep finished points here, to resume."),
    ] = None,
) -> None:
    """Search a sweep for its best point by simulated annealing, without running all of it."""
    if minimize and maximize:
        raise ConfigError("--minimize, --maximize: a search has one goal; leave one of them out")
    console = output()

    taken = 0

    def tell(step: Step) -> None:
        nonlocal taken
        taken += 1
        where = ", ".join(f"{name} = {text}" for name, text in step.settings.items())
        verdict = "taken" if step.accepted else "left"
        value = "-" if math.isnan(step.value) else number(step.value)
        console.print(f"{value:>14}  {verdict:5s}  {where}", soft_wrap=True)

    try:
        with (
            progress_bar("tune", steps + 1, None) as show,
            watched(lambda doing, share: show(taken + share, doing)),
        ):
            found = tune(
                scenario,
                metric=metric,
                minimize=minimize if minimize or maximize else None,
                require=require or [],
                steps=steps,
                seed=seed,
                jobs=jobs,
                set=set_,
                out=out,
                progress=tell,
            )
    except KeyboardInterrupt:
        kept = (
            f"are kept in {out}; run the same command again to resume"
            if out
            else "were taken; --out DIR keeps them"
        )
        complaints().print(f"pmsim: interrupted; {taken} steps {kept}")
        raise typer.Exit(INTERRUPTED) from None
    for failure in found.failures:
        complaints().print(f"pmsim: {failure}")
    seen = f"{found.simulated} of {found.points} points were visited"
    if found.best is None:
        needed = " and ".join(map(str, found.goal.requirements)) or f"a value of {found.goal.column}"
        console.print(f"none has {needed}; {seen}", soft_wrap=True)
        raise typer.Exit(FAILED)
    best = ", ".join(f"{name} = {text}" for name, text in found.best.items())
    sought = "lowest" if found.goal.minimize else "highest"
    console.print(f"{sought} {found.goal.column}: {number(found.value)} at {best}; {seen}", soft_wrap=True)
    if found.failures:
        raise typer.Exit(FAILED)
