"""When a storage engine with a write-ahead log writes its dirty pages back: a parameter of whatever has one."""

from typing import Annotated, Literal

from pydantic import Field

#: As the engines have it whose wear and throughput are held against publications.
CLEANING: Literal["due", "paced"] = "due"

Cleaning = Annotated[
    Literal["due", "paced"],
    Field(
        description="when dirty pages are written back so that the log can be truncated: due, late; "
        "paced, evenly over what the log holds"
    ),
]
