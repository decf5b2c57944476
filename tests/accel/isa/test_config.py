"""Configurations: the shipped ones, and the sentence for each that no hardware could have."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from relay_hw.accel.isa.config import AccelConfig, config_from_dict, config_names, load_config
from relay_hw.accel.isa.errors import ConfigError

TINY = load_config("tiny")


def sizes(config: AccelConfig) -> dict[str, object]:
    return {key: value for key, value in asdict(config).items() if key != "name"}


def test_shipped_configurations() -> None:
    assert {"default", "ecp5", "tiny", "w4", "wide"} <= set(config_names())
    configs = [load_config(name) for name in config_names()]
    assert len({config.hash32 for config in configs}) == len(configs)
    assert load_config("default").macs_per_cycle == 256
    assert load_config("default").scratchpad_bytes == 520 * 1024
    assert load_config("ecp5").macs_per_cycle >= 128


@pytest.mark.parametrize("name", config_names())
def test_derived_sizes(name: str) -> None:
    c = load_config(name)
    assert c.granule_bytes % c.bus_bytes == 0
    assert c.granule_bytes % 16 == 0
    assert c.channel_align % c.granule_bytes == c.channel_align % c.inp_lanes == c.channel_align % c.block_out == 0
    assert c.acc_bank_depth * c.acc_banks == c.acc_depth
    assert c.name == name
    assert c.inp_lines * c.line_bytes == c.inp_depth * c.inp_bytes
    assert c.block_parts * c.part_bytes == c.out_bytes and c.line_parts % c.block_parts == 0


def test_the_hash_is_of_sizes_only() -> None:
    assert replace(TINY, name="other").hash32 == TINY.hash32
    for key, value in sizes(TINY).items():
        if key in ("batch", "inp_bits", "wgt_bits", "acc_bits"):
            continue
        assert isinstance(value, int)
        for other in (value // 2, value * 2, value - 1):
            try:
                changed = replace(TINY, **{key: other})
            except ConfigError:
                continue
            assert changed.hash32 != TINY.hash32, key


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("batch", 2, "batch must be 1, not 2"),
        ("inp_bits", 4, "inp_bits must be 8, not 4"),
        ("wgt_bits", 5, "wgt_bits must be 4 or 8, not 5"),
        ("wgt_bits", 4, "block_in must be 32 (two lines) for 4 bits, not 4"),
        ("acc_bits", 16, "acc_bits must be 32, not 16"),
        ("block_in", 6, "block_in must be a power of two from 4 to 64, not 6"),
        ("block_out", 128, "block_out must be a power of two from 4 to 64, not 128"),
        ("inp_depth", 1000, "inp_depth must be a power of two from 8 to 65536, not 1000"),
        ("uop_depth", 131072, "uop_depth must be a power of two from 8 to 65536, not 131072"),
        ("inp_depth", 8, "inp_depth must be at least 16 (4 lines), not 8"),
        ("prm_depth", 65536, "prm_depth times block_out / out_lanes must be at most 65536, not 262144"),
        ("acc_banks", 3, "acc_banks must be a power of two from 1 to 16, not 3"),
        ("acc_depth", 8, "acc_banks must leave 8 entries a bank, not 4"),
        ("out_lanes", 8, "out_lanes must be at most block_out 4, not 8"),
        ("multiplier_bits", 32, "multiplier_bits must be from 8 to 31, not 32"),
        ("multiplier_bits", 7, "multiplier_bits must be from 8 to 31, not 7"),
        ("axi_data_bits", 32, "axi_data_bits must be a power of two from 64 to 512, not 32"),
        ("axi_data_bits", 512, "axi_data_bits must be at most 256"),
        ("cof_depth", 128, "cof_depth must be a power of two from 256 to 65536, not 128"),
        ("cof_depth", 300, "cof_depth must be a power of two from 256 to 65536, not 300"),
        ("cof_depth", 32768, "cof_depth must be at most 16384, not 32768"),
        ("axi_data_bits", 128, "one entry of coefficients must be a whole number of beats"),
        ("burst_beats", 0, "burst_beats must be a power of two from 1 to 64, not 0"),
        ("queue_depth", 1, "queue_depth must be a power of two from 2 to 64, not 1"),
        ("read_outstanding", -1, "read_outstanding must be a power of two from 1 to 64, not -1"),
    ],
)
def test_sizes_that_do_not_fit(key: str, value: int, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_from_dict({**sizes(TINY), key: value}, "bad")
    assert str(caught.value).startswith("configuration bad: ")
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ([], "configuration bad must be an object, not list"),
        ({**sizes(TINY), "colour": 1}, "configuration bad: unknown key 'colour'"),
        ({"batch": 1}, "configuration bad: key 'acc_banks' is missing"),
        ({**sizes(TINY), "inp_depth": 8.0}, "configuration bad: inp_depth must be an integer, not 8.0"),
        ({**sizes(TINY), "acc_banks": True}, "configuration bad: acc_banks must be an integer, not True"),
        ({**sizes(TINY), "wgt_depth": "8"}, "configuration bad: wgt_depth must be an integer, not '8'"),
    ],
)
def test_files_that_are_no_configuration(raw: object, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_from_dict(raw, "bad")
    assert str(caught.value) == sentence


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({**sizes(TINY), "name": "ignored"}))
    assert load_config(path) == replace(TINY, name="mine")
    path.write_text("{")
    with pytest.raises(ConfigError, match=r"configuration file .*mine\.json must be JSON"):
        load_config(path)
    names = "default, ecp5, ecp5w4, ecp5x2, mini, tiny, w4, wide"
    with pytest.raises(ConfigError, match=rf"must be one of {names}, a JSON file, not nope"):
        load_config("nope")
    with pytest.raises(ConfigError, match="must be one of"):
        load_config(tmp_path / "absent.json")
    with pytest.raises(ConfigError, match="must be JSON"):
        folder = tmp_path / "folder.json"
        folder.mkdir()
        load_config(folder)


def test_a_file_of_numbers_is_small(tmp_path: Path) -> None:
    (tmp_path / "big.json").write_text("{" + " " * (1 << 16) + "}")
    text = r"configuration file .*big\.json must be JSON: it must be at most 65,536 bytes long, not 65,538"
    with pytest.raises(ConfigError, match=text):
        load_config(tmp_path / "big.json")
