"""Search order over a design space: the whole grid, random points, or neighbours of the front.

In: a space, what was found so far. Out: numbers in rounds. A round depends on earlier rounds alone, never on time or on
who was quicker, so the same search finds the same points with one process and with many.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from enum import Enum
from typing import Final

import numpy as np

from relay_hw.errors import InputError
from relay_hw.explore.space import Space
from relay_hw.support.names import one_of

# Points of a round: enough for the cores of a machine, few enough to learn from.
ROUND: Final = 32
# A grid of more points than this is looked at in part.
MOST_OF_GRID: Final = 20_000
# Of a smart search's points, those drawn at random before it climbs, and of each later round.
_SEED_SHARE, _FRESH_SHARE = 4, 8
# Spaces up to this size are enumerated.
_MOST_SHUFFLED: Final = 1 << 20

# Numbers to look at go out; those of the front come back.
Rounds = Generator[list[int], Collection[int], None]


class Search(Enum):
    """How a space is searched."""

    GRID = "grid"
    RANDOM = "random"
    SMART = "smart"


def read_search(text: str) -> Search:
    """A search by name. Raises InputError."""
    known = {search.value: search for search in Search}
    if text not in known:
        raise InputError(one_of("search", known, text))
    return known[text]


def rounds(
    search: Search, space: Space, points: int, seed: int, is_legal: Callable[[int], bool], order: Callable[[int], float]
) -> Rounds:
    """Rounds of a search of `points` legal points; a grid has all. `order`: the smallest first. Raises InputError."""
    match search:
        case Search.GRID:
            if space.size > MOST_OF_GRID:
                raise InputError(
                    f"a grid must have at most {MOST_OF_GRID:,} points, not {space.size:,}: search random or smart"
                )
            return _all(sorted(range(space.size), key=lambda number: (order(number), number)))
        case Search.RANDOM:
            return _all(_drawn(space, points, seed, is_legal))
        case Search.SMART:
            return _smart(space, points, seed, is_legal)


def _all(numbers: Sequence[int]) -> Rounds:
    for begin in range(0, len(numbers), ROUND):
        yield list(numbers[begin : begin + ROUND])


def _drawn(space: Space, points: int, seed: int, is_legal: Callable[[int], bool]) -> list[int]:
    """Numbers in random order until they include `points` legal ones; the illegal ones show what is refused."""
    found: list[int] = []
    legal = 0
    for number in _shuffled(space, seed):
        if legal == points:
            break
        found.append(number)
        legal += is_legal(number)
    return found


def _shuffled(space: Space, seed: int) -> Iterator[int]:
    rng = np.random.default_rng(seed)
    if space.size <= _MOST_SHUFFLED:
        yield from rng.permutation(space.size).tolist()
        return
    seen: set[int] = set()
    for number in rng.integers(space.size, size=_MOST_SHUFFLED).tolist():
        if number not in seen:
            seen.add(number)
            yield number


def _smart(space: Space, points: int, seed: int, is_legal: Callable[[int], bool]) -> Rounds:
    """Some points at random, then those one step away from the front, with some fresh ones in each round."""
    fresh = _shuffled(space, seed)
    seen: set[int] = set()
    legal = 0

    def draw(count: int) -> list[int]:
        """So many legal fresh points, with the refused ones between them."""
        found: list[int] = []
        for number in fresh:
            if number not in seen:
                seen.add(number)
                found.append(number)
                count -= is_legal(number)
                if not count:
                    break
        return found

    def beside(front: Collection[int], count: int) -> list[int]:
        near = [number for one in sorted(front) for number in space.near(one)]
        found: list[int] = []
        for number in dict.fromkeys(near):
            if number not in seen and count:
                seen.add(number)
                found.append(number)
                count -= is_legal(number)
        return found

    front: Collection[int] = ()
    while legal < points:
        left = min(ROUND, points - legal)
        seeding = legal < points // _SEED_SHARE
        numbers = [] if seeding else beside(front, left - left // _FRESH_SHARE)
        more = left - sum(map(is_legal, numbers))
        numbers += draw(more) if more else []
        if not numbers:
            return
        legal += sum(map(is_legal, numbers))
        front = yield numbers
