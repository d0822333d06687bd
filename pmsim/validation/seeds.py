"""What the seeds of the runs decide: in how many of them a claim holds, and how far its numbers spread."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pmsim.validation.verdict import CheckResult, Outcome


@dataclass(frozen=True)
class Share:
    """What a claim came to with each of several seeds alone."""

    claim: str
    passed: int  # seeds with which it passes
    seeds: int
    spread: str  # smallest to largest value of each number that decides and is not the same with every seed

    @property
    def by_chance(self) -> bool:
        """It passes with some seeds and not with others."""
        return 0 < self.passed < self.seeds

    def __str__(self) -> str:
        return f"{self.passed}/{self.seeds}"


def share_of(outcomes: Sequence[Outcome]) -> Share:
    """Sum up one claim, judged with each seed alone."""
    passed = sum(outcome.verdict == "pass" for outcome in outcomes)
    judged = [outcome.checks for outcome in outcomes if outcome.checks]
    told: set[str] = set()  # a number that several conditions compare is told once
    parts = []
    for results in zip(*judged, strict=True):
        new = [part for part in _spread(results) if part not in told]
        told.update(new)
        parts.append(", ".join(new))
    return Share(outcomes[0].claim.id, passed, len(outcomes), "; ".join(filter(None, parts)))


def value_range(outcomes: Sequence[Outcome]) -> tuple[float, float] | None:
    """Give the smallest and the largest prediction of a claim that is one number; of any other nothing."""
    values = [check.value for outcome in outcomes for check in outcome.checks if check.value is not None]
    single = all(len(outcome.checks) == 1 for outcome in outcomes)
    return (min(values), max(values)) if single and values else None


def _spread(results: Sequence[CheckResult]) -> list[str]:
    ranges = {name: _range([one.numbers[name] for one in results]) for name in results[0].numbers}
    return [f"{name} {ends}".strip() for name, ends in ranges.items() if ends]


def _range(values: Sequence[float]) -> str:
    low, high = (f"{value:.4g}" if math.isfinite(value) else "never" for value in (min(values), max(values)))
    return f"{low}..{high}" if low != high else ""
