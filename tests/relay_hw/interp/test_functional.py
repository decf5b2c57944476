"""The language as a whole: polymorphic lists, trees and higher-order functions, typed, printed, parsed, evaluated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relay_hw as relay
from relay_hw.interp import ConstructorValue, evaluate

LIBRARY = """#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil }
type Option[A] { Some(A), None }
type Tree[A] { Rose(A, List[Tree[A]]) }
def @compose[A, B, C](%f: fn (B) -> C, %g: fn (A) -> B) -> fn (A) -> C { fn (%x: A) -> C { %f(%g(%x)) } }
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Cons(%x, %t) => Cons(%f(%x), @map(%f, %t)), Nil => Nil }
}
def @foldl[A, B](%f: fn (A, B) -> A, %a: A, %l: List[B]) -> A {
  match (%l) { Cons(%x, %t) => @foldl(%f, %f(%a, %x), %t), Nil => %a }
}
def @foldr[A, B](%f: fn (A, B) -> B, %b: B, %l: List[A]) -> B {
  match (%l) { Cons(%x, %t) => %f(%x, @foldr(%f, %b, %t)), Nil => %b }
}
def @concat[A](%a: List[A], %b: List[A]) -> List[A] { @foldr(Cons, %b, %a) }
def @filter[A](%f: fn (A) -> bool, %l: List[A]) -> List[A] {
  match (%l) { Cons(%x, %t) => if (%f(%x)) { Cons(%x, @filter(%f, %t)) } else { @filter(%f, %t) }, Nil => Nil }
}
def @zip[A, B](%a: List[A], %b: List[B]) -> List[(A, B)] {
  match ((%a, %b)) { (Cons(%x, %s), Cons(%y, %t)) => Cons((%x, %y), @zip(%s, %t)), _ => Nil }
}
def @unfoldr[A, B](%f: fn (A) -> Option[(A, B)], %s: A) -> List[B] {
  match (%f(%s)) { Some(%p) => Cons(%p.1, @unfoldr(%f, %p.0)), None => Nil }
}
def @tmap[A, B](%f: fn (A) -> B, %t: Tree[A]) -> Tree[B] {
  match (%t) { Rose(%x, %l) => Rose(%f(%x), @map(fn (%s: Tree[A]) -> Tree[B] { @tmap(%f, %s) }, %l)) }
}
def @size[A](%t: Tree[A]) -> int32 {
  match (%t) { Rose(_, %l) => @foldl(fn (%n: int32, %s: Tree[A]) -> int32 { %n + @size(%s) }, 1, %l) }
}
def @iterate[A](%f: fn (A) -> A, %n: int32) -> fn (A) -> A {
  if (%n == 0) { fn (%x: A) -> A { %x } } else { @compose(%f, @iterate(%f, %n - 1)) }
}
def @upto(%n: int32) -> List[int32] {
  @unfoldr(fn (%i: int32) -> Option[(int32, int32)] { if (%i < %n) { Some((%i + 1, %i)) } else { None } }, 0)
}
"""

PROGRAMS = [
    ("@upto(4)", [0, 1, 2, 3]),
    ("@map(fn (%x: int32) { %x * %x }, @upto(4))", [0, 1, 4, 9]),
    ("@foldl(fn (%a: int32, %x: int32) { %a * 10 + %x }, 0, @upto(4))", 123),
    ("@foldr(fn (%x: int32, %a: int32) { %a * 10 + %x }, 0, @upto(4))", 3210),
    ("@concat(@upto(2), @upto(3))", [0, 1, 0, 1, 2]),
    ("@filter(fn (%x: int32) { mod(%x, 2) == 1 }, @upto(6))", [1, 3, 5]),
    ("@zip(@upto(3), @map(fn (%x: int32) { %x < 1 }, @upto(2)))", [(0, True), (1, False)]),
    ("@tmap(fn (%x: int32) { cast(%x, dtype=\"float32\") }, Rose(1, Cons(Rose(2, Nil), Nil)))", (1.0, [(2.0, [])])),
    ("@size(Rose(1, Cons(Rose(2, Nil), Cons(Rose(3, Cons(Rose(4, Nil), Nil)), Nil))))", 4),
    ("@iterate(fn (%x: int32) { %x + %x }, 10)(1)", 1024),
    ("@map(@compose(fn (%x: int32) { (%x,) }, fn (%x: int32) { -3 + %x }), @upto(2))", [(-3,), (-2,)]),
    ("let %fs = @map(fn (%k: int32) { fn (%x: int32) { %x + %k } }, @upto(3)); "
     "@map(fn (%f: fn (int32) -> int32) { %f(100) }, %fs)", [100, 101, 102]),
]  # fmt: skip


def plain(value: Any) -> Any:
    if isinstance(value, ConstructorValue):
        if value.name == "Nil":
            return []
        fields = [plain(part) for part in value.fields]
        return [fields[0], *fields[1]] if value.name == "Cons" else tuple(fields)
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value.tolist() if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize(("body", "expected"), PROGRAMS, ids=[body[:30] for body, _ in PROGRAMS])
def test_program(body: str, expected: Any) -> None:
    mod = relay.fromtext(f"{LIBRARY}def @main() {{ {body} }}")
    assert plain(evaluate(mod)) == expected
    again = relay.fromtext(mod.astext())
    assert relay.analysis.structural_equal(mod, again)
    assert plain(evaluate(again)) == expected


def test_a_loop_over_tensors() -> None:
    """A recurrent network as a recursion: state and a list of inputs."""
    mod = relay.fromtext(
        LIBRARY
        + """
def @cell(%h: Tensor[(1, 3), float32], %x: Tensor[(1, 3), float32], %w: Tensor[(3, 3), float32]) {
  tanh(nn.dense(%h, %w, units=3) + %x)
}
def @main(%w: Tensor[(3, 3), float32], %a: Tensor[(1, 3), float32], %b: Tensor[(1, 3), float32]) {
  let %step = fn (%h: Tensor[(1, 3), float32], %x: Tensor[(1, 3), float32]) { @cell(%h, %x, %w) };
  @foldl(%step, zeros(shape=[1, 3], dtype="float32"), Cons(%a, Cons(%b, Cons(%a, Nil))))
}"""
    )
    rng = np.random.default_rng(1)
    w, a, b = (rng.standard_normal(shape).astype("float32") for shape in ((3, 3), (1, 3), (1, 3)))
    h = np.zeros((1, 3), "float32")
    for x in (a, b, a):
        h = np.tanh(h @ w.T + x)
    np.testing.assert_allclose(evaluate(mod, [w, a, b]), h, rtol=1e-5)
