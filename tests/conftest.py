"""Settings that every test shares."""

from hypothesis import settings

# No wall clock in a verdict (deadline) and the same examples everywhere (derandomize): red is red for all.
settings.register_profile("pmsim", deadline=None, derandomize=True, database=None)
settings.load_profile("pmsim")
