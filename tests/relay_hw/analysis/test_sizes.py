"""Modules that ask for much memory in few words, and those that only seem to."""

from __future__ import annotations

import pytest

from relay_hw.analysis.sizes import check_sizes
from relay_hw.errors import InputError
from relay_hw.limits import Limits
from relay_hw.text import load_json, parse, save_json

FEW = Limits(tensor_elements=100, folded_bytes=800)


def check(body: str, params: str = "%x: Tensor[(4), float32]") -> None:
    text = f'#[version = "0.0.5"]\ndef @main({params}) {{\n{body}\n}}\n'
    check_sizes(parse(text, "f.relay"), FEW, "f.relay")


@pytest.mark.parametrize(
    ("body", "place", "elements"),
    [
        ("full(1f, shape=[101])", 1, 101),
        ("tile(%x, reps=[26])", 1, 104),
        ("let %a = %x;\nrepeat(%a, repeats=300, axis=0)", 1, 1200),
        ("split(tile(%x, reps=[1000]), indices_or_sections=2, axis=0)", 7, 4000),
        ('(fn (%y: int32) { zeros(shape=[7, 20], dtype="int8") })(1)', 19, 140),
    ],
)
def test_a_result_has_a_limit(body: str, place: int, elements: int) -> None:
    text = rf":\d+:{place}: the elements of a result must be at most 100, not {elements:,}: --limit tensor_elements="
    with pytest.raises(InputError, match=text):
        check(body)


@pytest.mark.parametrize(
    ("body", "size"),
    [
        ('(ones(shape=[100], dtype="float64"), ones(shape=[1], dtype="bool"))', 801),
        ('let %a = ones(shape=[70], dtype="float32");\nlet %b = negative(%a);\nexp(%b)', 840),
        ('let %a = split(ones(shape=[99], dtype="float32"), indices_or_sections=3, axis=0);\nexp(%a.1)', 924),
    ],
)
def test_computed_constants_have_a_limit_together(body: str, size: int) -> None:
    text = (
        f"the bytes of computed constants beyond the weights must be at most 800, not {size:,}: --limit folded_bytes="
    )
    with pytest.raises(InputError, match=text):
        check(body)


def test_what_depends_on_an_input_is_no_constant() -> None:
    check("let %a = exp(%x);\n" * 300 + "%a")


def test_a_chain_of_constants_counts_each() -> None:
    chain = ("negative(" * 3, 'ones(shape=[50], dtype="float32")', ")" * 3)
    check("".join(chain))
    with pytest.raises(InputError, match="not 1,000: --limit folded_bytes="):
        check("negative(" + "".join(chain) + ")")


def test_a_node_without_a_place_is_found_by_its_function() -> None:
    mod = load_json(save_json(parse('#[version = "0.0.5"]\ndef @main() { zeros(shape=[101], dtype="int8") }\n')))
    with pytest.raises(InputError, match=r"^f\.json, @main: the elements of a result must be at most 100, not 101"):
        check_sizes(mod, FEW, "f.json")
