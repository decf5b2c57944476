"""Runs every attack in a process forked from one that has imported all it needs: bounds on memory and on work.

In: a folder, as the only argument. Out: a JSON object a line: the attack's name, how its process ended, what it said.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

from relay_hw.support.child import bound, bound_memory
from tests.relay_hw.attacks import bombs, builds, external, graphs, others
from tests.relay_hw.attacks.table import Attack, Deed

ATTACKS = (*external.ATTACKS, *bombs.ATTACKS, *graphs.ATTACKS, *others.ATTACKS, *builds.ATTACKS)
MEMORY_BYTES = 1 << 30
WORK_SECONDS = 5
# The kernel counts work in seconds and ends a process a little late.
_WAIT_SECONDS = 300


def _import() -> None:
    """Everything that a command loads, so that bounds are those of the attack."""
    import tempfile

    from relay_hw.cli.main import main

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        for attack in (external.ATTACKS[0], others.ATTACKS[9]):
            inner = Path(folder) / attack.name[:3]
            inner.mkdir()
            deed = attack.make(inner)
            assert isinstance(deed, list)
            main(deed)
        with contextlib.redirect_stdout(io.StringIO()):
            main(["check", str(Path(__file__).parents[3] / "examples" / "mnist_cnn.onnx")])


def _do(deed: Deed) -> int:
    """The status of a deed; what it says is on standard error."""
    if isinstance(deed, list):
        from relay_hw.cli.main import main

        return main(deed)
    return _called(deed)


def _called(deed: Callable[[], object]) -> int:
    from relay_hw.accel.isa.errors import AccelError
    from relay_hw.errors import RelayHwError
    from relay_hw.support.documents import DocumentError

    try:
        deed()
    except (RelayHwError, AccelError, DocumentError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _attacked(deed: Deed, said: Path) -> int:
    """Forks; how the child ended, as the status of a shell."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)
    try:
        # The console writes to the stream that is there when it is made.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        sys.stderr = said.open("w")
        bound_memory(MEMORY_BYTES)
        bound(resource.RLIMIT_CPU, WORK_SECONDS)
        signal_after(_WAIT_SECONDS)
        status = _do(deed)
        sys.stderr.flush()
    except BaseException as error:
        print(f"not caught: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        status = 99
    os._exit(status)


def signal_after(seconds: int) -> None:
    """End this process by SIGALRM if it still waits then."""
    import signal

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)


def main(root: Path) -> None:
    """One line an attack."""
    _import()
    for number, attack in enumerate(ATTACKS):
        print(json.dumps(_row(root / str(number), attack)), flush=True)


def _row(folder: Path, attack: Attack) -> dict[str, object]:
    folder.mkdir()
    deed = attack.make(folder)
    start = time.monotonic()
    status = _attacked(deed, folder / "said")
    text = (folder / "said").read_text(errors="replace")
    ran = (folder / "ran").exists()
    return {"name": attack.name, "status": status, "said": text, "ran": ran, "seconds": time.monotonic() - start}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
