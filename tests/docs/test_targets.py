"""docs/targets.md: its Python, step by step, prints what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relay_hw.compat.tvm.byoc.registry import forget
from relay_hw.target import unregister

PAGE = Path(__file__).resolve().parents[2] / "docs" / "targets.md"
STEP = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


@pytest.fixture(autouse=True)
def no_toy() -> Iterator[None]:
    yield
    unregister("toy")
    for compiler in ("toy", "summer"):
        forget(compiler)


def test_the_steps_print_what_the_page_says() -> None:
    steps = STEP.findall(PAGE.read_text())
    names: dict[str, Any] = {}
    for code, want in steps:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(PAGE), "exec"), names)
        assert printed.getvalue() == want
    assert len(steps) == PAGE.read_text().count("```python") == 5
