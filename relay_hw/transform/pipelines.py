"""The passes in the order in which a network goes through them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from relay_hw.transform.base import Pass, Pipeline
from relay_hw.transform.common_subexpr import EliminateCommonSubexpr
from relay_hw.transform.constant_arguments import ConstantArguments
from relay_hw.transform.dead_code import DeadCodeElimination
from relay_hw.transform.fold_batch_norm import FoldBatchNorm
from relay_hw.transform.fold_constant import FoldConstant
from relay_hw.transform.fuse import Legal, MergeDeviceComposites
from relay_hw.transform.inline_let import InlineLet
from relay_hw.transform.partition import PartitionDevice
from relay_hw.transform.pieces import OutlinePieces
from relay_hw.transform.remove_unused_functions import RemoveUnusedFunctions
from relay_hw.transform.simplify import SimplifyExpr


def simplify_pipeline() -> Pass:
    """An imported network, parameters bound, becomes the plain graph that quantization reads."""
    return Pipeline(
        [
            RemoveUnusedFunctions(),
            DeadCodeElimination(),
            InlineLet(),
            FoldConstant(fold_qnn=True),
            # Weights of loops are constants inside of the loop.
            ConstantArguments(),
            RemoveUnusedFunctions(),
            FoldConstant(fold_qnn=True),
            # Bias and scale rules first: a batch norm folds into a layer, not into a sum after it.
            SimplifyExpr(),
            FoldBatchNorm(),
            # What batch norm left behind folds further, and exposes pads and activations.
            SimplifyExpr(),
            FoldConstant(fold_qnn=True),
            EliminateCommonSubexpr(),
        ]
    )


def partition_pipeline(legal: Legal | None = None, rules: Mapping[str, str] | None = MappingProxyType({})) -> Pass:
    """A quantized network becomes device functions, host functions and a `main` that calls them.

    `rules`: what operators need to be quantized, for the reasons of those that stay; None where nothing is quantized.
    """
    return Pipeline(
        [
            EliminateCommonSubexpr(),
            OutlinePieces(),
            MergeDeviceComposites(legal),
            PartitionDevice(legal, rules),
        ]
    )
