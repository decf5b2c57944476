"""What is fetched for aarch64 carries hashes: nothing else is installed."""

from __future__ import annotations

import re

from scripts.fetch_aarch64 import LINKER, ROOT, WHEELS, locked


def test_every_package_has_its_version_and_hashes() -> None:
    found = locked((ROOT / "requirements.lock").read_text(), WHEELS) + LINKER.read_text()
    entries = re.split(r"\n(?=\S)", found.strip())
    assert [entry.partition("==")[0] for entry in entries] == [*WHEELS, "ziglang"]
    for entry in entries:
        first, *hashes = entry.split(" \\\n    ")
        assert re.fullmatch(r"[\w-]+==[\w.]+", first)
        assert hashes and all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", text) for text in hashes)
