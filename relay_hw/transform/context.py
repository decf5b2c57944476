"""PassContext: which passes run, their configuration, and instruments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from relay_hw.errors import InputError
from relay_hw.ir.module import IRModule
from relay_hw.support.names import one_of

# Keys of `config`: the type of the value, and a description.
CONFIG: Final[Mapping[str, tuple[type, str]]] = MappingProxyType(
    {
        "relay.FuseOps.max_depth": (int, "how many calls a fused function may hold"),
        "relay.FuseOps.link_params": (bool, "whether fused functions take their constants in"),
        "relay.fallback_device_type": (int, "where what names no device runs: 1 is cpu, 2 is cuda"),
        "relay.backend.use_auto_scheduler": (bool, "accepted and ignored"),
        "relay.backend.use_meta_schedule": (bool, "accepted and ignored"),
        "relay.collage.byoc_max_depth": (int, "accepted and ignored"),
        "tir.disable_vectorize": (bool, "accepted and ignored"),
    }
)


@dataclass(frozen=True, slots=True)
class PassInfo:
    """Metadata of a pass: `required` names the passes that must run before it."""

    opt_level: int
    name: str
    required: tuple[str, ...] = ()


class PassInstrument:
    """Base class of instruments: does nothing; override methods of interest."""

    def enter_pass_ctx(self) -> None:
        """The context is entered."""

    def exit_pass_ctx(self) -> None:
        """The context is left."""

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        """Whether the pass runs, unless it is required."""
        return True

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """`mod` goes into the pass."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """`mod` came out of the pass."""


class PassContext:
    """`with PassContext(opt_level=3): ...` decides what a `Sequential` runs, and tells instruments of every pass.

    A `Sequential` leaves out passes above `opt_level` unless `required_pass` names them, and those that `disabled_pass`
    names. Raises InputError for an unknown key or a wrong value in `config`.
    """

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Sequence[str] | None = None,
        disabled_pass: Sequence[str] | None = None,
        instruments: Sequence[PassInstrument] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.opt_level = opt_level
        self.required_pass = frozenset(map(_key, required_pass or ()))
        self.disabled_pass = frozenset(map(_key, disabled_pass or ()))
        self.instruments = list(instruments or ())
        self.config = MappingProxyType(dict(config or {}))
        self._tokens: list[Token[PassContext | None]] = []
        for key, value in self.config.items():
            _check_config(key, value)

    def __enter__(self) -> PassContext:
        self._tokens.append(_CURRENT.set(self))
        for instrument in self.instruments:
            instrument.enter_pass_ctx()
        return self

    def __exit__(self, *error: object) -> None:
        for instrument in self.instruments:
            instrument.exit_pass_ctx()
        _CURRENT.reset(self._tokens.pop())

    @staticmethod
    def current() -> PassContext:
        """The innermost context that has been entered, else one with the defaults."""
        return _CURRENT.get() or PassContext()

    def override_instruments(self, instruments: Sequence[PassInstrument] | None) -> None:
        """Replace the instruments; the old ones leave the context, the new ones enter it."""
        for instrument in self.instruments:
            instrument.exit_pass_ctx()
        self.instruments = list(instruments or ())
        for instrument in self.instruments:
            instrument.enter_pass_ctx()

    def pass_enabled(self, info: PassInfo) -> bool:
        """Whether a `Sequential` runs this pass."""
        name = _key(info.name)
        if name in self.disabled_pass:
            return False
        return name in self.required_pass or info.opt_level <= self.opt_level

    def before(self, mod: IRModule, info: PassInfo) -> bool:
        """Ask and tell the instruments; whether the pass runs. A required pass always does."""
        # Every instrument is called, as each may keep statistics.
        wanted = [instrument.should_run(mod, info) for instrument in self.instruments]
        if not all(wanted) and _key(info.name) not in self.required_pass:
            return False
        for instrument in self.instruments:
            instrument.run_before_pass(mod, info)
        return True

    def after(self, mod: IRModule, info: PassInfo) -> None:
        """Tell the instruments that the pass is done."""
        for instrument in self.instruments:
            instrument.run_after_pass(mod, info)


_CURRENT: ContextVar[PassContext | None] = ContextVar("relay_hw_pass_context", default=None)


def _key(name: str) -> str:
    """`FoldConstant` and `fold-constant` name the same pass."""
    return name.replace("-", "").replace("_", "").lower()


def _check_config(key: str, value: object) -> None:
    if key not in CONFIG:
        raise InputError(one_of("configuration of passes", CONFIG, key))
    wanted = CONFIG[key][0]
    if not isinstance(value, wanted):
        raise InputError(f"{key} must be {wanted.__name__}, not {type(value).__name__}")
