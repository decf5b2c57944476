"""Sentences about a name that is none of those known, with the one that was perhaps meant.

In: the known names and the one given. Out: text for an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def one_of(what: str, known: Iterable[object], given: object) -> str:
    """`what` must be one of `known`, not `given`; did you mean that one?"""
    names = [str(name) for name in known]
    return f"{what} must be one of {', '.join(names) or 'none'}, not {given}{did_you_mean(str(given), names)}"


def did_you_mean(given: str, known: Iterable[str], sign: str = "", least: float = 0.6) -> str:
    """`; did you mean NAME?` where a known name is near, else nothing. `sign` stands before the name.

    `least`: how alike they must be, from 0 to 1, as difflib's ratio counts it; case does not matter.
    """
    lower = {name.lower(): name for name in reversed(list(known))}
    near = get_close_matches(given.lower(), lower, 1, least)
    return f"; did you mean {sign}{lower[near[0]]}?" if near else ""
