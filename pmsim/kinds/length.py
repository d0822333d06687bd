"""How long kinds measure that decide it by themselves."""

from typing import Annotated

from pydantic import Field

from pmsim.kinds.types import Count

LENGTH = 1

Length = Annotated[
    Count,
    Field(
        le=1_000,
        description="operations that are measured, in multiples of what the kind measures by itself: more for "
        "tails, and to see whether a run is long enough",
    ),
]
