"""``pmsim crash``."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Console

from pmsim.crash import CrashInterrupted, CrashResult, blocks, check_block, find_block
from pmsim.errors import ConfigError, PmsimError, SimulationError
from pmsim.exit_status import FAILED, INTERRUPTED
from pmsim.progress import Show, progress_bar, step_display
from pmsim.prototype.after_crash import recover_in_debugger
from pmsim.prototype.check import check as check_program
from pmsim.prototype.cpp import CppPrototype
from pmsim.prototype.load import load_prototype, names_prototype
from pmsim.prototype.program import Prototype
from pmsim.prototype.subject import told
from pmsim.terminal import Column, complaints, output, print_item, print_table

#: Messages of removed points in the table; --verbose shows them whole.
_MESSAGE_WIDTH = 60


def crash_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="BLOCK", help="See `pmsim list blocks`; or a prototype in Python, FILE.py:CLASS."
        ),
    ] = None,
    states: Annotated[int, typer.Option(help="Crash states drawn per block.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Of programs and samples.")] = 1,
    all_: Annotated[bool, typer.Option("--all", help="Every block.")] = False,
    mutate: Annotated[
        bool, typer.Option("--mutate/--no-mutate", help="Remove each persistence point in turn.")
    ] = True,
    eadr: Annotated[bool, typer.Option("--eadr", help="Caches survive the power failure.")] = False,
    jobs: Annotated[int | None, typer.Option(help="Threads that check.", show_default="processors")] = None,
    threads: Annotated[
        int | None,
        typer.Option(help="Threads of a prototype in Python, whose operations overlap.", show_default="1"),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show the counter-example of every removed point.")
    ] = False,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", help="Step through the recovery of a violation in pdb, for a prototype in Python."
        ),
    ] = False,
) -> None:
    """Cut the power at every persistence step of a block, and check what its recovery finds."""
    if all_ == bool(names):
        raise ConfigError("crash: name a block, or say --all; see pmsim list blocks")
    if verbose and not mutate:
        raise ConfigError("crash: --verbose shows what removed points do, and none is; leave out --no-mutate")
    chosen = [_subject(name, mutate, jobs, threads) for name in (blocks() if all_ else names or [])]
    if debug and (in_cpp := [name for name, prototype, *_ in chosen if not _is_python(prototype)]):
        raise ConfigError(f"crash: --debug steps through Python, and {in_cpp[0]} is C++; leave it out")
    failed = False
    for name, prototype, checks, check in chosen:
        try:
            with progress_bar(name, checks or 1, None) as show:
                result = check(
                    states=states,
                    seed=seed,
                    mutate=mutate,
                    eadr=eadr,
                    on_progress=_progress(show, checks),
                    on_violation=lambda message: show(
                        0, f"VIOLATION: {message}; looking for a shorter way to it"
                    ),
                )
        except CrashInterrupted as interruption:
            _report(interruption.result, verbose, interrupted=True)
            complaints().print(f"pmsim: interrupted; {name} was not checked to the end")
            raise typer.Exit(INTERRUPTED) from None
        except SimulationError as error:  # it fails without any power failure; the next block need not
            complaints().print(f"pmsim: {error}", soft_wrap=True)
            failed = True
            continue
        _report(result, verbose)
        failed = failed or not result.ok
        if debug and prototype and result.check.violation:
            recover_in_debugger(prototype, result.check.violation)
            break
    if failed:
        raise typer.Exit(FAILED)


def _is_python(prototype: type[Prototype] | None) -> bool:
    return prototype is not None and not issubclass(prototype, CppPrototype)


def _progress(show: Show, checks: int) -> Callable[[int, int], None]:
    if checks:
        return lambda _, finished: show(finished)
    return lambda states, finished: show(0, f"{states:,} states, {finished} checks")


def _subject(
    name: str, mutate: bool, jobs: int | None, threads: int | None
) -> tuple[str, type[Prototype] | None, int, Callable[..., CrashResult]]:
    """Return what is to be checked: its name, its class, how many checks that takes, and how.

    Blocks of the core have no class; of a class only the checks tell how many they are: 0.
    """
    if not names_prototype(name):
        points = find_block(name).points
        if threads is not None:
            raise ConfigError(f"crash: --threads is for prototypes, and {name} is a block; leave it out")
        return name, None, 1 + (len(points) if mutate else 0), partial(check_block, name, jobs=jobs)
    if jobs is not None:
        raise ConfigError(f"crash: --jobs has no use for {name}, a prototype; leave it out")
    prototype = load_prototype(name)
    if issubclass(prototype, CppPrototype):
        with step_display("crash") as doing:
            prototype.module(progress=doing)

    def check(**options: Any) -> CrashResult:
        try:
            return check_program(prototype, threads=1 if threads is None else threads, **options)
        except PmsimError:
            raise
        except (Exception, SystemExit) as error:
            raise SimulationError(f"{name} fails while the power is on: {told(error)}") from None

    return name, prototype, 0, check


def _report(result: CrashResult, verbose: bool, interrupted: bool = False) -> None:
    console = output()
    check = result.check
    rate = check.recoveries / max(check.seconds, 1e-9)
    print_item(
        console,
        f"{result.block.name}{' (eADR)' if result.eadr else ''}",
        f"{check.states:,} crash states "
        f"({check.distinct:,} distinct) at {check.steps:,} steps ({check.exhaustive_steps:,} exhaustively), "
        f"{check.recovery_crashes:,} crashes of recovery, {check.resumed_crashes:,} after it, "
        f"{check.third_crashes:,} third ones, {check.second_recoveries:,} second recoveries "
        f"({check.rewrites:,} of them wrote); seeds {result.seed} to "
        f"{result.seed + max(check.small_programs, check.large_programs) - 1}; {check.seconds:.1f} s, "
        f"{rate:,.0f} recoveries per second",
    )
    if check.violation:
        console.print(f"VIOLATION\n{check.violation.counterexample}", soft_wrap=True)
    else:
        console.print("no violation so far" if check.stopped else "no violation")
    if result.mutants:
        _report_mutants(result, console, verbose, interrupted)
    for problem in result.problems if not check.violation else []:
        console.print(f"PROBLEM: {problem}", soft_wrap=True)


def _report_mutants(result: CrashResult, console: Console, verbose: bool, interrupted: bool) -> None:
    rows = []
    for mutant in result.mutants:
        violation = mutant.check.violation
        if violation:
            said = " ".join(violation.message.split())
        elif not mutant.reached:
            said = "never executed"
        elif mutant.point.redundant:
            said = f"redundant: {mutant.point.redundant}"
        elif result.eadr:
            said = "unnecessary with eADR"
        else:
            said = f"NOT NOTICED in {mutant.check.states:,} states"
        rows.append([str(mutant.point.id), mutant.point.name, said])
    without = Column("without it", narrow="cut", most=_MESSAGE_WIDTH)
    columns: list[Column | str] = ["point", Column("name", narrow="wrap"), without]
    print_table(console, columns, rows)
    if interrupted:
        console.print(f"{len(result.mutants)} of {len(result.block.points)} removals were tried")
    elif result.eadr:
        unnecessary = [m.point for m in result.needed if not m.caught]
        console.print(f"unnecessary with eADR: {len(unnecessary)} of {len(result.needed)} points")
    else:
        redundant = len(result.mutants) - len(result.needed)
        console.print(
            f"mutation score {result.score:.0%}: {result.caught} of {len(result.needed)} removals were "
            f"noticed; {redundant} declared redundant"
        )
    if verbose:
        for mutant in result.mutants:
            if mutant.check.violation:
                console.print(mutant.check.violation.counterexample, soft_wrap=True)
