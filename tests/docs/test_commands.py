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
from tests.docs.pages import PAGES, ROOT, ConsoleBlock, Run, blocks, in_sentences, unlabelled

# What a shell puts in front of the commands of this environment.
ENVIRONMENT = {
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "COLUMNS": "120",
}
WITH_COMMANDS = tuple(page for page in PAGES if blocks(page))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that git knows, with this environment as its own."""
    folder = tmp_path_factory.mktemp("checkout")
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


def run(block: ConsoleBlock, folder: Path) -> None:
    """Run a block's commands as a user types them."""
    for command in block.commands:
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=os.environ | ENVIRONMENT, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{block.page}:{block.line}: {command}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_the_commands_of_a_page_run(page: str, checkout: Path) -> None:
    for block in blocks(page):
        if block.run is Run.NOW:
            run(block, checkout)


@pytest.mark.long
@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_the_long_commands_of_a_page_run(page: str, checkout: Path) -> None:
    for block in blocks(page):
        if block.run is not Run.PARSED:
            run(block, checkout)


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
def test_commands_that_need_more_than_a_machine_are_read(page: str) -> None:
    for block in blocks(page):
        for command in block.commands:
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
