"""Equality saturation by egglog: all terms that the identities make of one, as classes of equal terms.

In: a term. Out: `Equal`, an e-graph: classes of nodes, whose arguments are classes again.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeAlias

from relay_hw.errors import UnsupportedError
from relay_hw.support.documents import parse_json
from relay_hw.transform.numeric.identities import OTHER, SIMPLER, Identity
from relay_hw.transform.numeric.terms import ARITY, Apply, Argument, Number, Term, subterms

# No further round once the graph has this many nodes: each makes it about five times as large.
_NODES: Final = 400
_ROUNDS: Final = 5


@dataclass(frozen=True, slots=True)
class Use:
    """An operator on classes."""

    op: str
    args: tuple[str, ...]


Node: TypeAlias = "Number | Argument | Use"


@dataclass(frozen=True, slots=True)
class Equal:
    """Nodes by class: those of one class are equal wherever they have a value. `root` is the class of the terms."""

    classes: Mapping[str, Sequence[Node]]
    root: str

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return sum(map(len, self.classes.values()))

    def is_consistent(self) -> bool:
        """Whether no class holds two numbers: an identity was applied where it has no value."""
        return all(sum(isinstance(one, Number) for one in some) <= 1 for some in self.classes.values())


def require_packages() -> None:
    """Raise UnsupportedError, with the command that helps, unless egglog and mpmath are installed."""
    for package in ("egglog", "mpmath"):
        if importlib.util.find_spec(package) is None:
            raise UnsupportedError(f"{package} must be installed to rewrite numerics: pip install 'relay-hw[numeric]'")


def saturate(terms: Sequence[Term]) -> Equal:
    """What the identities make of `terms`, which are equal; as many rounds as the bound on nodes allows.

    Raises UnsupportedError without egglog.
    """
    require_packages()
    from egglog.bindings import EGraph

    graph = EGraph()
    _run(graph, _PROGRAM)
    _run(graph, f"(let $root {_egglog(terms[0], constants=True)})")
    for one in terms[1:]:
        _run(graph, f"(union $root {_egglog(one, constants=True)})")
    _run(graph, f"(Root $root)\n{_SIMPLIFY}")
    found = _read(graph)
    for _ in range(_ROUNDS):
        if found.size > _NODES:
            break
        _run(graph, f"(run-schedule (run other))\n{_SIMPLIFY}")
        larger = _read(graph)
        if larger.size == found.size or not larger.is_consistent():
            break
        found = larger
    return found


def _read(graph: Any) -> Equal:
    """The graph as egglog writes it in JSON."""
    nodes: dict[str, Any] = parse_json(graph.serialize([]).to_json())["nodes"]
    classes: dict[str, list[Node]] = {}
    root = ""
    for node in nodes.values():
        children = [nodes[one] for one in node["children"]]
        match node["op"]:
            case "Root":
                root = children[0]["eclass"]
            case "Number":
                over, under = map(int, re.findall(r"-?\d+", children[0]["op"]))
                classes.setdefault(node["eclass"], []).append(Number(Fraction(over, under)))
            case "Argument":
                classes.setdefault(node["eclass"], []).append(Argument(children[0]["op"].strip('"')))
            case name if name in _OPERATORS:
                used = Use(_OPERATORS[name], tuple(one["eclass"] for one in children))
                classes.setdefault(node["eclass"], []).append(used)
            case _:
                pass
    return Equal(classes, root)


_ZERO: Final = "(Number (bigrat (bigint 0) (bigint 1)))"
# What is zero is found before anything is divided by it.
_SIMPLIFY: Final = "(run-schedule (repeat 2 (seq (repeat 2 (run simpler)) (run cancel))))"
_NAMES: Final = {op: op.capitalize() for op in ARITY}
_OPERATORS: Final = {name: op for op, name in _NAMES.items()}
_DECLARATIONS: Final = "\n".join(
    [
        "(sort Real)",
        "(constructor Number (BigRat) Real)",
        "(constructor Argument (String) Real)",
        "(relation Root (Real))",
        *(f"(constructor {_NAMES[op]} ({' '.join(['Real'] * count)}) Real)" for op, count in ARITY.items()),
        "(ruleset simpler)",
        "(ruleset cancel)",
        "(ruleset other)",
        *(
            f"(rewrite ({_NAMES[op]} (Number a) (Number b)) (Number ({sign} a b)) :ruleset simpler)"
            for op, sign in (("add", "+"), ("subtract", "-"), ("multiply", "*"))
        ),
        "(rewrite (Divide (Number a) (Number b)) (Number (/ a b)) :when ((!= b (bigrat (bigint 0) (bigint 1))))"
        " :ruleset cancel)",
        "(rewrite (Negative (Number a)) (Number (neg a)) :ruleset simpler)",
    ]
)


def _rules(identities: Sequence[Identity], ruleset: str) -> list[str]:
    """Rewrites; what they divide by is not zero as far as is known."""
    rows: list[str] = []
    for one in identities:
        below = {part.args[1] for part in subterms(one.left) if isinstance(part, Apply) and part.op == "divide"}
        known = " ".join(f"(!= {_egglog(part)} {_ZERO})" for part in below if not isinstance(part, Number))
        chosen = "cancel" if below and ruleset == "simpler" else ruleset
        rows.append(f"(rewrite {_egglog(one.left)} {_egglog(one.right)} :when ({known}) :ruleset {chosen})")
    return rows


def _egglog(term: Term, *, constants: bool = False) -> str:
    """`term` as egglog reads it; its arguments are variables of a pattern unless they are `constants`."""
    match term:
        case Number(value=value):
            over, under = (f'(from-string "{one}")' for one in value.as_integer_ratio())
            return f"(Number (bigrat {over} {under}))"
        case Argument(name=name):
            return f'(Argument "{name}")' if constants else name
        case Apply():
            return f"({' '.join([_NAMES[term.op], *(_egglog(one, constants=constants) for one in term.args)])})"


def _run(graph: Any, program: str) -> None:
    graph.run_program(*graph.parse_program(program))


_PROGRAM: Final = "\n".join([_DECLARATIONS, *_rules(SIMPLER, "simpler"), *_rules(OTHER, "other"), _ZERO])
