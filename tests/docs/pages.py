"""Commands in Markdown pages: blocks that run, and commands in sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
)
PROGRAMS = ("make", "python", "pip", "openFPGALoader", "rm")


class Run(Enum):
    """When the commands of a block run. The word stands behind `console` at the block's head."""

    NOW = ""
    # Minutes: run by `make test-docs`.
    LONG = "long"
    # They need hardware or an hour, or repeat the test suite: only the command line's own parser reads them.
    PARSED = "parsed"


@dataclass(frozen=True, slots=True)
class ConsoleBlock:
    """A block of commands, each on one line again."""

    page: str
    line: int
    run: Run
    commands: tuple[str, ...]


def blocks(page: str) -> list[ConsoleBlock]:
    """The `console` blocks of a page, in order."""
    text = (ROOT / page).read_text()
    found: list[ConsoleBlock] = []
    for match in re.finditer(r"^```console ?(\w*)\n(.*?)^```$", text, re.M | re.S):
        whole = re.sub(r"\\\n\s*", "", match[2])
        commands = tuple(line.split("  #")[0].strip() for line in whole.splitlines() if line.strip())
        found.append(ConsoleBlock(page, text.count("\n", 0, match.start()) + 1, Run(match[1]), commands))
    return found


def unlabelled(page: str, subcommands: Iterable[str]) -> list[str]:
    """Lines of other blocks, fenced without a language or indented, that look like commands."""
    programs = "|".join([*PROGRAMS, *(f"relay-hw {name}" for name in subcommands)])
    text = re.sub(r"^```\w.*?^```$", "", (ROOT / page).read_text(), flags=re.M | re.S)
    return re.findall(rf"^(?: {{4}})?(?:\$ )?((?:{programs}) .*)$", text, re.M)


def in_sentences(page: str) -> list[str]:
    """Commands between backquotes."""
    text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.M | re.S)
    found = re.findall(r"`((?:relay-hw|make) [^`]*)`", text)
    return [" ".join(command.split()) for command in found]
