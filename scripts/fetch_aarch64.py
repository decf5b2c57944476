"""Fetch what runs aarch64 host libraries here: qemu-user, a C library, TVM's runtime, a linker.

In: Debian's packages (apt-get download, which checks their signatures) and PyPI's (pip, by the hashes of
requirements.lock and scripts/aarch64.lock). Out: build/aarch64, where tests find it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "aarch64"
DEBIAN = ("qemu-user-static", "libc6-arm64-cross", "libstdc++6-arm64-cross", "libgcc-s1-arm64-cross")
WHEELS = ("apache-tvm", "apache-tvm-ffi")
LINKER = ROOT / "scripts" / "aarch64.lock"
# What is needed of them: the compiler in the wheel has 240 MB.
WANTED = ("libtvm_runtime.so", "libtvm_runtime_extra.so", "libtvm_ffi.so")
PLATFORM = ("--only-binary=:all:", "--platform", "manylinux_2_28_aarch64", "--python-version", "3.11")


def run(*words: str) -> None:
    """A command in the folder; its error ends this program."""
    subprocess.run(words, cwd=FOLDER, check=True)


def locked(lock: str, names: Sequence[str]) -> str:
    """What a lock file says of some packages: a version, and the hashes of its files."""
    entries = re.split(r"\n(?=\S)", lock)
    return "\n".join(entry for entry in entries if entry.partition("==")[0] in names) + "\n"


def main() -> int:
    """Download and unpack; what is there already is fetched again."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    run("apt-get", "download", *DEBIAN)
    for package in FOLDER.glob("*.deb"):
        run("dpkg", "-x", package.name, "root")
        package.unlink()
    for emulator in (FOLDER / "root" / "usr" / "bin").glob("qemu-*"):
        if emulator.name != "qemu-aarch64-static":
            emulator.unlink()
    pip = (sys.executable, "-m", "pip")
    (FOLDER / "wheels.lock").write_text(locked((ROOT / "requirements.lock").read_text(), WHEELS))
    hashed = ("-q", "--require-hashes", "--no-deps")
    run(*pip, "download", *hashed, "-d", "wheels", *PLATFORM, "-r", "wheels.lock")
    run(*pip, "install", *hashed, "--upgrade", "--target", "python", "-r", str(LINKER))
    libraries = FOLDER / "lib"
    libraries.mkdir(exist_ok=True)
    for wheel in (FOLDER / "wheels").glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if Path(name).name in WANTED:
                    (libraries / Path(name).name).write_bytes(archive.read(name))
        wheel.unlink()
    print(f"{FOLDER}: ready")
    return 0


if __name__ == "__main__":
    sys.exit(main())
