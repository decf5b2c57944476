"""Names of any length are read in their own memory, and refused beyond a bound."""

from __future__ import annotations

import pytest

from relay_hw.errors import ParseError
from relay_hw.text import parse
from relay_hw.text.lexer import MOST_NAME


@pytest.mark.parametrize("part", ["a", "a/", "a.", "a::"])
def test_long_names(part: str) -> None:
    head = '#[version = "0.0.5"]\ndef @main'
    longest = ("%b" + part * MOST_NAME)[: MOST_NAME - 2] + "aa"
    assert len(longest) == MOST_NAME
    module = parse(f"{head}({longest}: int32) {{ {longest} }}")
    assert module["main"].params[0].name_hint == longest[1:]
    with pytest.raises(ParseError, match="a name must have at most 65,536 letters, not 65,537"):
        parse(f"{head}({longest}a: int32) {{ {longest}a }}")
