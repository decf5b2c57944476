"""Expressions of real numbers: their value in float32 and exactly, what they are equal to, and the best among those.

In: a term and points to judge it at. Out: an equal term with a smaller error or fewer operators. `RewriteNumerics` of
`relay_hw/transform/rewrite_numerics.py` reads terms from Relay and writes them back.
"""
