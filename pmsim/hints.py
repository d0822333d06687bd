"""Hints for messages: the names that a typo may have meant."""

import difflib
from collections.abc import Iterable


def nearest(name: object, known: Iterable[str]) -> str:
    """Say which known names are nearest to ``name``, or list the known names where none is near."""
    name = str(name)  # Python callers may have given anything
    names = [str(candidate) for candidate in known]
    close = [candidate for candidate in names if name and candidate.lower().startswith(name.lower())][:3]
    close = close or difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if not close:
        folded = {candidate.lower(): candidate for candidate in names}
        close = [folded[match] for match in difflib.get_close_matches(name.lower(), folded, n=3, cutoff=0.6)]
    if close:
        return "did you mean " + " or ".join(f"'{candidate}'" for candidate in close) + "?"
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f"known: {shown}" if shown else "none is known"
