"""Results of translating decorated functions: Relay functions, and the interface of translations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from relay_hw.ir.expr import Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import FuncType, TensorType


class Decorated(Protocol):
    """A function decorated with `relay` or `relay_model`, as one that calls it sees it."""

    name: str
    is_model: bool

    def is_open(self, batch: int | None) -> bool:
        """Whether the function is being translated, so that a call of it is recursive."""
        ...

    def translated(self, batch: int | None = None) -> Translated:
        """The function in Relay, for samples or for batches of `batch` of them."""
        ...

    def declared_type(self, batch: int | None) -> FuncType | None:
        """The type by the annotations; None without one of the result."""
        ...

    def module(self, batch: int | None = None) -> IRModule:
        """The typed module; the function stands under its own name."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Translated:
    """A Relay function; `hidden` names its last parameters. `model` is set where it returns one."""

    function: Function
    type: FuncType
    hidden: tuple[tuple[str, TensorType], ...]
    needs: Mapping[str, Function]
    uses: tuple[Translation, ...]
    model: Any


@dataclass(frozen=True, slots=True, eq=False)
class Translation:
    """A decorated function, for samples or for batches of `batch` of them."""

    owner: Decorated
    batch: int | None

    @property
    def name(self) -> str:
        """The name of its Relay function."""
        return self.owner.name if self.batch is None else f"{self.owner.name}_{self.batch}"
