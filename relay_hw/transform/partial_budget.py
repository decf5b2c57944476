"""How far PartialEvaluate goes. In: functions that are called or become closures. Out: whether to unfold them.

What surely runs once is unfolded as it would run: the code is no longer than the run. A branch on something unknown,
and the body of a closure, may run never or many times, so what is unfolded into them must end, and be worth its size:

- No call is unfolded behind an unknown decision that an unfolding of the same function led to, and no closure is
  specialised inside of itself: each time would be like the one before, without end.
- Branches and closures that come from an unfolding multiply; all of them share one allowance of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from relay_hw.ir.expr import Function
from relay_hw.ir.visit import post_order


@dataclass(frozen=True, slots=True)
class Limits:
    """`calls`: unfoldings altogether; `recursion`: of functions that are being unfolded already; `growth`: nodes of
    functions that are unfolded where what runs is not known."""

    calls: int
    recursion: int
    growth: int


class Budget:
    """What is left for one function of the module, and what lies around the place that is evaluated."""

    def __init__(self, function: Function, limits: Limits) -> None:
        self._calls_left = limits.calls
        self._recursions_left = limits.recursion
        self._growth_left = limits.growth
        self._sizes: dict[Function, int] = {}
        # Closures that the function itself writes: there are as many as there are.
        self._own = {node for node in post_order(function.body) if isinstance(node, Function)}
        # Unknown decisions around this place.
        self._decisions = 0
        # For each function that is being evaluated, how many of them lay around each of its calls.
        self._running: dict[Function, list[int]] = {function: [-1]}
        self._coded: set[Function] = set()
        # Unfoldings around this place, inside of the innermost closure that the function itself writes.
        self._depth = 0
        self._is_charged = False
        self._is_held = False

    def may_unfold(self, function: Function) -> bool:
        """Whether a call of `function` shall be replaced by its body; if so, that is paid for."""
        if self._is_held or self._calls_left <= 0:
            return False
        self._calls_left -= 1
        running = self._running.get(function)
        if not running:
            return self._pay(function)
        if running[-1] != self._decisions or self._recursions_left <= 0:
            return False
        self._recursions_left -= 1
        return True

    def may_specialise(self, function: Function) -> bool:
        """Whether a closure shall be specialised to what it captures; if so, that is paid for."""
        if self._is_held or function in self._coded:
            return False
        return function in self._own or self._pay(function)

    def _pay(self, function: Function) -> bool:
        if not self._is_charged:
            return True
        price = self._size(function)
        if price > self._growth_left:
            return False
        self._growth_left -= price
        return True

    def _size(self, function: Function) -> int:
        if function not in self._sizes:
            self._sizes[function] = sum(1 for _ in post_order(function.body))
        return self._sizes[function]

    @contextmanager
    def unfolding(self, function: Function) -> Iterator[None]:
        """While the body of `function` stands for a call of it."""
        running = self._running.setdefault(function, [])
        running.append(self._decisions)
        self._depth += 1
        yield
        self._depth -= 1
        running.pop()

    @contextmanager
    def branching(self) -> Iterator[None]:
        """While branches are written of which one will run."""
        charged = self._is_charged
        self._is_charged = charged or self._depth > 0
        self._decisions += 1
        yield
        self._decisions -= 1
        self._is_charged = charged

    @contextmanager
    def closing(self, function: Function, is_special: bool) -> Iterator[None]:
        """While the body of a closure is written, specialised or as it is."""
        state = self._depth, self._is_charged, self._is_held
        is_own, is_inner = function in self._own, function in self._coded
        self._depth = 0 if is_own else self._depth
        self._is_charged |= not is_own
        self._is_held |= not is_special
        running = self._running.setdefault(function, [])
        running.append(-1)
        self._coded.add(function)
        self._decisions += 1
        yield
        self._decisions -= 1
        if not is_inner:
            self._coded.discard(function)
        running.pop()
        self._depth, self._is_charged, self._is_held = state
