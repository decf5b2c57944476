"""Sizes of VTA: each configuration gives the sizes that VTA derives from it, and bad documents are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relay_hw.errors import InputError
from relay_hw.vta.geometry import FOLDER, Buffer, Core, config_names, load_geometry, read_geometry

DOCUMENT = json.loads((FOLDER / "pynq.json").read_text())


@pytest.mark.parametrize(
    ("name", "core", "uops"),
    [("pynq", Core.HLS, 8192), ("ultra96", Core.HLS, 8192), ("de10nano", Core.CHISEL, 2048)],
)
def test_sizes_of_the_published_configurations(name: str, core: Core, uops: int) -> None:
    one = load_geometry(name)
    assert (one.core, one.batch, one.block) == (core, 1, 16)
    assert one.title == "1x16_i8w8a32_15_15_18_17"
    found = {buffer: (one.entry_bytes(buffer), one.depth(buffer)) for buffer in Buffer if buffer != Buffer.ACC_8BIT}
    assert found == {
        Buffer.UOP: (4, uops),
        Buffer.INP: (16, 2048),
        Buffer.WGT: (256, 1024),
        Buffer.ACC: (64, 2048),
        Buffer.OUT: (16, 2048),
    }
    # 480 KiB on the chip.
    assert sum(one.entry_bytes(b) << one.log_depth(b) for b in found) == 480 << 10


def test_sizes_of_the_others() -> None:
    one = load_geometry("pynq_4x8")
    assert (one.batch, one.block, one.title) == (4, 8, "4x8_i8w8a32_15_16_16_18")
    assert [one.log_depth(b) for b in (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC)] == [13, 11, 10, 11]
    small = load_geometry("small")
    assert [small.log_depth(b) for b in (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC)] == [10, 9, 5, 7]
    assert config_names() == ("de10nano", "pynq", "pynq_4x8", "small", "ultra96")


def test_a_file_of_the_user(tmp_path: Path) -> None:
    path = tmp_path / "vta_config.json"
    path.write_text(json.dumps({**DOCUMENT, "TARGET": "tsim"}))
    assert load_geometry(str(path)).core is Core.CHISEL
    path.write_text("{")
    with pytest.raises(InputError, match=r"vta_config.json must be a vta_config.json: .*line 1"):
        load_geometry(str(path))
    with pytest.raises(InputError, match="configuration of target vta must be one of de10nano, pynq, pynq_4x8, small"):
        load_geometry("pink")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"LOG_BLOCK": "4"}, "LOG_BLOCK of vta_config.json must be an integer from 0 to 24, not '4'"),
        ({"LOG_INP_WIDTH": 4}, "LOG_INP_WIDTH of vta_config.json must be 3, not 4"),
        ({"TARGET": "pink"}, "TARGET of vta_config.json must be one of pynq, .*, not pink"),
        ({"HW_VER": 1}, "HW_VER of vta_config.json must be a text, not 1"),
        ({"LOG_WGT_BUFF_SIZE": 19}, "indices of a micro-op must have 32 bits together, not 33"),
        ({"LOG_UOP_BUFF_SIZE": 16}, "indices of micro-ops must have at most 13 bits, not 14"),
        ({"LOG_INP_BUFF_SIZE": 14}, "ACC must have at most as many entries as INP, 1024, not 2048"),
        (
            {"LOG_WGT_BUFF_SIZE": 15, "LOG_INP_BUFF_SIZE": 16},
            "indices of ACC and INP must have 22 bits together, not 23",
        ),
        ({"LOG_WGT_BUFF_SIZE": 8}, "each buffer of .* must hold two entries"),
    ],
)
def test_what_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_geometry({**DOCUMENT, **change})


def test_what_is_no_document() -> None:
    with pytest.raises(InputError, match=r"vta_config\.json must be an object of sizes"):
        read_geometry([])
    with pytest.raises(InputError, match=r"vta_config\.json must have LOG_BLOCK"):
        read_geometry({key: value for key, value in DOCUMENT.items() if key != "LOG_BLOCK"})
