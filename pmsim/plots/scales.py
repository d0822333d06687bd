"""Whether a curve can be seen on a linear axis."""

import pandas as pd

#: Of the largest value: what lies below is a line along the axis.
_HIDDEN = 0.1


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
