"""What a trace is imported from: a form of file is a class here below, and one line in `exchange.py`."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pmsim.trace.rows import Rows


class Source(ABC):
    """A file that another program has written."""

    #: As `pmsim trace info` names it.
    form: ClassVar[str]

    @abstractmethod
    def outline(self) -> tuple[list[int], int]:
        """Return what the file calls its threads, in order, and how many operations of the workload end."""

    @abstractmethod
    def pieces(self) -> Iterator[Rows]:
        """Read the file, piece by piece."""

    def kept(self) -> Mapping[str, Any]:
        """Return how the run was driven that the file was exported from, and its provenance, if it says so."""
        return {}
