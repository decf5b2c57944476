"""Rewrite rules by subject, for `SimplifyExpr`."""
