"""Strips Verilog files of what tools ignore: comments, empty lines, indentation.

In: Verilog. Out: the same modules without comments and layout, so that a changed comment is no new design: the names
that yosys gives to cells hold line numbers, which placement and routing follow.
"""

from __future__ import annotations

import re

# A string or a comment: whichever comes first holds the other.
_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)


def code_of(text: str) -> str:
    """`text` without comments, empty lines, indentation and spaces at ends of lines. Directives keep their lines."""
    bare = _TOKEN.sub(lambda found: found[0] if found[0].startswith('"') else " ", text)
    lines = (line.strip() for line in bare.splitlines())
    return "".join(f"{line}\n" for line in lines if line)
