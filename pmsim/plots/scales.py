"""Whether a curve, or the points of one, can be told apart on a linear axis."""

from collections.abc import Sequence

import pandas as pd

#: Of the largest value: what lies below is a line along the axis.
_HIDDEN = 0.1
#: Of the least value: beside the largest, several that are smaller stand on one place of a linear axis.
_WIDE = 1000


def needs_logarithms(values: pd.Series, curves: pd.Series) -> bool:
    """Tell whether on a linear axis most of some curve lies in the lowest tenth, beside which is the rest.

    Parameters
    ----------
    values : Series
        Along the axis. What is not positive, as throughput before an engine has recovered, has no place on a
        logarithmic axis and does not count.
    curves : Series
        What tells the curve of each value.
    """
    positive = values[values > 0]
    middles = positive.groupby(curves[positive.index]).median()
    return bool((middles < _HIDDEN * positive.max()).any())


def spans_decades(values: Sequence[float]) -> bool:
    """Tell whether values, of which a logarithmic axis has a place for each, span more than three decades."""
    return len(values) > 0 and min(values) > 0 and max(values) > _WIDE * min(values)
