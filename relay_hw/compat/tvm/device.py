"""TVM's devices: where a script wants its data, and what `on_device` and the targets of `relay.build` name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from relay_hw.errors import InputError
from relay_hw.support.names import one_of

_TYPES: Final = {"cpu": 1, "llvm": 1, "c": 1, "cuda": 2, "gpu": 2, "nvptx": 2, "opencl": 4, "ext_dev": 12}
# The first name of each code is that of the kind.
_KINDS: Final = {code: name for name, code in reversed(_TYPES.items())}


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a kind, by number; `device_type` is TVM's code of the kind."""

    kind: str
    device_id: int = 0

    @property
    def device_type(self) -> int:
        return _TYPES[self.kind]

    @property
    def exist(self) -> bool:
        """Whether the device exists: only the CPU does."""
        return self.device_type == 1

    def sync(self) -> None:
        """Do nothing: every call is synchronous."""

    def __str__(self) -> str:
        return f"{self.kind}({self.device_id})"


def device(dev_type: str | int, dev_id: int = 0) -> Device:
    """A device by TVM's name or code of its kind. Raises InputError for an unknown one."""
    name = _KINDS.get(dev_type, "") if isinstance(dev_type, int) else dev_type.split()[0] if dev_type else ""
    if name not in _TYPES:
        raise InputError(one_of("device", _TYPES, dev_type))
    return Device(_KINDS[_TYPES[name]], dev_id)


def cpu(dev_id: int = 0) -> Device:
    """The processor."""
    return Device("cpu", dev_id)


def cuda(dev_id: int = 0) -> Device:
    """A device of CUDA, for scripts that name one."""
    return Device("cuda", dev_id)


gpu = cuda


def opencl(dev_id: int = 0) -> Device:
    """A device of OpenCL, for scripts that name one."""
    return Device("opencl", dev_id)


def ext_dev(dev_id: int = 0) -> Device:
    """An accelerator."""
    return Device("ext_dev", dev_id)
