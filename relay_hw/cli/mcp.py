"""`relay-hw mcp`: serve assistants over standard input and output.

In: parsed arguments. Out: exit status, when the input ends.
"""

from __future__ import annotations

from argparse import Namespace

from relay_hw.cli.console import Console


def mcp_command(args: Namespace, console: Console) -> int:
    """Answer until standard input ends."""
    from relay_hw.mcp.server import serve

    console.note(f"serving {args.folder.resolve()} over standard input and output; end the input to stop")
    serve(args.folder)
    return 0
