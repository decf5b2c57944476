"""A client of the protocol finds the bottleneck of DS-CNN and the change that helps most in few calls."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.models import find
from relay_hw.errors import InputError
from relay_hw.mcp import answers as answers_room
from relay_hw.mcp.bounded import MOST_BYTES
from relay_hw.mcp.server import server
from relay_hw.runtime.why import Explanation, explain

mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed")

MOST_CALLS = 6


async def bottleneck(where: Any) -> tuple[list[tuple[str, Any]], Any]:
    """What was asked and answered, by a client that knows nothing but the tools; and its list of tools."""
    said: list[tuple[str, Any]] = []
    async with mcp.Client(where) as client:
        tools = (await client.list_tools()).tools

        async def ask(tool: str, **values: Any) -> Any:
            result = await client.call_tool(tool, values)
            assert not result.is_error, result.content
            (block,) = result.content
            assert len(block.text.encode()) <= MOST_BYTES
            said.append((tool, json.loads(block.text)))
            return said[-1][1]

        files = await ask("list_files")
        (model,), (data,) = files["models"], files["data"]
        await ask("compile", model=model, build="build", calibration=data)
        found = await ask("why", build="build")
        await ask("layer", build="build", name=next(iter(found["losses"][0]["most_in"])))
        await ask("what_if", build="build", change=found["changes_that_help"][0]["asked"])
    return said, tools


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("served")
    (root / "ds_cnn.onnx").write_bytes(find("ds_cnn").model().SerializeToString())
    samples = np.random.default_rng(0).normal(size=(4, 1, 49, 10)).astype(np.float32)
    np.savez(root / "samples.npz", input=samples)
    return root


def test_a_client_finds_the_bottleneck(served: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    explained: list[Explanation] = []

    def recorded(*values: Any, **options: Any) -> Explanation:
        explained.append(explain(*values, **options))
        return explained[-1]

    monkeypatch.setattr(answers_room, "explain", recorded)
    said, tools = asyncio.run(bottleneck(server(served)))
    assert len(said) <= MOST_CALLS and all(tool.description for tool in tools)
    answers = dict(said)
    found = explained[0]
    (worst, *_) = found.losses
    why = answers["why"]
    assert why["cycles"] == found.cycles
    assert (why["losses"][0]["cause"], why["losses"][0]["cycles"]) == (str(worst.cause), worst.cycles)
    best = min((one for one in found.outcomes if one.cycles is not None), key=lambda one: one.cycles or 0)
    (tried,) = answers["what_if"]["changes"]
    assert (tried["change"], tried["cycles"]) == (best.change.asked, best.cycles)
    assert answers["layer"]["rows"][0]["stalls"][str(worst.cause)] == worst.layers[0][1]


def test_over_standard_input_and_output(served: Path) -> None:
    """The command itself; nothing but the protocol may come out of it."""
    command = mcp.StdioServerParameters(command=sys.executable, args=["-m", "relay_hw.cli", "mcp", str(served)])

    async def listed() -> Any:
        async with mcp.Client(mcp.stdio_client(command)) as client:
            result = await client.call_tool("list_files", {})
            return json.loads(result.content[0].text)

    assert asyncio.run(listed())["models"] == ["ds_cnn.onnx"]


def test_a_wrong_question_is_an_error_of_its_tool(served: Path) -> None:
    async def asked() -> Any:
        async with mcp.Client(server(served)) as client:
            return await client.call_tool("why", {"build": "../elsewhere"})

    result = asyncio.run(asked())
    assert result.is_error and "a file must lie below the served folder, not at ../elsewhere" in result.content[0].text


def test_the_folder_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the served folder must exist, not "):
        server(tmp_path / "nothing")


def test_the_sdk_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"the extra mcp must be installed to serve assistants: pip install 'relay-hw"):
        server(tmp_path)
