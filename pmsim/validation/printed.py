"""What ``pmsim validate`` prints: a line per claim, what failed, and how far off predictions are."""

import math
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from pmsim.terminal import Column, print_item, print_table
from pmsim.validation.claims import Claim
from pmsim.validation.percent import with_range
from pmsim.validation.summary import Accuracy, Validation
from pmsim.validation.verdict import Outcome

_COLOURS = {"pass": "green", "fail": "red", "error": "red", "not simulated": "dim"}
#: Beside a claim's name, which stays whole, a line of 80 columns has room for few characters.
_USES = {"calibration": "cal", "prediction": "pre"}
#: Longer texts (orderings) are for the report, and for the lines on what failed.
_MOST = 40
#: Of numbers with their units: nearly all are whole.
_LEAST = 11
#: Where there is less room, the set-up is for the report.
_LEAST_SETUP = 30


def print_validation(console: Console, result: Validation) -> None:
    """Print everything but where the report is."""
    columns: list[Column | str] = [
        Column("claim", narrow="hang"),
        Column("measured", narrow="cut", most=_MOST, least=_LEAST),
        Column("predicted", narrow="cut", most=_MOST),
        Column("error", right=True),
        "verdict",
        "use",
        # The last one, so that no line is filled up to its length.
        Column("set-up", narrow="rest", least=_LEAST_SETUP),
    ]
    rows: list[list[str | Text]] = []
    for outcome, share in zip(result.outcomes, result.shares(), strict=True):
        predicted = _predicted(outcome)
        verdict: str = outcome.verdict if outcome.claim.checks else "-"
        if share is not None:
            # In the columns that are there anyway: a terminal has no room for two more.
            verdict += f" {share}"
            predicted += f" ({share.spread})" if share.spread else ""
        rows.append(
            [
                outcome.claim.id,
                _measured(outcome.claim),
                predicted,
                _error(outcome.error),
                Text(verdict, style=_COLOURS[outcome.verdict]),
                _USES[outcome.claim.use] if outcome.claim.checks else "",
                outcome.claim.setup,
            ]
        )
    print_table(console, columns, rows, result.suite.title)
    if any(check.value is None for outcome in result.outcomes for check in outcome.claim.checks):
        console.print("predicted 1/2: of two conditions one holds", style="dim")
    legend = "use: pre, a prediction; cal, calibration (it set a parameter, or follows from what did)"
    console.print(legend, style="dim")
    _print_failed(console, result.outcomes)
    _print_accuracy(console, "Accuracy: absolute relative error of predictions", result.accuracy())
    if result.compared:
        _print_accuracy(console, "By experiment", result.by_experiment())
    console.print()
    _print_counts(console, result)


def _measured(claim: Claim) -> str:
    if isinstance(claim.expected, tuple):
        low, high = claim.expected
        return f"{low:g}..{high:g} {claim.unit}".strip()
    return claim.expected_text()


def _predicted(outcome: Outcome) -> str:
    checks = outcome.claim.checks
    if not checks:
        return "not simulated"
    if outcome.verdict == "error":
        return ""
    if all(check.value for check in checks):
        return outcome.predicted
    return f"{sum(check.passed for check in outcome.checks)}/{len(checks)}"


def _error(value: float | None) -> str:
    if value is None:
        return ""
    return f"{100 * value:+.1f} %" if abs(value) < 1 else f"{100 * value:+.0f} %"


def _print_failed(console: Console, outcomes: Sequence[Outcome]) -> None:
    failed = [outcome for outcome in outcomes if outcome.verdict in ("fail", "error")]
    if failed:
        console.print("\nFailed", style="bold")
    for outcome in failed:
        claim = outcome.claim
        compared = any(check.value for check in claim.checks) and not outcome.without_number
        tolerance = f" (tolerance {claim.tolerance.describe()})" if compared else ""
        # Of an ordering with many parts those that hold would hide the one that does not.
        parts = [
            check.predicted
            for condition, check in zip(claim.checks, outcome.checks, strict=False)
            if condition.value or not check.passed
        ]
        found = outcome.message or f"predicted {'; '.join(parts)}{tolerance}"
        print_item(console, claim.id, f"{claim.quantity}: measured {claim.expected_text()}; {found}")


def _print_accuracy(console: Console, title: str, rows: Sequence[Accuracy]) -> None:
    if not rows:
        return
    numbers = ["points", "median", "90th percentile", "rank correlation", "failed"]
    columns: list[Column | str] = [Column("group", narrow="cut"), "medium", "use"]
    columns += [Column(name, right=True, narrow="left out" if name[0] == "r" else "whole") for name in numbers]
    cells = []
    for row in rows:
        correlation = "" if math.isnan(row.rank_correlation) else f"{row.rank_correlation:.3f}"
        errors = (with_range(row.median, row.median_range), with_range(row.p90, row.p90_range))
        shown = [str(row.rows), *errors, correlation, str(row.failed or "")]
        cells.append([row.group, row.medium, _USES[row.use], *shown])
    # Columns that no row fills are none of a reader's business.
    filled = [place for place, _ in enumerate(columns) if any(row[place] for row in cells)]
    console.print()
    chosen = [[row[place] for place in filled] for row in cells]
    print_table(console, [columns[place] for place in filled], chosen, title)


def _print_counts(console: Console, result: Validation) -> None:
    verdicts = [outcome.verdict for outcome in result.outcomes]
    counts = ", ".join(f"{verdicts.count(name)} {name}" for name in _COLOURS if name in verdicts)
    console.print(f"{len(verdicts)} claims: {counts}; {result.runs} runs.")
    if result.unsteady:
        console.print(
            f"In {result.unsteady} of the runs `steady` is 0: they were still changing while they measured."
        )
    if result.each:
        found = ", ".join(f"{share.claim} {share}" for share in result.by_chance())
        seeds = len(result.each)
        console.print(f"Decided by chance, passing with some of the {seeds} seeds only: {found or 'none'}.")
    refused = [row for row in result.compared if row.message]
    if refused:
        first = refused[0]
        console.print(
            f"{len(refused)} measurements could not be simulated; first: {first.measurement.setup}: "
            f"{first.message}",
            style="red",
        )
