"""Values of the partial evaluator: partly known values, environments, contents of references.

A value that nothing outside of the evaluator has seen yet needs no code; `code` is that of one that has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from numpy.typing import NDArray

from relay_hw.ir.expr import Constructor, Expr, Function, Let, Var
from relay_hw.ir.types import Type, TypeVar

_serial = count()


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """A tensor whose elements are known."""

    data: NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Fields:
    """A tuple, or with a constructor a value of a data type, whose parts are known as far as they are."""

    parts: tuple[PartialValue, ...]
    constructor: Constructor | None = None
    type_args: tuple[Type, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A function and the values of its free variables."""

    function: Function
    env: Env
    captured: tuple[Var, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """A reference; the store holds its content."""

    serial: int = field(default_factory=lambda: next(_serial))


_NOTHING: frozenset[Any] = frozenset()

Static = Number | Fields | Known | Cell


@dataclass(slots=True, eq=False)
class PartialValue:
    """`static` is what is known; `code`, valid while `block` is open, is an atom that computes it."""

    static: Static | None = None
    code: Expr | None = None
    block: ResidualBlock | None = None
    _cells: frozenset[PartialValue] | None = None

    @property
    def atom(self) -> Expr | None:
        """The code, if it is in scope."""
        return self.code if self.block is None or self.block.is_open else None

    def cells(self) -> frozenset[PartialValue]:
        """The references that can be reached without reading one."""
        if self._cells is None:
            is_leaf = self.static is None or isinstance(self.static, Number)
            self._cells = _NOTHING if is_leaf else _reach(self)
        return self._cells


def parts_of(value: PartialValue) -> Iterator[PartialValue]:
    """The values that `value` is made of."""
    match value.static:
        case Fields(parts=parts):
            yield from parts
        case Known(env=env, captured=captured):
            for var in captured:
                found = env.find(var)
                if found is not None:
                    yield found
        case _:
            return


def _reach(root: PartialValue) -> frozenset[PartialValue]:
    """Iterative: chains of closures are as long as the program. A function that holds itself is on its own path."""
    done: dict[PartialValue, frozenset[PartialValue]] = {}
    entered: set[PartialValue] = set()
    stack = [root]
    while stack:
        top = stack[-1]
        if top in done or top._cells is not None:
            done.setdefault(top, top._cells or frozenset())
            stack.pop()
            continue
        if isinstance(top.static, Cell):
            done[top] = frozenset((top,))
            continue
        inner = list(parts_of(top))
        missing = [part for part in inner if part not in done and part not in entered]
        if top not in entered and missing:
            entered.add(top)
            stack.extend(missing)
            continue
        entered.add(top)
        done[top] = frozenset().union(*(done.get(part, part._cells or frozenset()) for part in inner))
        top._cells = done[top]
    return done[root]


class ResidualBlock:
    """Bindings of a block of the residual program; `parent` is the one around it."""

    def __init__(self) -> None:
        self._bound: list[tuple[Var, Expr]] = []
        self.is_open = True

    def emit(self, value: Expr, name: str) -> Var:
        """A new variable for `value`."""
        var = Var(name)
        self._bound.append((var, value))
        return var

    def bind(self, var: Var, value: Expr) -> None:
        """`value` under a given variable."""
        self._bound.append((var, value))

    def close(self, body: Expr) -> Expr:
        """`body` under the bindings; the variables are out of scope from here on."""
        self.is_open = False
        for var, value in reversed(self._bound):
            body = value if body is var else Let(var, value, body)
        return body


class Env:
    """Values of variables, and of type parameters, in scope."""

    __slots__ = ("_parent", "_values", "types")

    def __init__(self, parent: Env | None = None, types: Mapping[TypeVar, Type] | None = None) -> None:
        self._parent = parent
        self._values: dict[Var, PartialValue] = {}
        inherited = parent.types if parent is not None else {}
        self.types: Mapping[TypeVar, Type] = {**inherited, **types} if types else inherited

    def bind(self, var: Var, value: PartialValue) -> None:
        """Bind `var` to `value`."""
        self._values[var] = value

    def find(self, var: Var) -> PartialValue | None:
        """The value of `var`; None for a free variable of the whole program."""
        env: Env | None = self
        while env is not None:
            found = env._values.get(var)
            if found is not None:
                return found
            env = env._parent
        return None


class Store:
    """Known contents of references. Virtual references, without code, exist only here."""

    def __init__(self) -> None:
        self._contents: dict[PartialValue, PartialValue] = {}
        # Those whose content holds references.
        self._holders: set[PartialValue] = set()

    def copy(self) -> Store:
        """The same knowledge, to go on with in a branch."""
        new = Store()
        new._contents.update(self._contents)
        new._holders.update(self._holders)
        return new

    def get(self, ref: PartialValue) -> PartialValue | None:
        return self._contents.get(ref)

    def set(self, ref: PartialValue, value: PartialValue) -> None:
        self._contents[ref] = value
        if value.cells():
            self._holders.add(ref)
        else:
            self._holders.discard(ref)

    def forget(self) -> None:
        """Something unknown has run: only what it cannot know of is still certain."""
        self._keep({ref: value for ref, value in self._contents.items() if ref.code is None})

    def meet(self, others: Sequence[Store]) -> None:
        """After branches: what is the same in all of them."""
        self._keep(
            {
                ref: value
                for ref, value in self._contents.items()
                if all(other._contents.get(ref) is value for other in others)
            }
        )

    def _keep(self, contents: dict[PartialValue, PartialValue]) -> None:
        self._contents = contents
        self._holders.intersection_update(contents)

    def reaches(self, value: PartialValue, ref: PartialValue) -> bool:
        """Whether `ref` can be reached from `value`, through contents too."""
        waiting = [value]
        seen: set[PartialValue] = set()
        while waiting:
            cells = waiting.pop().cells()
            if ref in cells:
                return True
            for holder in self._holders:
                if holder in cells and holder not in seen:
                    seen.add(holder)
                    waiting.append(self._contents[holder])
        return False

    def reachable(self, values: Sequence[PartialValue]) -> list[PartialValue]:
        """The references that can be reached from `values`, through contents too, content before holder."""
        order: list[PartialValue] = []
        seen: set[PartialValue] = set()
        stack = [(ref, False) for value in values if value.cells() for ref in sorted_cells(value)]
        while stack:
            ref, is_done = stack.pop()
            if is_done:
                order.append(ref)
                continue
            if ref in seen:
                continue
            seen.add(ref)
            stack.append((ref, True))
            content = self._contents.get(ref)
            if content is not None and ref in self._holders:
                stack.extend((inner, False) for inner in sorted_cells(content))
        return order


def sorted_cells(value: PartialValue) -> list[PartialValue]:
    """The references in `value`, in order of creation."""
    return sorted(value.cells(), key=lambda ref: ref.static.serial if isinstance(ref.static, Cell) else -1)
