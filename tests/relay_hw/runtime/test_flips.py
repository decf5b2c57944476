"""Builds with a wrong bit, cut, empty or exchanged files: refused, or their code is not run; never used."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from relay_hw.errors import ArtifactError
from relay_hw.runtime.artifact import UNHASHED, load_artifact
from relay_hw.runtime.folder import MANIFEST
from relay_hw.runtime.trust import SEAL
from tests.flips import COUNTS, spoiled
from tests.relay_hw.runtime.conftest import Build


@COUNTS
@pytest.mark.parametrize("which", ["plain", "mixed"])
def test_builds(which: str, count: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    build: Build = request.getfixturevalue(which)
    folder = Path(shutil.copytree(build[1].path, tmp_path / "build"))
    # A profile writes its report anew; nothing reads it.
    files = sorted(path for path in folder.iterdir() if path.name not in UNHASHED)
    want = load_artifact(folder)
    want.check_trust()
    tried = 0
    for what in spoiled(files, count):
        try:
            found = load_artifact(folder)
            found.check_trust()
        except ArtifactError:
            pass
        else:
            # White space, or another form of the same number.
            assert what.startswith(MANIFEST) and found.manifest == want.manifest, what
        tried += 1
    assert tried > count
    assert load_artifact(folder).is_sealed == (SEAL in [path.name for path in files])
