"""95 % confidence intervals from batches of one run, which count as independent of each other."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from pmsim.kinds.metric import INTERVAL_ENDS, Metric

#: Batches of a run, where it is long enough.
BATCHES = 20
#: Student's t for 95 %, two-sided, by degrees of freedom from 1.
_STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093),
)
#: The same for 99 %, by degrees of freedom from 2.
_STUDENT_99 = (
    *(9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169),
    *(3.106, 3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878),
)
#: Less is no drift of a percentile: an eighth, as one batch has few operations beyond it ...
_DRIFT_OF_TAILS = math.log(9 / 8)
#: ... nor of a mean: less than 5 % decides few comparisons of designs.
_DRIFT_OF_MEANS = math.log(1.05)
#: How often a steady run may be taken for one whose start was apart.
_CHANCE_OF_STARTS = 0.01
#: Operations beyond a percentile without which it has no interval, and how often batches are drawn for one.
_BEYOND = 40
_RESAMPLES = 1_000
_PS_PER_NS = 1_000
#: A value and the ends of its interval.
Estimate = tuple[float, float, float]
#: The mean of latencies has an interval ...
MEAN = "latency_ns"
#: ... and so have these percentiles, with their shares.
TAILS = {"latency_p99_ns": 0.99, "latency_p999_ns": 0.999}


def ends_of(name: str, unit: str) -> tuple[Metric, Metric]:
    """Return the metrics that are the ends of the interval of one."""
    low, high = (
        Metric(name + end, unit, f"{which} end of its 95 % confidence interval over batches, or over seeds")
        for end, which in zip(INTERVAL_ENDS, ("lower", "upper"), strict=True)
    )
    return low, high


def with_ends(metric: Metric) -> tuple[Metric, Metric, Metric]:
    """Return a metric and the ends of its interval."""
    return metric, *ends_of(metric.name, metric.unit)


LATENCY_ENDS = tuple(end for name in (MEAN, *TAILS) for end in ends_of(name, "ns"))


def of_throughput(batch_ends_ps: Sequence[int], operations: int) -> tuple[float, float]:
    """Return the interval of a throughput from batches of as many operations as can be.

    Parameters
    ----------
    batch_ends_ps : sequence of int
        When each batch ended, from the start of the first.
    operations : int
        Over all batches; the first n of them have operations * n // batches (simulate.cpp).

    Returns
    -------
    low, high : float
        Operations per second; not a number with fewer than two batches, with batches of nothing, or such as say
        nothing about the mean.
    """
    times = times_of_batches(batch_ends_ps, operations)
    if len(times) < 2:
        return math.nan, math.nan
    mean = batch_ends_ps[-1] / operations
    reach = _reach([time - mean for time in times])
    if mean <= reach:
        return math.nan, math.nan
    return 1e12 / (mean + reach), 1e12 / (mean - reach)


def times_of_batches(batch_ends_ps: Sequence[int], operations: int) -> list[float]:
    """Return the time of an operation [ps] in each batch, see `of_throughput`; none with batches of nothing."""
    count = len(batch_ends_ps)
    if operations < count:
        return []
    done = [operations * batch // count for batch in range(count + 1)]
    return [
        (end - start) / (last - first)
        for (start, end), (first, last) in zip(pairwise((0, *batch_ends_ps)), pairwise(done), strict=True)
    ]


def is_steady(
    values: npt.ArrayLike, least: float = _DRIFT_OF_MEANS, result: Callable[[int], float] | None = None
) -> float:
    """Tell whether positive values of batches are the same all over a run, but for chance.

    Parameters
    ----------
    values : array
        Of each batch, in their order.
    least : float
        The logarithm of a factor; less is no change.
    result : callable, optional
        What the run without so many first batches would have as its result; the mean of the others' values, if
        not given.

    Returns
    -------
    float
        1 or 0; not a number with fewer than four batches. 0 where the geometric means of both halves differ by
        more than `least`, and by more than in one of a hundred steady runs (Student's two-sample test); and
        where the result without the first batches is another by more than `least`, and these are apart from the
        others as in one of a hundred steady runs (`starts_apart`).
    """
    given = np.maximum(np.asarray(values, dtype=float), 1)
    logarithms = np.log(given)
    half = len(logarithms) // 2
    if half < 2:
        return math.nan
    parts = logarithms[:half], logarithms[-half:]
    drift = abs(parts[0].mean() - parts[1].mean())
    deviation = math.sqrt(sum(part.var(ddof=1) for part in parts) / half)
    chance = _STUDENT_99[min(2 * half - 2, len(_STUDENT_99) + 1) - 2]
    if drift > max(chance * deviation, least):
        return 0.0
    of_rest = result or (lambda first: float(given[first:].mean()))
    whole = max(of_rest(0), 1)
    changes = (abs(math.log(whole / max(of_rest(first), 1))) for first in starts_apart(logarithms))
    return float(all(change <= least for change in changes))


def starts_apart(values: npt.NDArray[np.float64]) -> list[int]:
    """Return by how many first batches a run begins that are further from the rest than chance has it.

    The few batches of a violent start make the variance of their half so large that Student's test takes them
    for chance. Ranks do not mind how far off they are: in a steady run each order of the batches is as likely
    as any other (exchangeability), so of all choices of k from n the first k are the one whose mean is furthest
    from that of all in one of (n choose k) runs, whatever the distribution. (E. J. G. Pitman, Significance
    tests which may be applied to samples from any populations, Supplement to the Journal of the Royal
    Statistical Society 4, 1937.) Choices that are as far as another one do not count, so ties make it rarer.
    A start of one batch it cannot see: of twenty, the first is the furthest in one of twenty runs.

    Each k from the first with less than `_CHANCE_OF_STARTS` on is asked, and fewer than half of the batches, as
    long as all together have no more: of twenty batches two to nine, of ten three, of eight and fewer none.
    """
    batches, spent, found = len(values), 0.0, []
    ordered = np.sort(values)  # so that what is further does not depend on the order of batches
    for first in range(1, (batches + 1) // 2):
        chance = 1 / math.comb(batches, first)
        if chance > _CHANCE_OF_STARTS:
            continue
        spent += chance
        if spent > _CHANCE_OF_STARTS:
            break
        up = ordered[-first:].mean() - ordered.mean()
        down = ordered.mean() - ordered[:first].mean()
        begin, rest = values[:first], values[first:]
        if (up > down and begin.min() > rest.max()) or (down > up and begin.max() < rest.min()):
            found.append(first)
    return found


def of_ratio(amounts: npt.ArrayLike, sizes: npt.ArrayLike) -> tuple[float, float]:
    """Return the interval of all amounts over all sizes of batches, which may be unequally large.

    As of a ratio (Cochran, Sampling Techniques, 1977, chapter 6); of equal sizes it is that of the batches'
    ratios. Not a number with fewer than two batches, with one of no size, or where it says nothing about the
    ratio.
    """
    amount, size = np.asarray(amounts, dtype=float), np.asarray(sizes, dtype=float)
    if len(size) < 2 or not size.all():
        return math.nan, math.nan
    ratio = float(amount.sum() / size.sum())
    reach = _reach((amount - ratio * size) / size.mean())
    return (ratio - reach, ratio + reach) if reach < ratio or reach == 0 else (math.nan, math.nan)


def of_quotient(above: Estimate, below: Estimate) -> Estimate:
    """Return the quotient of two values, and its interval as if they were independent of each other.

    G. Y. Zou, A. Donner: Construction of confidence limits about effect measures, Statistics in Medicine 27,
    2008, on logarithms: not a number where a value or an end is not positive.
    """
    if not below[0]:
        return math.inf, math.nan, math.nan
    quotient = above[0] / below[0]
    (down, up), (down_below, up_below) = map(_logarithms, (above, below))
    if math.isnan(down) or math.isnan(down_below):
        return quotient, math.nan, math.nan
    return (
        quotient,
        quotient * math.exp(-math.hypot(down, up_below)),
        quotient * math.exp(math.hypot(up, down_below)),
    )


def _logarithms(estimate: Estimate) -> tuple[float, float]:
    """Return how far an interval goes below and above its value, as logarithms of factors."""
    value, low, high = estimate
    if not (value > 0 and 0 < low <= high < math.inf):
        return math.nan, math.nan
    # Of an interval without width the value may be the next number in floating point.
    return max(0.0, math.log(value / low)), max(0.0, math.log(high / value))


def _reach(deviations: Sequence[float] | npt.NDArray[np.float64]) -> float:
    """Return half of Student's interval, from what batches deviate from the mean."""
    freedom = len(deviations) - 1
    variance = sum(deviation**2 for deviation in deviations) / freedom / (freedom + 1)
    return _STUDENT[min(freedom, len(_STUDENT)) - 1] * math.sqrt(variance)


@dataclass(frozen=True, eq=False)  # its arrays, compared as in a tuple, have no truth value
class Latencies:
    """What a run has measured, by batches.

    Attributes
    ----------
    counts : array of int, batches by buckets
        Operations of each batch by bucket of their latency.
    edges : array of int [ps]
        The largest latency of each bucket, ascending.
    sums : array of float [ps]
        Of the latencies of each batch.
    """

    counts: npt.NDArray[np.int64]
    edges: npt.NDArray[np.int64]
    sums: npt.NDArray[np.float64]

    def __eq__(self, other: object) -> bool:
        """Return whether the same has been measured."""
        if not isinstance(other, Latencies):
            return NotImplemented
        mine, others = (self.counts, self.edges, self.sums), (other.counts, other.edges, other.sums)
        return all(map(np.array_equal, mine, others))

    __hash__ = None  # type: ignore[assignment]

    def of_windows(self, window_of_batch: Sequence[int], windows: int, share: float) -> list[float]:
        """Return a percentile [ps] of the batches that belong to each window; not a number where none does."""
        counts = np.zeros((windows, len(self.edges)), dtype=np.int64)
        np.add.at(counts, np.asarray(window_of_batch, dtype=np.int64), self.counts)
        found = np.where(counts.any(axis=1), self._percentiles(counts, share), math.nan)
        return [float(value) for value in found]

    def mean_interval(self) -> tuple[float, float]:
        """Return the interval [ps] of the mean, see `of_ratio`."""
        return of_ratio(self.sums, self.counts.sum(axis=1))

    def percentile_intervals(self, shares: Sequence[float]) -> list[tuple[float, float]]:
        """Return the intervals [ps] of percentiles, each `share` of the operations.

        By the bootstrap over batches (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 8
        and 13): as many are drawn with replacement, again and again, and each time the percentile of all that
        they have is taken. So an interval is as wide as what one bad moment does to the percentile, which the
        deviation of the batches' own percentiles does not say. Not a number with fewer than two batches, or too
        few operations beyond the percentile.
        """
        batches = len(self.counts)
        operations = self.counts.sum()
        found = dict.fromkeys(shares, (math.nan, math.nan))
        usable = [share for share in shares if batches > 1 and operations * (1 - share) >= _BEYOND]
        if not usable:
            return list(found.values())
        draws = np.random.default_rng(1).multinomial(batches, [1 / batches] * batches, size=_RESAMPLES)
        # In floating point, which libraries multiply fastest: below 2^53 it counts exactly.
        seen = (draws.astype(float) @ self.counts.astype(float)).cumsum(axis=1)
        for share in usable:
            percentiles = self._at(seen, share)
            low, high = np.quantile(percentiles, [0.025, 0.975], method="inverted_cdf")
            found[share] = float(low), float(high)
        return list(found.values())

    def metrics(self) -> dict[str, float]:
        """Return the values of `LATENCY_ENDS`."""
        ends = [self.mean_interval(), *self.percentile_intervals(tuple(TAILS.values()))]
        # The one nan, as elsewhere: metrics without a value compare equal.
        return {
            name + end: math.nan if math.isnan(ps) else ps / _PS_PER_NS
            for name, interval in zip((MEAN, *TAILS), ends, strict=True)
            for end, ps in zip(INTERVAL_ENDS, interval, strict=True)
        }

    def is_steady(self, share: float) -> float:
        """Tell whether a percentile is the same all over the run, see the function of this name.

        Returns
        -------
        float
            1 or 0; not a number with too few batches, or too few operations beyond the percentile.
        """
        if self.counts.sum() * (1 - share) < _BEYOND:
            return math.nan

        def of_rest(first: int) -> float:
            return float(self._percentiles(self.counts[first:].sum(axis=0, keepdims=True), share)[0])

        return is_steady(self._percentiles(self.counts, share), _DRIFT_OF_TAILS, of_rest)

    def is_mean_steady(self) -> float:
        """Tell whether the mean is the same all over the run, see the function `is_steady`."""
        operations = self.counts.sum(axis=1)
        return is_steady(self.sums / operations) if operations.all() else math.nan

    def _percentiles(self, counts: npt.NDArray[np.int64], share: float) -> npt.NDArray[np.int64]:
        """Return that of each row, as `machine::Histogram::percentile` does."""
        return self._at(counts.cumsum(axis=1), share)

    def _at(self, seen: npt.NDArray[np.int64 | np.float64], share: float) -> npt.NDArray[np.int64]:
        """Return the percentile of each row of operations up to each bucket."""
        rank = np.maximum(1, np.ceil(share * seen[:, -1:]))
        found: npt.NDArray[np.int64] = self.edges[(seen >= rank).argmax(axis=1)]
        return found
