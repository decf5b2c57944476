"""The pipeline of passes that simplify a network before quantization."""

from __future__ import annotations

from relay_hw.transform.base import Pass
from relay_hw.transform.common_subexpr import EliminateCommonSubexpr
from relay_hw.transform.constant_arguments import ConstantArguments
from relay_hw.transform.dead_code import DeadCodeElimination
from relay_hw.transform.fold_batch_norm import FoldBatchNorm
from relay_hw.transform.fold_constant import FoldConstant
from relay_hw.transform.inline_let import InlineLet
from relay_hw.transform.lift_to_2d import LiftTo2D
from relay_hw.transform.remove_unused_functions import RemoveUnusedFunctions
from relay_hw.transform.sequential import Pipeline
from relay_hw.transform.simplify import SimplifyExpr


def simplify_pipeline() -> Pass:
    """Simplify an imported network with bound parameters to the graph that quantization reads."""
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
            # One form of convolutions and pools for all that follows.
            LiftTo2D(),
            # Bias and scale rules first: a batch norm folds into a layer, not into a sum after it.
            SimplifyExpr(),
            FoldBatchNorm(),
            # The remains of batch norms fold further, and expose pads and activations.
            SimplifyExpr(),
            FoldConstant(fold_qnn=True),
            EliminateCommonSubexpr(),
        ]
    )
