"""Every pass by name. A new one is an entry of `PASSES`."""

from __future__ import annotations

from typing import Final

from relay_hw.errors import InputError
from relay_hw.support.names import one_of
from relay_hw.transform.annotate_target import AnnotateTarget
from relay_hw.transform.base import Pass
from relay_hw.transform.batch_fragments import BatchFragments
from relay_hw.transform.canonicalize_cast import CanonicalizeCast
from relay_hw.transform.canonicalize_ops import CanonicalizeOps
from relay_hw.transform.combine_parallel import CombineParallelConv2D, CombineParallelDense
from relay_hw.transform.common_subexpr import EliminateCommonSubexpr
from relay_hw.transform.constant_arguments import ConstantArguments
from relay_hw.transform.convert_layout import ConvertLayout
from relay_hw.transform.dead_code import DeadCodeElimination
from relay_hw.transform.defuse_ops import DefuseOps
from relay_hw.transform.dynamic_to_static import DynamicToStatic
from relay_hw.transform.eta_expand import EtaExpand
from relay_hw.transform.fake_quantization import FakeQuantizationToInteger
from relay_hw.transform.fast_math import FastMath
from relay_hw.transform.fold_batch_norm import FoldBatchNorm
from relay_hw.transform.fold_constant import FoldConstant
from relay_hw.transform.fold_explicit_padding import FoldExplicitPadding
from relay_hw.transform.fold_scale_axis import BackwardFoldScaleAxis, FoldScaleAxis, ForwardFoldScaleAxis
from relay_hw.transform.fragments import OutlineFragments
from relay_hw.transform.fuse_ops import FuseOps
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.inline import Inline
from relay_hw.transform.inline_let import InlineLet
from relay_hw.transform.lambda_lift import LambdaLift
from relay_hw.transform.legalize import Legalize
from relay_hw.transform.lift_to_2d import LiftTo2D
from relay_hw.transform.merge_compiler_regions import MergeCompilerRegions
from relay_hw.transform.merge_composite import MergeComposite
from relay_hw.transform.outline_copies import OutlineCopies
from relay_hw.transform.partial_evaluate import PartialEvaluate
from relay_hw.transform.partition_graph import PartitionGraph
from relay_hw.transform.plan_devices import PlanDevices
from relay_hw.transform.qnn_canonicalize import QnnCanonicalizeOps
from relay_hw.transform.remove_unused_functions import RemoveUnusedFunctions
from relay_hw.transform.rewrite_numerics import RewriteNumerics
from relay_hw.transform.simplify import SimplifyExpr
from relay_hw.transform.simplify_inference import SimplifyInference
from relay_hw.transform.to_a_normal_form import ToANormalForm
from relay_hw.transform.to_basic_block_normal_form import ToBasicBlockNormalForm
from relay_hw.transform.to_graph_normal_form import ToGraphNormalForm

# Every pass, for the documents and the tests that hold for all of them.
PASSES: Final[tuple[type[Pass], ...]] = (
    InferType,
    RemoveUnusedFunctions,
    DeadCodeElimination,
    InlineLet,
    FoldConstant,
    SimplifyExpr,
    FoldBatchNorm,
    EliminateCommonSubexpr,
    ToANormalForm,
    ToBasicBlockNormalForm,
    ToGraphNormalForm,
    LambdaLift,
    LiftTo2D,
    ConstantArguments,
    PartialEvaluate,
    SimplifyInference,
    CanonicalizeOps,
    EtaExpand,
    Inline,
    FuseOps,
    DefuseOps,
    MergeComposite,
    AnnotateTarget,
    MergeCompilerRegions,
    PartitionGraph,
    FoldScaleAxis,
    ForwardFoldScaleAxis,
    BackwardFoldScaleAxis,
    ConvertLayout,
    Legalize,
    QnnCanonicalizeOps,
    FakeQuantizationToInteger,
    PlanDevices,
    FastMath,
    RewriteNumerics,
    FoldExplicitPadding,
    CanonicalizeCast,
    CombineParallelConv2D,
    CombineParallelDense,
    DynamicToStatic,
    OutlineFragments,
    OutlineCopies,
    BatchFragments,
)


def get_pass(name: str) -> Pass:
    """The pass of this name, made without arguments. Raises InputError for an unknown one."""
    for one in PASSES:
        if name in (one.__name__, one.name):
            return one()
    raise InputError(one_of("pass", [one.__name__ for one in PASSES], name))
