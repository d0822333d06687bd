"""What a figure leaves out: latencies of an overload, which say how long the run was."""

from collections import Counter
from collections.abc import Sequence

NOT_DRAWN = "Not drawn: points whose requests came faster than they were served"


def hidden_rows(points: Sequence[int], lasting: Sequence[bool]) -> list[bool]:
    """Return which rows have no place in a figure of latencies.

    They have one where there is nothing else to see, and where time windows show how a queue grows.

    Parameters
    ----------
    points : sequence of int
        The point of each row.
    lasting : sequence of bool
        Whether a longer run of it would have the same latencies.
    """
    rows = Counter(points)
    hidden = [not lasts and rows[point] == 1 for point, lasts in zip(points, lasting, strict=True)]
    return [False] * len(hidden) if all(hidden) else hidden
