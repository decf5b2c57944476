"""Questions about programs: types, variables, scopes, equality."""

from relay_hw.analysis.infer import infer_expr, infer_type

__all__ = ["infer_expr", "infer_type"]
