"""How threads that share a storage engine agree on its pages and its log: parameters of whatever has one."""

from typing import Annotated, Literal

from pydantic import Field

#: Readers of today's engines hold nothing (Leis et al., The ART of Practical Synchronization, DaMoN 2016).
LATCHES: Literal["none", "shared", "optimistic"] = "optimistic"

EngineLatches = Annotated[
    Literal["none", "shared", "optimistic"],
    Field(
        description="of several threads, how readers hold the latch of a page; optimistic: not at all, they "
        "look for writers afterwards; none: nobody latches, as if threads never met",
    ),
]

#: The engines of the publications have one log.
LOGS: Literal["shared", "per-thread"] = "shared"

EngineLogs = Annotated[
    Literal["shared", "per-thread"],
    Field(
        description="whether threads append to one write-ahead log, one after the other, or have a log each, "
        "of an equal part of log_size",
    ),
]

_COMMITS = (
    "of several threads with one log on the SSD, whether each makes its transaction durable by a write and "
    "a flush of its own, one after the other, or in a group: whoever finds none under way writes and flushes "
    "what all have appended"
)
CommitsOrAuto = Annotated[
    Literal["auto", "single", "group"], Field(description=f"{_COMMITS}; auto: in groups where they can be")
]

#: The engines of the publications count.
FIXES: Literal["counted", "optimistic"] = "counted"

EngineFixes = Annotated[
    Literal["counted", "optimistic"],
    Field(
        description="how a buffer manager keeps a page where it is while threads use it: counted in the head "
        "of its frame, or optimistic: not at all, readers learn from its latch that it has gone; needs "
        "latches = 'optimistic'",
    ),
]

#: What TPC-C asks for; and what most systems do.
LOCKS: Literal["rows", "early", "none"] = "rows"

EngineLocks = Annotated[
    Literal["rows", "early", "none"],
    Field(
        description="of several threads that run tpcc, until when a transaction locks the rows that it uses; "
        "rows: until it is durable; early: until it has its place in the log; none: never",
    ),
]
