"""The exceptions of pmsim: one family, one positional argument each, the message.

A message names what is wrong and the remedy on one line: ``FILE: key: problem; remedy``.
"""


class PmsimError(Exception):
    """Base of everything that pmsim raises on purpose."""

    def __init__(self, message: str) -> None:
        super().__init__(message)

    def prefixed(self, prefix: str) -> "PmsimError":
        """Return the same error with ``prefix: `` in front of its message."""
        return type(self)(f"{prefix}: {self}")


class ConfigError(PmsimError, ValueError):
    """The user asked for something that cannot be; the command line exits with status 2."""


class CapacityError(ConfigError):
    """Data do not fit into the memories that they were given."""


class HostMemoryError(PmsimError):
    """A simulation needs more memory than this host has; on another host the same point has a result."""


class SimulationError(PmsimError):
    """The simulation broke one of its own rules, for example by a deadlock."""


class InternalError(PmsimError):
    """A state that pmsim promises never to reach: a bug of pmsim."""
