"""Files that import each other in a circle cannot be read one after the other: at most two groups of them, by name."""

from __future__ import annotations

from tests.house.arrows import How, circles, file_arrows

# Why files reach each other; each group by its files.
CIRCLES: dict[frozenset[str], str] = {
    frozenset({"relay_hw.ir.types", "relay_hw.ir.type_text"}): "str() of a type is its text, which names every type",
    frozenset(
        f"relay_hw.dataflow_pattern.{name}"
        for name in ("example", "grouping", "matcher", "partitioning", "patterns", "rewriting")
    ): "a pattern offers what is done with patterns, as Relay's does: match, rewrite, partition",
}
MOST = 2
# `lazy_import` is left out: tests/house/test_imports.py lists who calls it.
RUNNING = frozenset({How.IMPORT, How.TEXT})


def test_circles_of_files_are_few_and_listed() -> None:
    assert circles(file_arrows(RUNNING)) == set(CIRCLES) and len(CIRCLES) <= MOST


def test_imports_for_types_make_no_further_circle() -> None:
    assert circles(file_arrows(RUNNING | {How.TYPE})) == set(CIRCLES)


def test_what_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c", "x"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "x": set[str](), "y": {"a"}}
    assert circles(graph) == {frozenset("abc"), frozenset("de")}
    assert circles({"a": {"b"}, "b": {"c"}, "c": set[str]()}) == set()
