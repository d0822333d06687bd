"""``pmsim tune``."""

from pathlib import Path
from typing import Annotated

import typer

from pmsim.terminal import output
from pmsim.tuning import Step, tune
from pmsim.units import number


def tune_command(
    scenario: Annotated[str, typer.Argument(help="A scenario; its sweep is the space that is searched.")],
    metric: Annotated[str | None, typer.Option(help="What to improve.", show_default="the kind's")] = None,
    minimize: Annotated[bool, typer.Option("--minimize", help="Seek the lowest value.")] = False,
    steps: Annotated[int, typer.Option(help="Moves to try.")] = 60,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change the scenario, as for pmsim run."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Keep finished points here, to resume.")] = None,
) -> None:
    """Search a sweep for its best point by simulated annealing, without running all of it."""
    console = output()

    def show(step: Step) -> None:
        where = ", ".join(f"{name} = {text}" for name, text in step.settings.items())
        verdict = "taken" if step.accepted else "left"
        console.print(f"{number(step.value):>14}  {verdict:5s}  {where}", soft_wrap=True)

    found = tune(
        scenario, metric=metric, minimize=minimize, steps=steps, seed=seed, set=set_, out=out, progress=show
    )
    best = ", ".join(f"{name} = {text}" for name, text in found.best.items())
    console.print(
        f"best {found.metric}: {number(found.value)} at {best}; "
        f"{found.simulated} of {found.points} points were visited",
        soft_wrap=True,
    )
