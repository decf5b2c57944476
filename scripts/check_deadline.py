"""A pytest plugin that begins no test after some seconds, and says how many were left out."""

from __future__ import annotations

import time

import pytest

_LEFT_OUT = "not begun within the time of the check: make test runs it"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--begin-within", type=float, default=None, help="seconds after which no other test begins")


def pytest_configure(config: pytest.Config) -> None:
    seconds = config.getoption("--begin-within")
    if seconds is not None:
        # Workers of xdist get the time at which the whole run began.
        begin = getattr(config, "workerinput", {}).get("check_begin", time.time())
        config.pluginmanager.register(Deadline(begin, begin + seconds))


class Deadline:
    """Skips tests that come too late."""

    def __init__(self, begin: float, end: float) -> None:
        self._begin, self._end = begin, end

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: object) -> None:
        node.workerinput["check_begin"] = self._begin  # type: ignore[attr-defined]

    def pytest_runtest_setup(self) -> None:
        if time.time() > self._end:
            pytest.skip(_LEFT_OUT)
