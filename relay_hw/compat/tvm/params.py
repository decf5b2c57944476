"""TVM's functions for `.params` files. In: arrays by name. Out: bytes or a file; and back, as TVM's arrays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relay_hw.compat.tvm.nd import NDArray
from relay_hw.errors import InputError
from relay_hw.support import durable
from relay_hw.text import load_param_dict as load_arrays
from relay_hw.text import save_param_dict

__all__ = ["load_param_dict", "load_param_dict_from_file", "save_param_dict", "save_param_dict_to_file"]


def load_param_dict(param_bytes: bytes | bytearray) -> dict[str, NDArray]:
    """The arrays of a `.params` file. Raises InputError for anything else."""
    return {name: NDArray(array) for name, array in load_arrays(param_bytes).items()}


def save_param_dict_to_file(params: Mapping[str, Any], path: str | Path) -> None:
    """Write a `.params` file. Raises InputError for arrays that hold no numbers."""
    durable.write_file(Path(path), save_param_dict(params))


def load_param_dict_from_file(path: str | Path) -> dict[str, NDArray]:
    """Read a `.params` file. Raises InputError for anything else."""
    try:
        data = durable.read_given(Path(path))
    except OSError as error:
        raise InputError(f"{path} must be a readable file of parameters: {error.strerror}") from None
    return load_param_dict(data)
