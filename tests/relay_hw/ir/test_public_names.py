"""The names that scripts of users rely on: none goes away, and none comes, without a change of this list."""

from __future__ import annotations

from importlib import import_module

import pytest

# By module. `relay_hw` itself also has all operators, which tests/relay_hw/op/test_registry.py holds.
STABLE = {
    "relay_hw": """
        ANY Call Clause Constant Constructor Expr FuncType Function GlobalTypeVar GlobalVar IRModule If
        IncompleteType Kind Let Match Op Pattern PatternConstructor PatternTuple PatternVar PatternWildcard
        RefCreate RefRead RefType RefWrite Span TensorType Tuple TupleGetItem TupleType Type TypeCall TypeData
        TypeVar Var __version__ analysis astext build compare const create_executor dataflow_pattern explore
        fromtext frontend interp load_json load_param_dict nn op prelude qnn quantize report runtime save_json
        save_param_dict scalar_type text to_python transform var
    """,
    "relay_hw.frontend": """
        from_onnx from_pytorch from_relax from_tflite
    """,
    "relay_hw.runtime": """
        Artifact CompileOptions CompiledModel Executor Explanation Model Module Result compile_model create_executor
        load_artifact load_model open_device
    """,
    "relay_hw.compare": """
        CompareOptions Comparison compare
    """,
    "relay_hw.quantize": """
        Budget Calibration LayerChoice LayerPolicy NumberFormat QConfig STRATEGIES Strategy WeightRange
        WeightRounding annotate calibrate current_qconfig find_strategy load_strategy partition qconfig quantize
        realize realize_module strategy_names strategy_values
    """,
    "relay_hw.report": """
        Bounds Difference Figure HostTime INPUT Instructions Kind LayerRow Line Network Node OUTPUT PARTS Pad Page
        Picture Profile ROWS ROWS_SCRIPT Report Section SegmentRow Speed Spent Transfer bounds_of diff framed host_table
        layer_json layer_table mac_text number percent placement profile_json render render_html report_files
        report_json segment_table short_names some speed_json speed_table summary table traffic_json utilisation
    """,
    "relay_hw.frontend.python": """
        Bool ExportedModel Float Float64 Int Model RelayFunction RelayModel Tensor relay relay_model
    """,
    "relay_hw.explore": """
        Axis Exploration ExploreOptions Point Space explore
    """,
    "relay_hw.demo": """
        Digits MODEL read_digits
    """,
}


@pytest.mark.parametrize("module", STABLE)
def test_names_are_stable(module: str) -> None:
    found = import_module(module)
    assert sorted(found.__all__) == STABLE[module].split()
    for name in found.__all__:
        assert getattr(found, name) is not None, name
    assert {*found.__all__} <= {*dir(found)}
