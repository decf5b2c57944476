"""The host target: the kind of processor that host functions are compiled for, and its model.

In: the texts of `--host` and `--host-target`. Out: `HostTarget`, which also reads back what a build says of itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from relay_hw.errors import InputError
from relay_hw.support.names import one_of

NUMPY = "numpy"
KINDS = ("llvm", "cuda", "opencl", NUMPY)
# Names of architectures that stand for a Linux of that architecture, as LLVM calls it.
TRIPLES = {
    "aarch64": "aarch64-linux-gnu",
    "arm": "arm-linux-gnueabihf",
    "riscv64": "riscv64-linux-gnu",
    "x86_64": "x86_64-linux-gnu",
}
_TRIPLE = re.compile(r"[a-z0-9_]+(-[a-z0-9_.]+){1,3}")
_GPU = re.compile(r"sm_[0-9]{2,3}[af]?")
_WORD = re.compile(r"[A-Za-z0-9_.+-]+")
DEFAULT_GPU = "sm_90"


@dataclass(frozen=True, slots=True)
class HostTarget:
    """`kind`: llvm, cuda, opencl, or numpy, for which nothing is compiled.

    For llvm: `triple` (empty: this machine), `mcpu` and `mattr` as LLVM knows them; for cuda: `gpu`, the architecture
    such as `sm_90`.
    """

    kind: str = "llvm"
    triple: str = ""
    mcpu: str = ""
    mattr: tuple[str, ...] = ()
    gpu: str = ""

    @property
    def arch(self) -> str:
        """First word of the triple, such as `aarch64`; empty for this machine."""
        return self.triple.split("-", 1)[0]

    @property
    def is_native(self) -> bool:
        """Whether CPU code is for the machine that compiles."""
        return not self.triple

    @property
    def is_gpu(self) -> bool:
        """Whether kernels of a GPU are compiled."""
        return self.kind in ("cuda", "opencl")

    @property
    def detail(self) -> str:
        """The value of `--host-target`; empty for the default."""
        cpu = [f"mcpu={self.mcpu}"] if self.mcpu else []
        return ",".join([word for word in (self.triple, self.gpu) if word] + cpu + [f"mattr={a}" for a in self.mattr])

    def __str__(self) -> str:
        return f"{self.kind}:{self.detail}" if self.detail else self.kind


def parse_host(kind: str = "llvm", detail: str | None = None) -> HostTarget:
    """The target of `--host kind --host-target detail`. Raises InputError.

    `detail`, separated by commas: for llvm an architecture or a triple, `mcpu=NAME`, `mattr=+FEATURE` (may be
    repeated); for cuda an architecture such as `sm_90`; for opencl and numpy nothing.
    """
    if kind not in KINDS:
        raise InputError(one_of("host", KINDS, kind))
    words = [word.strip() for word in detail.split(",")] if detail else []
    match kind:
        case "llvm":
            return _cpu(words)
        case "cuda":
            if len(words) > 1 or any(_GPU.fullmatch(word) is None for word in words):
                raise InputError(f"host target of cuda must be an architecture such as {DEFAULT_GPU}, not {detail}")
            return HostTarget("cuda", gpu=words[0] if words else DEFAULT_GPU)
        case _:
            if words:
                raise InputError(f"host target of {kind} must be left out, not be {detail}")
            return HostTarget(kind)


def read_host(text: str | HostTarget) -> HostTarget:
    """The target that `str` of one describes: `llvm`, `llvm:aarch64-linux-gnu,mcpu=cortex-a72`, `cuda:sm_90`."""
    if isinstance(text, HostTarget):
        return text
    kind, _, detail = text.partition(":")
    return parse_host(kind, detail)


def _cpu(words: Sequence[str]) -> HostTarget:
    triple, mcpu, mattr = "", "", []
    for position, word in enumerate(words):
        key, equals, value = word.partition("=")
        if position == 0 and not equals:
            triple = _triple(word)
        elif key == "mcpu" and not mcpu and _WORD.fullmatch(value):
            mcpu = value
        elif key == "mattr" and value[:1] in ("+", "-") and _WORD.fullmatch(value):
            mattr.append(value)
        else:
            _refuse(word)
    return HostTarget("llvm", triple, mcpu, tuple(mattr))


def _triple(word: str) -> str:
    if word in TRIPLES:
        return TRIPLES[word]
    return word if _TRIPLE.fullmatch(word) else _refuse(word)


def _refuse(word: str) -> NoReturn:
    known = ", ".join(TRIPLES)
    raise InputError(f"host target must be {known} or a triple, then mcpu=NAME and mattr=+FEATURE, not {word!r}")
