"""TVM's NDArray, on top of numpy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from relay_hw.compat.tvm.device import Device, cpu, cuda, device, gpu

__all__ = ["NDArray", "array", "cpu", "cuda", "device", "empty", "gpu", "numpyasarray"]


class NDArray:
    """An array with TVM's methods; numpy takes it wherever it takes arrays."""

    def __init__(self, data: Any, device: Device | None = None) -> None:
        self._data = np.array(data)
        self.device = device or cpu()

    @property
    def shape(self) -> tuple[int, ...]:
        return self._data.shape

    @property
    def dtype(self) -> str:
        return str(self._data.dtype)

    @property
    def ctx(self) -> Device:
        """The device, under its old name."""
        return self.device

    def numpy(self) -> np.ndarray:
        """A copy as a numpy array."""
        return self._data.copy()

    asnumpy = numpy

    def copyto(self, target: NDArray | Device) -> NDArray:
        """Copy into another array, or to a device."""
        if isinstance(target, NDArray):
            target._data[...] = self._data
            return target
        return NDArray(self._data, target)

    def copyfrom(self, source: Any) -> NDArray:
        """Copy from an array."""
        self._data[...] = np.asarray(source)
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self._data if dtype is None else self._data.astype(dtype)

    def __getitem__(self, index: Any) -> Any:
        return self._data[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._data[index] = np.asarray(value)

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._data)

    def __float__(self) -> float:
        return float(self._data)

    def __int__(self) -> int:
        return int(self._data)

    def __bool__(self) -> bool:
        return bool(self._data)

    def __repr__(self) -> str:
        return f"<relay_hw.NDArray shape={self.shape}, {self.device}>\n{self._data!r}"


def array(arr: Any, device: Device | None = None) -> NDArray:
    """An array with a copy of `arr`; Python numbers become float32 as in TVM."""
    if not isinstance(arr, (np.ndarray, np.generic, NDArray)):
        arr = np.asarray(arr, "float32")
    return NDArray(arr, device)


def empty(shape: Sequence[int] | int, dtype: str = "float32", device: Device | None = None) -> NDArray:
    """An array of zeros."""
    return NDArray(np.zeros(shape, dtype), device)


def numpyasarray(values: Iterable[Any]) -> np.ndarray:
    """A numpy array of `values`."""
    return np.asarray(values)


def wrap(value: Any) -> Any:
    """Arrays as `NDArray`, tuples as lists of them; data, references and functions as they are."""
    if isinstance(value, (np.ndarray, np.generic)):
        return NDArray(value)
    return [wrap(item) for item in value] if isinstance(value, tuple) else value


def unwrap(value: Any) -> Any:
    """The opposite of `wrap`."""
    if isinstance(value, NDArray):
        return value.numpy()
    return tuple(unwrap(item) for item in value) if isinstance(value, (list, tuple)) else value
