"""Exceptions of relay_hw and tensorize. Each message is one sentence: X must be Y, not Z, and where."""

from __future__ import annotations

from relay_hw.span import Span
from relay_hw.support import quote


class RelayHwError(Exception):
    """Base of all exceptions. `span`, if known, is put in front of the message as `file:line:column:`.

    `detail` is the source line with the place underlined, where the source is at hand; else empty.
    """

    def __init__(self, message: str, span: Span | None = None, detail: str = "") -> None:
        # Names from a file may hold anything.
        message = quote.sentence(message)
        super().__init__(f"{quote.sentence(span)}: {message}" if span is not None else message)
        self.message = message
        self.span = span
        self.detail = detail


class ParseError(RelayHwError):
    """Relay text that cannot be read."""


class TypeCheckError(RelayHwError):
    """A program with a type error."""


class WellFormedError(RelayHwError):
    """A program that breaks a structural rule: an unbound or twice bound variable, an unknown global."""


class UnsupportedError(RelayHwError):
    """A feature of the input that is not supported."""


class EvalError(RelayHwError):
    """A program that fails while it is evaluated: a match without a matching arm, a division by zero."""


class QuantizeError(RelayHwError):
    """A strategy that cannot be applied: no calibration data, an unknown name, bits out of range."""


class TensorizeError(RelayHwError):
    """A function that does not fit the accelerator configuration, or a finished program that fails its check."""


class ArtifactError(RelayHwError):
    """A build folder that is missing, damaged, or made for something else."""


class InputError(RelayHwError):
    """User input (files, arrays, options) of the wrong name, shape or kind."""
