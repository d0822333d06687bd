"""Fractions as per cent, for the table and the report."""

import math


def percent(value: float | None, signed: bool = False) -> str:
    """Write a fraction as per cent, nothing where there is none."""
    if value is None or math.isnan(value):
        return ""
    return f"{100 * value:+.1f} %" if signed else f"{100 * value:.1f} %"


def with_range(value: float, ends: tuple[float, float] | None) -> str:
    """Write a fraction as per cent, with its range over the seeds where there are several."""
    if ends is None:
        return percent(value)
    return f"{percent(value)} ({100 * ends[0]:.1f} to {100 * ends[1]:.1f})"
