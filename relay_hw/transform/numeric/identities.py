"""Identities of real numbers, as text that `parse` reads: the table by which terms are rewritten.

Names of one letter stand for any term. Each holds wherever both sides have a value; where a candidate has none, or
float32 computes it badly, its measured error says so. A new one is a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from relay_hw.transform.numeric.terms import Term, parse


@dataclass(frozen=True, slots=True)
class Identity:
    """`left` may be written as `right`."""

    left: Term
    right: Term


def _table(rows: str) -> tuple[Identity, ...]:
    """One identity a line: `left -> right`, or `left <-> right` for both directions."""
    found: list[Identity] = []
    for row in filter(str.strip, rows.splitlines()):
        left, arrow, right = row.rpartition(" <-> ")
        if arrow:
            found += [Identity(parse(left), parse(right)), Identity(parse(right), parse(left))]
        else:
            left, _, right = row.partition(" -> ")
            found.append(Identity(parse(left), parse(right)))
    return tuple(found)


# What makes terms smaller: applied until nothing is left to do after each round of the others.
SIMPLER: Final = _table("""
(subtract a a) -> 0
(add a 0) -> a
(subtract a 0) -> a
(subtract 0 a) -> (negative a)
(multiply a 0) -> 0
(multiply a 1) -> a
(multiply a -1) -> (negative a)
(divide 0 a) -> 0
(divide a 1) -> a
(divide a a) -> 1
(negative (negative a)) -> a
(subtract a (negative b)) -> (add a b)
(multiply (negative a) (negative b)) -> (multiply a b)
(divide (negative a) (negative b)) -> (divide a b)
(subtract (add a b) a) -> b
(subtract (add a b) b) -> a
(subtract a (add a b)) -> (negative b)
(subtract a (subtract a b)) -> b
(subtract (subtract a b) a) -> (negative b)
(add (subtract a b) b) -> a
(divide (multiply a b) a) -> b
(divide (multiply a b) (multiply a c)) -> (divide b c)
(multiply a (divide b a)) -> b
(divide a (divide a b)) -> b
(multiply (sqrt a) (sqrt a)) -> a
(sqrt (multiply a a)) -> (abs a)
(multiply (abs a) (abs a)) -> (multiply a a)
(abs (negative a)) -> (abs a)
(abs (abs a)) -> (abs a)
(exp 0) -> 1
(exp (log a)) -> a
(log (exp a)) -> a
(log 1) -> 0
(power a 1) -> a
(power a 2) -> (multiply a a)
(power a 1/2) -> (sqrt a)
(power a -1/2) -> (rsqrt a)
(power a -1) -> (divide 1 a)
(power a 0) -> 1
(add (multiply (sin a) (sin a)) (multiply (cos a) (cos a))) -> 1
(subtract (multiply (cosh a) (cosh a)) (multiply (sinh a) (sinh a))) -> 1
(tan (atan a)) -> a
(tanh (atanh a)) -> a
(sinh (asinh a)) -> a
(divide 1 (add 1 (exp (negative a)))) -> (sigmoid a)
(divide (exp a) (add 1 (exp a))) -> (sigmoid a)
(divide 1 (add 1 (exp a))) -> (sigmoid (negative a))
(subtract 1 (sigmoid a)) -> (sigmoid (negative a))
(subtract (multiply 2 (sigmoid a)) 1) -> (tanh (divide a 2))
(divide (sin a) (cos a)) -> (tan a)
(divide (sinh a) (cosh a)) -> (tanh a)
(divide (subtract 1 (cos a)) (sin a)) -> (tan (divide a 2))
(divide (sin a) (add 1 (cos a))) -> (tan (divide a 2))
""")

# What shows other forms: each round applies all of them once.
OTHER: Final = _table("""
(add a b) -> (add b a)
(multiply a b) -> (multiply b a)
(add (add a b) c) -> (add a (add b c))
(multiply (multiply a b) c) -> (multiply a (multiply b c))
(subtract (subtract a b) c) <-> (subtract a (add b c))
(subtract (add a b) c) <-> (add a (subtract b c))
(subtract a (subtract b c)) -> (add (subtract a b) c)
(add a (negative b)) <-> (subtract a b)
(negative (subtract a b)) <-> (subtract b a)
(negative (add a b)) -> (subtract (negative a) b)
(multiply (negative a) b) <-> (negative (multiply a b))
(divide (negative a) b) <-> (negative (divide a b))
(divide a (negative b)) -> (negative (divide a b))
(divide (multiply a b) c) <-> (multiply a (divide b c))
(divide (divide a b) c) <-> (divide a (multiply b c))
(divide a (divide b c)) -> (divide (multiply a c) b)
(add a a) <-> (multiply 2 a)
(multiply a (add b c)) <-> (add (multiply a b) (multiply a c))
(multiply a (subtract b c)) <-> (subtract (multiply a b) (multiply a c))
(add (multiply a b) a) <-> (multiply a (add b 1))
(divide (add a b) c) <-> (add (divide a c) (divide b c))
(divide (subtract a b) c) <-> (subtract (divide a c) (divide b c))
(subtract (divide 1 a) (divide 1 b)) -> (divide (subtract b a) (multiply a b))
(subtract (divide a b) (divide c d)) -> (divide (subtract (multiply a d) (multiply b c)) (multiply b d))
(add (divide a b) (divide c d)) -> (divide (add (multiply a d) (multiply b c)) (multiply b d))
(subtract (multiply a a) (multiply b b)) <-> (multiply (add a b) (subtract a b))
(subtract (multiply a a) 1) <-> (multiply (add a 1) (subtract a 1))
(subtract (sqrt a) (sqrt b)) -> (divide (subtract a b) (add (sqrt a) (sqrt b)))
(subtract (sqrt a) b) -> (divide (subtract a (multiply b b)) (add (sqrt a) b))
(subtract a (sqrt b)) -> (divide (subtract (multiply a a) b) (add a (sqrt b)))
(add a (sqrt b)) -> (divide (subtract (multiply a a) b) (subtract a (sqrt b)))
(divide (sqrt a) (sqrt b)) -> (sqrt (divide a b))
(divide 1 (sqrt a)) <-> (rsqrt a)
(divide a (sqrt b)) -> (multiply a (rsqrt b))
(exp (add a b)) <-> (multiply (exp a) (exp b))
(exp (subtract a b)) <-> (divide (exp a) (exp b))
(exp (negative a)) <-> (divide 1 (exp a))
(exp (multiply 2 a)) <-> (multiply (exp a) (exp a))
(subtract (exp a) 1) -> (multiply 2 (multiply (sinh (divide a 2)) (exp (divide a 2))))
(subtract (exp a) 1) -> (multiply (tanh (divide a 2)) (add (exp a) 1))
(subtract (exp a) (exp b)) -> (multiply 2 (multiply (sinh (divide (subtract a b) 2)) (exp (divide (add a b) 2))))
(add (exp a) (exp (negative a))) <-> (multiply 2 (cosh a))
(subtract (exp a) (exp (negative a))) <-> (multiply 2 (sinh a))
(subtract (cosh a) 1) -> (multiply 2 (multiply (sinh (divide a 2)) (sinh (divide a 2))))
(subtract (multiply 2 (cosh a)) 2) -> (multiply 4 (multiply (sinh (divide a 2)) (sinh (divide a 2))))
(log (multiply a b)) <-> (add (log a) (log b))
(log (divide a b)) <-> (subtract (log a) (log b))
(log (power a b)) <-> (multiply b (log a))
(log (add 1 a)) -> (multiply 2 (atanh (divide a (add 2 a))))
(log (subtract 1 a)) -> (multiply -2 (atanh (divide a (subtract 2 a))))
(log (divide a b)) -> (multiply 2 (atanh (divide (subtract a b) (add a b))))
(power a b) -> (exp (multiply b (log a)))
(multiply (power a b) (power a c)) <-> (power a (add b c))
(subtract (power a c) (power b c)) -> (multiply (power b c) (subtract (exp (multiply c (log (divide a b)))) 1))
(subtract (sin a) (sin b)) -> (multiply 2 (multiply (cos (divide (add a b) 2)) (sin (divide (subtract a b) 2))))
(subtract (cos a) (cos b)) -> (multiply -2 (multiply (sin (divide (add a b) 2)) (sin (divide (subtract a b) 2))))
(subtract (tan a) (tan b)) -> (divide (sin (subtract a b)) (multiply (cos a) (cos b)))
(subtract 1 (cos a)) -> (multiply 2 (multiply (sin (divide a 2)) (sin (divide a 2))))
(sin (add a b)) -> (add (multiply (sin a) (cos b)) (multiply (cos a) (sin b)))
(cos (add a b)) -> (subtract (multiply (cos a) (cos b)) (multiply (sin a) (sin b)))
(tan a) -> (divide (sin a) (cos a))
(subtract (atan a) (atan b)) -> (atan (divide (subtract a b) (add 1 (multiply a b))))
(sigmoid a) -> (divide 1 (add 1 (exp (negative a))))
(tanh a) -> (divide (sinh a) (cosh a))
""")
