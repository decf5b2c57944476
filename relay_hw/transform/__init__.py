"""Passes over modules, one pass a file."""

from relay_hw.transform.base import FunctionPass, Pass, Sequential
from relay_hw.transform.common_subexpr import EliminateCommonSubexpr
from relay_hw.transform.dead_code import DeadCodeElimination
from relay_hw.transform.fold_batch_norm import FoldBatchNorm
from relay_hw.transform.fold_constant import FoldConstant
from relay_hw.transform.fuse import MergeComposite
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.inline_let import InlineLet
from relay_hw.transform.partition import PartitionGraph, PartitionRecord
from relay_hw.transform.pipelines import partition_pipeline, simplify_pipeline
from relay_hw.transform.remove_unused_functions import RemoveUnusedFunctions
from relay_hw.transform.simplify import SimplifyExpr

# Every pass, for the documents and the tests that hold for all of them.
PASSES: tuple[type[Pass], ...] = (
    InferType,
    RemoveUnusedFunctions,
    DeadCodeElimination,
    InlineLet,
    FoldConstant,
    SimplifyExpr,
    FoldBatchNorm,
    EliminateCommonSubexpr,
    MergeComposite,
    PartitionGraph,
)

__all__ = [
    "PASSES",
    "DeadCodeElimination",
    "EliminateCommonSubexpr",
    "FoldBatchNorm",
    "FoldConstant",
    "FunctionPass",
    "InferType",
    "InlineLet",
    "MergeComposite",
    "PartitionGraph",
    "PartitionRecord",
    "Pass",
    "RemoveUnusedFunctions",
    "Sequential",
    "SimplifyExpr",
    "partition_pipeline",
    "simplify_pipeline",
]
