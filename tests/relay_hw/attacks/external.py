"""Attacks by weights that lie in other files: each would read, or wait for, what is not the model's."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from onnx import TensorProto

from tests.relay_hw.attacks.table import Attack, Deed, checked, info, model, node

SECRET = b"\0" * 64


def _external(entries: Mapping[str, str] | list[tuple[str, str]], dims: tuple[int, ...] = (2,)) -> TensorProto:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in entries.items() if isinstance(entries, Mapping) else entries:
        tensor.external_data.add(key=key, value=value)
    return tensor


def _placed(
    name: str,
    entries: Mapping[str, str] | list[tuple[str, str]],
    prepare: Callable[[Path], object] = lambda folder: None,
    dims: tuple[int, ...] = (2,),
    words: tuple[str, ...] = ("--external-data",),
) -> Attack:
    """A model below `folder/model` whose weight lies where `entries` say; `folder/secret` is what it wants."""

    def make(folder: Path) -> Deed:
        (folder / "secret").write_bytes(SECRET)
        inner = folder / "model"
        inner.mkdir()
        prepare(inner)
        given = model([node("Add", ["x", "w"], "y")], [_external(entries, dims)], inputs=[info("x", dims)])
        return checked(inner, given, *words)

    return Attack(name, make)


def _absolute(folder: Path) -> Deed:
    (folder / "secret").write_bytes(SECRET)
    given = model([node("Add", ["x", "w"], "y")], [_external({"location": str(folder / "secret")})])
    return checked(folder, given, "--external-data")


def _in_attribute(folder: Path) -> Deed:
    constant = node("Constant", [], "c")
    constant.attribute.add(name="value", type=4).t.CopyFrom(_external({"location": "../secret"}))
    return checked(folder, model([constant, node("Add", ["x", "c"], "y")]), "--external-data")


def _write(name: str, data: bytes = SECRET) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(data)


ATTACKS = (
    _placed("CVE-2022-25882: a weight in ../secret", {"location": "../secret"}),
    _placed("CVE-2024-27318: a weight in x/../../secret", {"location": "x/../../secret"}, lambda f: (f / "x").mkdir()),
    Attack("CVE-2022-25882: a weight at an absolute path", _absolute),
    Attack("CVE-2022-25882: a weight of an attribute in ../secret", _in_attribute),
    _placed("CVE-2026-34447: a link", {"location": "w"}, lambda f: (f / "w").symlink_to("../secret")),
    _placed("CVE-2026-27489: a linked folder", {"location": "d/secret"}, lambda f: (f / "d").symlink_to("..")),
    _placed("CVE-2026-34446: a hard link", {"location": "w"}, lambda f: os.link(f.parent / "secret", f / "w")),
    _placed("CVE-2026-34445: a length of 2^50", {"location": "w", "length": str(1 << 50)}, _write("w")),
    _placed("CVE-2026-34445: a negative length", {"location": "w", "length": "-8"}, _write("w")),
    _placed("CVE-2026-34445: a negative offset", {"location": "w", "offset": "-8"}, _write("w")),
    _placed("CVE-2026-34445: an offset of 2^62", {"location": "w", "offset": str(1 << 62)}, _write("w")),
    _placed("CVE-2026-34445: an offset of 5,000 digits", {"location": "w", "offset": "9" * 5000}, _write("w")),
    _placed("CVE-2026-34445: keys that set attributes", {"basepath": "..", "__class__": "str", "__dict__": "{}"}),
    _placed("external data: NUL in the name", {"location": "w\0../secret"}, _write("w")),
    _placed("external data: no name", {"location": ""}),
    _placed("external data: two names", [("location", "w"), ("location", "../secret")], _write("w")),
    _placed("external data: backslashes", {"location": "..\\secret"}),
    _placed("external data: a drive", {"location": "C:secret"}),
    _placed("external data: a folder", {"location": "d"}, lambda f: (f / "d").mkdir()),
    _placed("external data: the folder itself", {"location": "."}),
    _placed("external data: a device", {"location": "/dev/zero"}),
    _placed("external data: a pipe without writer", {"location": "w"}, lambda f: os.mkfifo(f / "w")),
    _placed("external data: a short file", {"location": "w"}, _write("w", b"1234")),
    _placed("external data: 2^40 elements", {"location": "w"}, _write("w"), (1 << 40,)),
    _placed("external data: a name of 100,000 letters", {"location": "w" * 100_000}),
    _placed("external data: not asked for", {"location": "w"}, _write("w"), words=()),
)
