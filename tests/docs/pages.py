"""Commands in Markdown pages: blocks that run, files and output that stand beside them, commands in sentences."""

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


_FENCE = re.compile(
    r"^```console ?(?P<word>\w*)\n(?P<body>.*?)^```$(?:\n\n```text\n(?P<shows>.*?)^```$)?"
    r"|^```\w+ (?P<name>[\w/-]+\.\w+)\n(?P<content>.*?)^```$",
    re.M | re.S,
)


@dataclass(frozen=True, slots=True)
class ConsoleBlock:
    """A block of commands, each on one line again, with the files above it and the output right below it."""

    page: str
    line: int
    run: Run
    commands: tuple[str, ...]
    # By name: a fence whose head names a file, such as ```python train.py, is that file.
    files: tuple[tuple[str, str], ...] = ()
    # The ```text block right below; `...` stands for any text, at the end of a word or as a line.
    shows: str | None = None


def blocks(page: str) -> list[ConsoleBlock]:
    """The `console` blocks of a page, in order."""
    text = (ROOT / page).read_text()
    found: list[ConsoleBlock] = []
    files: list[tuple[str, str]] = []
    for match in _FENCE.finditer(text):
        if match["name"]:
            files.append((match["name"], match["content"]))
            continue
        whole = re.sub(r"\\\n\s*", "", match["body"])
        commands = tuple(line.split("  #")[0].strip() for line in whole.splitlines() if line.strip())
        line = text.count("\n", 0, match.start()) + 1
        found.append(ConsoleBlock(page, line, Run(match["word"]), commands, tuple(files), match["shows"]))
        files = []
    return found


def differs(shows: str, printed: str) -> bool:
    """Whether a command printed something else than its page shows, widths of columns aside."""
    parts = re.split(r"(\.\.\.)", _narrow(shows))
    return (
        re.fullmatch("".join(".*?" if part == "..." else re.escape(part) for part in parts), _narrow(printed), re.S)
        is None
    )


def _narrow(text: str) -> str:
    lines = (re.sub(r" +", " ", line.rstrip()) for line in text.strip().splitlines())
    return re.sub(r"-{3,}", "--", "\n".join(lines))


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
