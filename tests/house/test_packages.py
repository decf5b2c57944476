"""Packages: each that is named has its licence listed; the lock file has a hash for all that is installed."""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    from tomllib import loads
else:
    from tomli import loads

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| ([a-z0-9-]+) \| ([a-z, ]+) \| ([^|]+) \|$", re.M)
FAMILIES = ("Apache", "BSD", "ISC", "MIT", "MPL", "PSF")
# Extras that `make setup` installs.
INSTALLED = ("test", "lint", "fpga", "explore", "docs", "notebooks")


def named() -> dict[str, list[str]]:
    """Packages of pyproject.toml, and what needs each."""
    file = loads((ROOT / "pyproject.toml").read_text())
    project = file["project"]
    groups = {"always": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, list[str]] = {}
    for group, packages in {**groups, "building": file["build-system"]["requires"]}.items():
        for text in packages:
            # An extra may hold others.
            own = re.fullmatch(r"relay-hw\[([a-z,]+)\]", text)
            for one in [text] if own is None else [one for extra in own[1].split(",") for one in groups[extra]]:
                found.setdefault(re.split(r"[^a-z0-9-]", one)[0], []).append(group)
    return found


LISTED = {name: (needed.split(", "), licence) for name, needed, licence in
          ROW.findall((ROOT / "docs" / "licences.md").read_text())}  # fmt: skip


def families(name: str) -> set[str]:
    """Families of licences that a package's metadata state; empty where it is not installed or says nothing."""
    try:
        about = metadata(name)
    except PackageNotFoundError:
        return set()
    classifiers = [text for text in about.get_all("Classifier") or [] if text.startswith("License")]
    first = (about.get("License-Expression") or "").split(" AND ")[0] or (about.get("License") or "")[:40]
    text = " ".join([first, *classifiers])
    return {family for family in FAMILIES if re.search(rf"\b{family}", text)}


def test_each_package_has_its_licence_listed() -> None:
    assert {name: needed for name, (needed, _) in LISTED.items()} == named()


@pytest.mark.parametrize("name", LISTED)
def test_the_licence_is_what_the_package_states(name: str) -> None:
    stated = families(name)
    assert not stated or stated == {family for family in FAMILIES if family in LISTED[name][1]}


def locked() -> dict[str, list[str]]:
    """By package and version, with its marker: the hashes in the lock file."""
    found: dict[str, list[str]] = {}
    for entry in re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text().strip()):
        head, *hashes = (line.strip().removesuffix("\\").strip() for line in entry.split("\n"))
        found[head] = hashes
    return found


def test_the_lock_file_has_a_hash_for_all_that_is_installed() -> None:
    rows = locked()
    for head, hashes in rows.items():
        assert re.fullmatch(r"[a-z0-9-]+==[\w.+!-]+( ; .+)?", head), head
        assert hashes and all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", text) for text in hashes), head
    packages = {head.split("==")[0] for head in rows}
    wanted = {name for name, groups in named().items() if {*groups} & {*INSTALLED, "always", "building"}}
    assert wanted <= packages
    # Wheels of all systems, not those of the machine where it was made.
    assert len(next(hashes for head, hashes in rows.items() if head.startswith("numpy=="))) > 20


def test_setup_installs_nothing_without_a_hash() -> None:
    text = (ROOT / "Makefile").read_text()
    installs = re.findall(r"^\t\$\(PIP\) (.+)$", text, re.M)
    assert len(installs) == 3 and all("--require-hashes" in line for line in installs[:2])
    assert installs[2] == "--no-deps --no-build-isolation -e ."
