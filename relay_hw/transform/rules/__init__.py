"""Rewrite rules of `SimplifyExpr`, by subject."""
