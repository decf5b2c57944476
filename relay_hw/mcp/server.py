"""Serve the answers over standard input and output by the official SDK of the Model Context Protocol.

In: a folder. Out: a server that runs until its input ends. Needs the extra `mcp`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relay_hw.accel.isa.errors import AccelError
from relay_hw.errors import InputError, RelayHwError
from relay_hw.mcp.answers import Answer, Answers
from relay_hw.mcp.bounded import text_of

if TYPE_CHECKING:
    from mcp.server import MCPServer

_INSTRUCTIONS = (
    "Compile neural networks for an accelerator and find where their cycles go. Begin with list_files; compile a model "
    "or take a build; why names the bottleneck and the changes that help, what_if tries others. All cycles are exact."
)


def serve(root: Path) -> None:
    """Answer until standard input ends. Raises InputError if the SDK is missing or `root` is no folder."""
    server(root).run("stdio")


def server(root: Path) -> MCPServer:
    """The server with one tool for each question. Raises InputError if the SDK is missing or `root` is no folder."""
    if not root.is_dir():
        raise InputError(f"the served folder must exist, not {root}")
    if importlib.util.find_spec("mcp") is None:
        raise InputError("the extra mcp must be installed to serve assistants: pip install 'relay-hw[mcp]'")
    from mcp.server import MCPServer

    from relay_hw import __version__

    found = MCPServer("relay-hw", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING")
    for question in Answers(root).questions:
        found.tool(structured_output=False)(_told(question))
    return found


def _told(question: Callable[..., Answer]) -> Callable[..., Any]:
    """The question with its answer as text; what a caller asked wrongly becomes the tool's error."""
    from mcp.server.mcpserver.exceptions import ToolError

    @wraps(question)
    def asked(*args: Any, **options: Any) -> str:
        try:
            return text_of(question(*args, **options))
        except (RelayHwError, AccelError) as error:
            raise ToolError(str(error)) from None

    return asked
