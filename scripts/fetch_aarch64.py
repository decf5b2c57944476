"""Fetch what runs aarch64 host libraries here: qemu-user, a C library, TVM's runtime, a linker.

In: Debian's packages (apt-get download) and PyPI's (pip). Out: build/aarch64, where tests find it.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "build" / "aarch64"
DEBIAN = ("qemu-user-static", "libc6-arm64-cross", "libstdc++6-arm64-cross", "libgcc-s1-arm64-cross")
WHEELS = ("apache-tvm==0.27.0.post1", "apache-tvm-ffi==0.1.14.post1")
# What is needed of them: the compiler in the wheel has 240 MB.
WANTED = ("libtvm_runtime.so", "libtvm_runtime_extra.so", "libtvm_ffi.so")
PLATFORM = ("--only-binary=:all:", "--platform", "manylinux_2_28_aarch64", "--python-version", "3.11")


def run(*words: str) -> None:
    """A command in the folder; its error ends this program."""
    subprocess.run(words, cwd=FOLDER, check=True)


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
    run(*pip, "download", "-q", "--no-deps", "-d", "wheels", *PLATFORM, *WHEELS)
    run(*pip, "install", "-q", "--upgrade", "--target", "python", "ziglang")
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
