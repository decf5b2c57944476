"""Commands of the documents run as they are written, from top to bottom, in a copy of the source."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from relay_hw.cli.commands import parser
from tests.docs.pages import PAGES, ROOT, ConsoleBlock, Run, blocks, differs, in_sentences, unlabelled

# What a shell puts in front of the commands of this environment.
ENVIRONMENT = {
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "COLUMNS": "100",
}
TUTORIALS = "docs/tutorials/"
WITH_COMMANDS = tuple(page for page in PAGES if blocks(page))


def copy(folder: Path) -> Path:
    """The files that git knows, with this environment as its own."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    environment = folder / ".venv"
    environment.mkdir()
    for path in Path(sys.prefix).iterdir():
        if path.name != ".ready":
            (environment / path.name).symlink_to(path)
    # Newer than what it is made from: `make` finds everything installed.
    (environment / ".ready").touch()
    return folder


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all pages but the tutorials, each of which begins with nothing."""
    return copy(tmp_path_factory.mktemp("checkout"))


@pytest.fixture
def place(page: str, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Where the commands of a page run."""
    return copy(tmp_path / "checkout") if page.startswith(TUTORIALS) else request.getfixturevalue("checkout")


def run(block: ConsoleBlock, folder: Path) -> None:
    """Run a block's commands as a user types them."""
    for name, text in block.files:
        (folder / name).write_text(text)
    printed = ""
    for command in block.commands:
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=os.environ | ENVIRONMENT, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{block.page}:{block.line}: {command}\n{done.stdout}{done.stderr}"
        printed += done.stdout
    wrong = block.shows is not None and differs(block.shows, printed)
    assert not wrong, f"{block.page}:{block.line}: the page shows\n{block.shows}\nnot\n{printed}"


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_the_commands_of_a_page_run(page: str, place: Path) -> None:
    for block in blocks(page):
        if block.run is Run.NOW:
            run(block, place)


@pytest.mark.long
@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_the_long_commands_of_a_page_run(page: str, place: Path) -> None:
    for block in blocks(page):
        if block.run is not Run.PARSED:
            run(block, place)


def test_what_a_page_shows_is_compared() -> None:
    assert not differs("one 2.5 ms\n...\nlast\n", "one 2.5 ms\na  \nb\nlast\n")
    assert not differs("took ... s", "took 3.1 s\n")
    assert not differs("a   b\n---  --", "a  b\n----  --")
    assert differs("one", "one\ntwo") and differs("1,000", "1,001") and differs("a...b", "ac")


def subcommands() -> dict[str, argparse.ArgumentParser]:
    """Parsers of `relay-hw`'s commands by name."""
    (action,) = [action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(action.choices)


def read(command: str) -> None:
    """Let the command line, or the Makefile, read a command without running it."""
    words = shlex.split(command)
    if words[0] == "relay-hw":
        parser().parse_args(words[1:])
    elif words[0] == "make" and "-C" not in words:
        targets = [word for word in words[1:] if "=" not in word and not word.startswith("-")]
        known = re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.M)
        assert set(targets) <= set(known), command


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands_that_are_not_run_are_read(page: str) -> None:
    for block in blocks(page):
        for command in block.commands if block.run is not Run.NOW else ():
            read(command)


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_sentences_exist(page: str) -> None:
    options = {name: parser.format_help() for name, parser in subcommands().items()}
    for command in in_sentences(page):
        words = command.split()
        if words[0] == "make":
            read(command)
            continue
        named = [word for word in words[1:] if not word.startswith("-")]
        if named and words[1] == named[0]:
            assert named[0] in options, command
            text = options[named[0]]
        else:
            text = " ".join(options.values())
        for flag in re.findall(r"--[a-z-]+", command):
            assert flag in text, command


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_commands_says_when_it_runs(page: str) -> None:
    assert unlabelled(page, subcommands()) == [], "head the block with ```console, ```console long or ```console parsed"
