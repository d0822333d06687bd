"""Whether a search has reached what it was fitted to, and what is known to hold it back."""

import math

from pmsim.host_timing import Subject
from pmsim.platforms import Platform, find_field

#: Farther from what is measured than this factor a row is not reached.
NEAR = 1.25
#: What is read off a benchmark of its own, no search may move, and bounds how fast others come out: each with
#: the factor that loosens it.
_READ_OFF = {
    "core.window": 2.0,
    "tlb.walk_latency": 0.5,
    "controller.link_read_interval": 0.5,
    "controller.link_write_interval": 0.5,
}
#: A limit brings what it holds back nearer by more than this factor when it is loosened.
_MATTERS = math.log(1.1)


def is_reached(ratio: float) -> bool:
    """Whether predicted over measured is as near to 1 as a search is to bring it."""
    return ratio > 0 and max(ratio, 1 / ratio) <= NEAR


def limits(platform: Platform, subject: Subject, measured: float) -> tuple[str, ...]:
    """Return which of the parameters that no search moves keep a prediction from what was measured.

    Parameters
    ----------
    platform : Platform
        As it was fitted.
    subject : Subject
        What it does not reach.
    measured : float
        In the metric of the subject.
    """

    def far(on: Platform) -> float:
        return abs(math.log(max(subject.predict(on), 1e-9) / measured))

    now, found = far(platform), []
    for key, factor in _READ_OFF.items():
        section, _, name = key.partition(".")
        field = find_field(section, name)
        value = platform.value(section, name)
        looser = min(max(round(value * factor), field.minimum), field.maximum)
        if (
            looser != value
            and now - far(platform.with_values({section: {name: looser}}, source="tried")) > _MATTERS
        ):
            found.append(key)
    return tuple(found)


def shortfall(ratio: float, limited_by: tuple[str, ...]) -> str:
    """Say how far off a row is: ``0.53 of what is measured, limited by core.window``."""
    because = f", limited by {' and '.join(limited_by)}" if limited_by else ""
    return f"{ratio:.2f} of what is measured{because}"
