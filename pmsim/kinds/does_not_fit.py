"""Metrics of a point whose data its engine cannot hold: nothing was simulated, and the core has said why."""

import math
from collections.abc import Iterable

from pmsim.kinds.metric import Metric


class DoesNotFit(dict[str, int | float]):
    """Metrics of a point that does not fit, with the reason; a sweep over capacities has such points at an end.

    Attributes
    ----------
    reason : str
        One line that names the parameter and the remedy.
    """

    def __init__(self, metrics: dict[str, int | float], reason: str) -> None:
        super().__init__(metrics)
        self.reason = reason

    @classmethod
    def of(cls, metrics: Iterable[Metric], reason: str) -> "DoesNotFit":
        """Return the metrics of a kind with an engine, of which nothing was simulated."""
        nothing: dict[str, int | float] = {metric.name: math.nan for metric in metrics}
        return cls(nothing | {"fits": 0, "simulated_ops": 0, "out_of_range_count": 0}, reason)
