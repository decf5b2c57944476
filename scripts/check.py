"""The tests that a change touches and a sample of every room, within two minutes: for while one works.

In: what differs from a commit. Out: results of tests, and how many had to be left to `make test`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.house.arrows import arrows_of, module_name, module_of

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "tests" / "sample.txt"
# Seconds from which on no other test is begun; what is under way then ends within two minutes.
SECONDS = 80
_PACKAGES = ("relay_hw", "accel", "tensorize")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--since", metavar="COMMIT", help="what to compare with (default: HEAD, or HEAD~1 if equal)")
    parser.add_argument("--list", action="store_true", help="print the test files, do not run them")
    options = parser.parse_args(arguments)
    changed = changed_files(options.since)
    touched = touched_tests(changed)
    files = [*touched, *(name for name in sample() if name not in touched)]
    if options.list:
        print("\n".join(files))
        return 0
    python = [name for name in changed if name.endswith(".py") and (ROOT / name).is_file()]
    if not styled(python):
        return 1
    print(f"{len(changed)} files changed, {len(touched)} test files touched, {len(files) - len(touched)} of the sample")
    plugin = ["-p", "scripts.check_deadline", f"--begin-within={SECONDS}"]
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-n", "2", *plugin, *files], cwd=ROOT).returncode


def changed_files(since: str | None) -> list[str]:
    """Files that differ from a commit, new ones included, relative to the root."""
    new = _git("ls-files", "--others", "--exclude-standard")
    if since is not None:
        return sorted({*_git("diff", "--name-only", since), *new})
    return sorted({*_git("diff", "--name-only", "HEAD"), *new}) or _git("diff", "--name-only", "HEAD~1")


def _git(*words: str) -> list[str]:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()


def touched_tests(changed: Iterable[str]) -> list[str]:
    """Test files that changed, test what changed, or import it, in this order."""
    changed = list(changed)
    tests = {path: path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "tests").rglob("test_*.py"))}
    sources = [ROOT / name for name in changed if name.endswith(".py") and name.split("/")[0] in _PACKAGES]
    modules = {module_name(path) for path in sources}
    beside = [_beside(name) for name in changed]
    found = [name for name in tests.values() if name in changed]
    found += [name for name in tests.values() if any(map(name.startswith, beside))]
    found += [name for path, name in tests.items() if _imports(path, modules)]
    return list(dict.fromkeys(found))


def _beside(name: str) -> str:
    """The test file of a source file; the folder of tests where it has no file of its own."""
    path = Path(name)
    if path.suffix in (".v", ".vh"):
        return "tests/accel/rtl/test_lint.py"
    if path.suffix == ".md":
        return "tests/house/test_documents.py"
    if path.suffix != ".py" or path.parts[0] == "tests":
        return name
    file = Path("tests") / path.parent / f"test_{path.stem}.py"
    folder = next(folder for folder in file.parents if (ROOT / folder).is_dir())
    return file.as_posix() if (ROOT / file).is_file() else f"{folder.as_posix()}/test_"


def _imports(test: Path, modules: set[str]) -> bool:
    """Whether a test imports one of `modules`, or a name of it."""
    return bool(modules) and any(module_of(arrow.name) in modules for arrow in arrows_of(test))


def sample() -> list[str]:
    """One or two quick test files of every room."""
    return [line for line in SAMPLE.read_text().splitlines() if line and not line.startswith("#")]


def styled(files: Sequence[str]) -> bool:
    """Whether ruff finds nothing in the Python files that changed."""
    commands = (["check", "-q"], ["format", "-q", "--check"])
    ruff = [sys.executable, "-m", "ruff"]
    return not files or all(subprocess.run([*ruff, *words, *files], cwd=ROOT).returncode == 0 for words in commands)


if __name__ == "__main__":
    sys.exit(main())
