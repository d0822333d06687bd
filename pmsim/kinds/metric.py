"""What a column of the results is."""

from dataclasses import dataclass

#: Units that say what is better: rates are sought high, times low.
_HIGH_UNITS = ("1/s", "GB/s")
_LOW_UNITS = ("ns", "ms")

#: What the names of the ends of a metric's confidence interval have behind its own.
INTERVAL_ENDS = ("_low", "_high")
#: Metrics that are 0 where a point is not what was asked for, else 1.
FLAGS = ("fits", "steady", "keeps_up")


@dataclass(frozen=True)
class Metric:
    """A column of the results.

    Attributes
    ----------
    name : str
        With its unit as the suffix, unless it is a plain ratio or count.
    unit : str
        For axes; empty for a ratio.
    meaning : str
        For axes and documentation.
    """

    name: str
    unit: str
    meaning: str

    @property
    def low_is_good(self) -> bool | None:
        """Whether less of it is better; None where the unit does not say."""
        return self.unit in _LOW_UNITS if self.unit in (*_HIGH_UNITS, *_LOW_UNITS) else None
