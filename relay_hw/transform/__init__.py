"""Passes over modules under Relay's names, one per file, and the infrastructure that runs them."""

from relay_hw.transform.annotate_target import AnnotateTarget
from relay_hw.transform.base import FunctionPass, Pass
from relay_hw.transform.batch_fragments import BatchFragments
from relay_hw.transform.canonicalize_cast import CanonicalizeCast
from relay_hw.transform.canonicalize_ops import CanonicalizeOps
from relay_hw.transform.combine_parallel import CombineParallelConv2D, CombineParallelDense
from relay_hw.transform.common_subexpr import EliminateCommonSubexpr
from relay_hw.transform.constant_arguments import ConstantArguments
from relay_hw.transform.context import PassContext, PassInfo
from relay_hw.transform.convert_layout import ConvertLayout
from relay_hw.transform.dead_code import DeadCodeElimination
from relay_hw.transform.decorators import function_pass, module_pass
from relay_hw.transform.defuse_ops import DefuseOps
from relay_hw.transform.dynamic_to_static import DynamicToStatic
from relay_hw.transform.effects import Effect, pin_effects
from relay_hw.transform.eta_expand import EtaExpand
from relay_hw.transform.fake_quantization import FakeQuantizationToInteger
from relay_hw.transform.fast_math import FastMath
from relay_hw.transform.first_order_gradient import first_order_gradient
from relay_hw.transform.fold_batch_norm import FoldBatchNorm
from relay_hw.transform.fold_constant import FoldConstant
from relay_hw.transform.fold_explicit_padding import FoldExplicitPadding
from relay_hw.transform.fold_scale_axis import BackwardFoldScaleAxis, FoldScaleAxis, ForwardFoldScaleAxis
from relay_hw.transform.fragments import OutlineFragments
from relay_hw.transform.fuse_ops import FuseOps
from relay_hw.transform.gradient import gradient, gradient_module
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.inline import Inline
from relay_hw.transform.inline_let import InlineLet
from relay_hw.transform.instrument import (
    PassInstrument,
    PassPrintingInstrument,
    PassTiming,
    PassTimingInstrument,
    PrintAfterAll,
    PrintBeforeAll,
    pass_instrument,
)
from relay_hw.transform.lambda_lift import LambdaLift
from relay_hw.transform.legalize import Legalize
from relay_hw.transform.lift_to_2d import LiftTo2D
from relay_hw.transform.merge_compiler_regions import MergeCompilerRegions
from relay_hw.transform.merge_composite import MergeComposite
from relay_hw.transform.outline_copies import OutlineCopies
from relay_hw.transform.partial_evaluate import PartialEvaluate
from relay_hw.transform.partition_graph import PartitionGraph
from relay_hw.transform.passes import PASSES, get_pass
from relay_hw.transform.pipelines import simplify_pipeline
from relay_hw.transform.plan_devices import PlanDevices
from relay_hw.transform.qnn_canonicalize import QnnCanonicalizeOps
from relay_hw.transform.remove_unused_functions import RemoveUnusedFunctions
from relay_hw.transform.rewrite_numerics import RewriteNumerics
from relay_hw.transform.sequential import Pipeline, Sequential
from relay_hw.transform.simplify import SimplifyExpr
from relay_hw.transform.simplify_inference import SimplifyInference
from relay_hw.transform.to_a_normal_form import ToANormalForm
from relay_hw.transform.to_basic_block_normal_form import ToBasicBlockNormalForm
from relay_hw.transform.to_graph_normal_form import ToGraphNormalForm

__all__ = [
    "PASSES",
    "AnnotateTarget",
    "BackwardFoldScaleAxis",
    "BatchFragments",
    "CanonicalizeCast",
    "CanonicalizeOps",
    "CombineParallelConv2D",
    "CombineParallelDense",
    "ConstantArguments",
    "ConvertLayout",
    "DeadCodeElimination",
    "DefuseOps",
    "DynamicToStatic",
    "Effect",
    "EliminateCommonSubexpr",
    "EtaExpand",
    "FakeQuantizationToInteger",
    "FastMath",
    "FoldBatchNorm",
    "FoldConstant",
    "FoldExplicitPadding",
    "FoldScaleAxis",
    "ForwardFoldScaleAxis",
    "FunctionPass",
    "FuseOps",
    "InferType",
    "Inline",
    "InlineLet",
    "LambdaLift",
    "Legalize",
    "LiftTo2D",
    "MergeCompilerRegions",
    "MergeComposite",
    "OutlineCopies",
    "OutlineFragments",
    "PartialEvaluate",
    "PartitionGraph",
    "Pass",
    "PassContext",
    "PassInfo",
    "PassInstrument",
    "PassPrintingInstrument",
    "PassTiming",
    "PassTimingInstrument",
    "Pipeline",
    "PlanDevices",
    "PrintAfterAll",
    "PrintBeforeAll",
    "QnnCanonicalizeOps",
    "RemoveUnusedFunctions",
    "RewriteNumerics",
    "Sequential",
    "SimplifyExpr",
    "SimplifyInference",
    "ToANormalForm",
    "ToBasicBlockNormalForm",
    "ToGraphNormalForm",
    "first_order_gradient",
    "function_pass",
    "get_pass",
    "gradient",
    "gradient_module",
    "module_pass",
    "pass_instrument",
    "pin_effects",
    "simplify_pipeline",
]
