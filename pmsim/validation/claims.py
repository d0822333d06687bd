"""Published numbers, orderings and shapes that a simulation should reproduce, and the rules that judge them.

A suite is one TOML file under ``validation/claims``, or a folder of them. Tolerances are not written there:
each claim names the rule that follows from how precisely its source states the number, and the rule gives the
tolerance.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    StrictBool,
    StrictFloat,
    StrictInt,
    model_validator,
)

Scalar = StrictBool | StrictInt | StrictFloat | str
PlatformRef = str | dict[str, Any]
Kind = Literal["absolute", "ratio", "crossover", "ordering", "shape", "exact"]
Precision = Literal["stated", "approx", "qualitative"]
Use = Literal["calibration", "prediction"]


@dataclass(frozen=True)
class Rule:
    """How far a prediction may be from a stated value, and which claims may ask for that."""

    kinds: frozenset[str]
    precisions: frozenset[str]
    relative: float | None
    absolute: float | None
    meaning: str

    def interval(self, low: float, high: float) -> tuple[float, float]:
        """Widen the expected range by the tolerance."""
        if self.relative is not None:
            return low - self.relative * abs(low), high + self.relative * abs(high)
        margin = self.absolute or 0.0
        return low - margin, high + margin

    def describe(self) -> str:
        """Write the tolerance for a table."""
        if self.relative is not None:
            return f"{100 * self.relative:g} %"
        return f"±{self.absolute:g}" if self.absolute is not None else "exact"


def _rule(
    kinds: str, precisions: str, meaning: str, relative: float | None = None, absolute: float | None = None
) -> Rule:
    return Rule(frozenset(kinds.split()), frozenset(precisions.split()), relative, absolute, meaning)


# The rule of docs/validation.md, fixed before the first comparison with a prediction.
RULES: dict[str, Rule] = {
    "idle-or-peak": _rule("absolute", "stated", "idle latency or peak bandwidth of a calibrated machine", 0.05),
    "single-thread-write": _rule("absolute", "stated", "streaming write bandwidth of one thread", 0.10),
    "interference": _rule("absolute", "stated", "bandwidth beside other tasks on the same channels", 0.25),
    "threads": _rule("absolute crossover", "stated", "a thread count, or a number of lines", absolute=2),
    "stated": _rule("absolute ratio", "stated", "any other number stated without reservation", 0.10),
    "stated-elsewhere": _rule("absolute", "stated", "stated for a machine that was never fitted", 0.15),
    "stated-above-device": _rule("absolute ratio", "stated", "stated for an unfitted algorithm", 0.15),
    "approx": _rule("absolute ratio crossover", "approx", "given as 'about', 'around' or 'at least'", 0.25),
    "near-one": _rule("ratio", "approx", "an approximate ratio near one", absolute=0.10),
    "lines-per-lookup": _rule("absolute", "stated", "cache lines per lookup of an engine", 0.20),
    "lines-ratio": _rule("ratio", "stated", "ratio of lines that engines load", 0.25),
    "tier-gap": _rule("ratio", "stated", "distance between engines when data outgrow a tier", 0.30),
    "scan-points": _rule("ratio", "stated approx", "throughput of scans in per cent of a baseline", absolute=8),
    "count": _rule("exact", "stated qualitative", "a structural count, seen through a sample", 0.02),
    "exact": _rule("exact crossover", "stated", "a count or a size that no sample blurs"),
    "hundredths": _rule("exact", "stated", "a calculated number, printed in hundredths", absolute=0.005),
    "ordering": _rule("ordering exact", "stated qualitative", "an ordering must hold exactly; ~ within 15 %"),
    "shape": _rule("shape", "stated qualitative", "the shape of a curve"),
}  # fmt: skip

EQUAL_WITHIN = 0.15  # "~" in an ordering
AT_LEAST_WITHIN = 0.02  # ">=": what two runs of the same thing may differ by


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class Source(_Model):
    """One publication."""

    citation: Annotated[str, Field(min_length=1)]
    doi: str = ""


class Cited(_Model):
    """A place in a publication."""

    ref: str
    where: Annotated[str, Field(min_length=1)]


class Series(_Model):
    """Runs of one kind, over at most one swept parameter of the kind or of the platform."""

    platform: PlatformRef
    kind: str
    metric: str
    parameters: dict[str, Any] = {}
    sweep: dict[str, Annotated[list[Scalar], Field(min_length=1)]] = {}
    x: list[float] = []  # what the source calls the swept values, where it is not the values themselves

    @model_validator(mode="after")
    def _one_sweep(self) -> Self:
        if len(self.sweep) > 1:
            raise ValueError("sweep: at most one parameter")
        if set(self.sweep) & set(self.parameters):
            raise ValueError("sweep: the parameter is also in parameters")
        for name, values in self.sweep.items():
            if self.x and len(self.x) != len(values):
                raise ValueError(f"x: {len(self.x)} names for {len(values)} values of {name}")
            if name.startswith(_PLATFORM) and name.count(".") != _PLATFORM_DOTS:
                raise ValueError(f"sweep: '{name}' is no platform.SECTION.NAME")
        if self.x and not self.sweep:
            raise ValueError("x: belongs to a sweep")
        xs = [x for x, _, _ in self.points()]
        if twice := [x for x in dict.fromkeys(xs) if xs.count(x) > 1]:
            key = "x" if self.x else "sweep"
            raise ValueError(f"{key}: {twice[0]:g} twice; a curve has one value at each x")
        return self

    def points(self) -> Iterator[tuple[float, PlatformRef, dict[str, Any]]]:
        """Yield x, platform and parameters of every run; a series without a sweep has one run at x = 0."""
        if not self.sweep:
            yield 0.0, self.platform, dict(self.parameters)
        for name, values in self.sweep.items():
            for position, value in enumerate(values):
                x = float(value) if isinstance(value, int | float) else float(position)
                x = self.x[position] if self.x else x
                if name.startswith(_PLATFORM):
                    yield x, self._with(name, value), dict(self.parameters)
                else:
                    yield x, self.platform, {**self.parameters, name: value}

    def _with(self, name: str, value: Scalar) -> PlatformRef:
        _, section, field = name.split(".")
        given: dict[str, Any] = {"base": self.platform} if isinstance(self.platform, str) else self.platform
        return {**given, section: {**given.get(section, {}), field: value}}


_PLATFORM = "platform."
_PLATFORM_DOTS = 2


class Crossover(_Model):
    """The x from which on ``upper`` is at least (or at most) ``factor`` times ``lower``."""

    upper: str
    lower: str
    relation: Literal["at least", "at most"] = "at least"
    factor: float = 1.0


_WITHIN_PEAK = 0.02  # as docs/validation.md has it
_REDUCERS = (
    "point",
    "max",
    "min",
    "peak_x",
    "decline_x",
    "at",
    "from_x",
    "median_ratio",
    "ratio",
    "sum",
    "scaled",
    "slowdown",
)


class Measure(_Model):
    """A number made from series (point to median_ratio) or from other measures (ratio to slowdown)."""

    point: str | None = None
    max: list[str] | None = None
    min: list[str] | None = None
    peak_x: str | None = None  # the smallest x within `within` of the maximum
    decline_x: list[str] | None = None  # the smallest x behind the maximum that has lost `within`
    at: str | None = None  # the value at x
    from_x: Crossover | None = None
    median_ratio: tuple[str, str] | None = None  # of two series over the same x: the median of upper / lower
    ratio: tuple[str, str] | None = None
    sum: list[str] | None = None
    scaled: str | None = None  # times `by`
    slowdown: tuple[str, str] | None = None  # (alone, beside): loss in per cent
    within: Annotated[float, Field(gt=0, lt=1)] = _WITHIN_PEAK
    x: float | None = None
    by: float | None = None

    @model_validator(mode="after")
    def _one_reducer(self) -> Self:
        given = [name for name in _REDUCERS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"exactly one of {', '.join(_REDUCERS)}; given: {', '.join(given) or 'none'}")
        if getattr(self, given[0]) == []:
            raise ValueError(f"'{given[0]}' of nothing; name at least one")
        if (self.at is None) != (self.x is None):
            raise ValueError("'at' and 'x' belong together")
        if (self.scaled is None) != (self.by is None):
            raise ValueError("'scaled' and 'by' belong together")
        if self.within != _WITHIN_PEAK and given[0] not in ("peak_x", "decline_x"):
            raise ValueError(f"'within' belongs to peak_x and decline_x, '{given[0]}' has no use for it")
        return self

    def series_names(self) -> list[str]:
        """Name the series that this measure reads."""
        if self.from_x is not None:
            return [self.from_x.upper, self.from_x.lower]
        if self.median_ratio is not None:
            return list(self.median_ratio)
        single = [name for name in (self.point, self.peak_x, self.at) if name is not None]
        return single + [name for names in (self.max, self.min, self.decline_x) for name in names or []]

    def measure_names(self) -> list[str]:
        """Name the measures that this measure reads."""
        names = [name for group in (self.ratio, self.sum, self.slowdown) for name in group or ()]
        return names + ([self.scaled] if self.scaled is not None else [])


_TOKEN = re.compile(r"\s*(>=|<=|>|<|~|[A-Za-z_][\w-]*|\d+(?:\.\d+)?)")
_OPERATORS = {">", ">=", "<", "<=", "~"}


def parse_ordering(text: str) -> list[tuple[str, str, str]]:
    """Split ``"a > b ~ c"`` into its adjacent pairs.

    Returns
    -------
    list of (left, operator, right); operands are names of measures or decimal numbers.
    """
    tokens, position = [], 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError(f"ordering '{text}': cannot read '{text[position:].strip()}'")
        tokens.append(match.group(1))
        position = match.end()
    operands, operators = tokens[0::2], tokens[1::2]
    if len(operands) < 2 or len(operands) != len(operators) + 1:
        raise ValueError(f"ordering '{text}': expected operand, operator, operand, ...")
    if set(operators) - _OPERATORS or set(operands) & _OPERATORS:
        raise ValueError(f"ordering '{text}': operators are {' '.join(sorted(_OPERATORS))}")
    return list(zip(operands, operators, operands[1:], strict=False))


def _names_in(ordering: str) -> list[str]:
    """Name the operands of an ordering that are not numbers, each once."""
    operands = [side for left, _, right in parse_ordering(ordering) for side in (left, right)]
    return [name for name in dict.fromkeys(operands) if not name[0].isdigit()]


Shape = Literal["flat", "rise_peak_decline", "rise_then_flat", "increasing", "peaks_at"]
_WITHIN = ("flat", "rise_then_flat", "rise_peak_decline")  # shapes that ask how far from the maximum


class Check(_Model):
    """One condition of a claim: a value against ``expected``, an ordering, or the shape of a series."""

    value: str | None = None
    order: str | None = None  # of measures
    everywhere: str | None = None  # an ordering of series, which must hold at each of their common x
    shape: Shape | None = None
    of: str | None = None
    over: str | None = None  # the shape is that of of / over, point by point
    peak: tuple[float, float] | None = None  # rise_peak_decline: where the maximum may be
    at: list[float] | None = None  # peaks_at: where the local maxima must be
    within: Annotated[float, Field(gt=0, lt=1)] | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if sum(form is not None for form in (self.value, self.order, self.everywhere, self.shape)) != 1:
            raise ValueError("exactly one of value, order, everywhere, shape")
        if (self.shape is None) != (self.of is None):
            raise ValueError("'shape' and 'of' belong together")
        if (self.shape == "peaks_at") != (self.at is not None):
            raise ValueError("'at' belongs to the shape 'peaks_at'")
        if self.over is not None and self.shape is None:
            raise ValueError("'over' belongs to a shape; of a value, compare a measure { ratio = [...] }")
        if self.peak is not None and self.shape != "rise_peak_decline":
            raise ValueError("'peak' belongs to the shape 'rise_peak_decline'")
        if self.within is not None and self.shape not in _WITHIN:
            raise ValueError(f"'within' belongs to the shapes {', '.join(_WITHIN)}")
        for ordering in (self.order, self.everywhere):
            if ordering is not None:
                parse_ordering(ordering)
        return self

    def measure_names(self) -> list[str]:
        """Name the measures that this check reads."""
        if self.value is not None:
            return [self.value]
        return _names_in(self.order) if self.order is not None else []

    def series_names(self) -> list[str]:
        """Name the series that this check reads."""
        named = [name for name in (self.of, self.over) if name is not None]
        return named + (_names_in(self.everywhere) if self.everywhere is not None else [])


class Claim(_Model):
    """One published statement."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    source: Annotated[list[Cited], Field(min_length=1)]
    setup: str
    quantity: str
    kind: Kind
    expected: float | tuple[float, float] | str
    unit: str
    precision: Precision
    note: str = ""
    medium: Literal["dram", "pmem", "both", "block"] = "pmem"
    use: Use = "prediction"
    rule: str = ""
    interpretation: str = ""  # what the set-up leaves open, and how it is read here
    measures: dict[str, Measure] = {}
    checks: list[Check] = []
    not_simulated: str = ""  # why no simulation tests it

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if bool(self.checks) == bool(self.not_simulated):
            raise ValueError("give either checks or the reason not_simulated")
        if self.not_simulated:
            return self
        rule = RULES.get(self.rule)
        if rule is None:
            raise ValueError(f"rule '{self.rule}': unknown; known: {', '.join(RULES)}")
        if self.kind not in rule.kinds or self.precision not in rule.precisions:
            raise ValueError(f"rule '{self.rule}' does not fit a claim of kind {self.kind}, {self.precision}")
        if isinstance(self.expected, tuple) and self.expected[0] > self.expected[1]:
            raise ValueError("'expected' goes down; write the smaller number first")
        if any(check.value for check in self.checks) and isinstance(self.expected, str):
            raise ValueError("a value check needs a number in 'expected'")
        return self

    @property
    def tolerance(self) -> Rule:
        """The rule that judges this claim."""
        return RULES[self.rule]

    def expected_text(self) -> str:
        """Write the expectation for a table."""
        if isinstance(self.expected, tuple):
            return f"{self.expected[0]:g} to {self.expected[1]:g} {self.unit}".strip()
        if isinstance(self.expected, float):
            return f"{self.expected:g} {self.unit}".strip()
        return self.expected


