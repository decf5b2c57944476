"""MergeCompilerRegions: merges neighbouring regions of one compiler, unless that would make a cycle."""

from __future__ import annotations

from relay_hw.dataflow_pattern.grouping import outside_fused
from relay_hw.ir.expr import Call, Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import rebuild
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.compiler_regions import RegionGraph, find_regions_of_compilers
from relay_hw.transform.graph import is_external, typed


class MergeCompilerRegions(FunctionPass):
    """Removes compiler_begin and compiler_end between regions that can be one. Regions of different blocks stay."""

    name = "merge-compiler-regions"
    opt_level = 0
    pins_effects = True

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        regions = find_regions_of_compilers(function)
        graph = RegionGraph(function, regions)
        graph.merge_neighbours()
        inner = {begin for region in regions for begin in region.begins if graph.joins(begin, region)}
        if not inner:
            return function
        memo: dict[Expr, Expr] = {}
        for node in outside_fused(function):
            if node in inner and isinstance(node, Call):
                # The value itself, without the annotation of its end.
                end = node.args[0]
                assert isinstance(end, Call)
                memo[node] = memo[end.args[0]]
            elif isinstance(node, Function) and node.body not in memo:
                memo[node] = node
            else:
                memo[node] = typed(rebuild(node, memo), node.checked_type)
        new = memo[function]
        assert isinstance(new, Function)
        return new
