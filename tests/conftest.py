"""Settings that every test shares."""

import os

from hypothesis import settings

# No wall clock in a verdict (deadline) and the same examples everywhere (derandomize): red is red for all.
settings.register_profile("pmsim", deadline=None, derandomize=True, database=None)
settings.load_profile("pmsim")


def pytest_runtest_setup() -> None:
    """Let neither the caller's terminal nor pytest-xdist, whose workers have 80, say how wide output is."""
    os.environ.pop("COLUMNS", None)