class Suite(_Model):
    """The claims of one suite, with the runs that several of them share."""

    name: str
    title: str
    sources: dict[str, Source]
    series: dict[str, Series] = {}
    measures: dict[str, Measure] = {}
    claim: Annotated[list[Claim], Field(min_length=1)]
    _files: dict[str, Path] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _resolved(self) -> Self:
        seen: set[str] = set()
        for claim in self.claim:
            if claim.id in seen:
                raise ValueError(f"claim '{claim.id}': given twice")
            seen.add(claim.id)
            for cited in claim.source:
                if cited.ref not in self.sources:
                    raise ValueError(f"claim '{claim.id}': source '{cited.ref}' is not in [sources]")
            self.series_of(claim)
        return self

    def measure(self, claim: Claim, name: str) -> Measure:
        """Look a measure up: the claim's own, then those of the suite."""
        found = claim.measures.get(name) or self.measures.get(name)
        if found is None:
            raise ValueError(f"claim '{claim.id}': measure '{name}' is not defined")
        return found

    def series_of(self, claim: Claim) -> list[str]:
        """Name every series that the claim needs, directly or through measures."""
        names: dict[str, None] = {}
        visited: set[str] = set()

        def visit(name: str, above: tuple[str, ...]) -> None:
            if name in above:
                raise ValueError(f"claim '{claim.id}': measure '{name}' is made from itself; break the circle")
            if name in visited:
                return
            visited.add(name)
            measure = self.measure(claim, name)
            for below in reversed(measure.measure_names()):
                visit(below, (*above, name))
            names.update(dict.fromkeys(measure.series_names()))

        for name in reversed([name for check in claim.checks for name in check.measure_names()]):
            visit(name, ())
        names.update(dict.fromkeys(name for check in claim.checks for name in check.series_names()))
        for name in names:
            if name not in self.series:
                raise ValueError(f"claim '{claim.id}': series '{name}' is not defined")
        return list(names)

    def file_of(self, name: str) -> str:
        """Say where a series or a claim was read."""
        return str(self._files.get(name, self.name))

    def citation(self, claim: Claim) -> str:
        """Write where the claim comes from."""
        return "; ".join(f"{self.sources[cited.ref].citation}, {cited.where}" for cited in claim.source)
