"""What a column of the results is."""

from dataclasses import dataclass


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
