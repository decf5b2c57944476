"""The named quantization strategies. A new one is one entry of `STRATEGIES`."""

from __future__ import annotations

from typing import Final

from relay_hw.quantize.choices import Budget, Calibration, LayerPolicy, NumberFormat, WeightRange, WeightRounding
from relay_hw.quantize.strategy import Strategy

_NARROW: Final = {
    "first_layer": LayerPolicy.INT8,
    "last_layer": LayerPolicy.INT8,
    "calibration": Calibration.MSE,
    "weight_range": WeightRange.MSE,
    "bias_correction": True,
}
_W4: Final = {"weight_bits": 4, **_NARROW}
_GPTQ8: Final = {
    "calibration": Calibration.MSE,
    "weight_range": WeightRange.MSE,
    "weight_rounding": WeightRounding.GPTQ,
    "bias_correction": True,
}
_NO_HARDWARE: Final = "no hardware here"

# The name of the strategy that leaves a model as it is.
FLOAT: Final = "float"
STRATEGIES: Final[tuple[Strategy, ...]] = (
    # The default is the best of those that take seconds for a large network.
    Strategy(
        "int8",
        calibration=Calibration.MSE,
        summary="int8 weights per channel, int8 activations with zero point and ranges of least squared error",
    ),
    # Each of these options had less noise than its alternative on held-out calibration samples of three networks.
    Strategy(
        "int8-gptq",
        **_GPTQ8,
        summary="as int8, weights rounded by second order (GPTQ), biases corrected: minutes for a large network",
    ),
    Strategy("int8-minmax", summary="int8 weights per channel, int8 activations with zero point, min-max ranges"),
    Strategy(
        "int8-percentile",
        calibration=Calibration.PERCENTILE,
        summary="as int8-minmax, ranges hold 99.99 % of the calibration values",
    ),
    Strategy(
        "int8-kl",
        calibration=Calibration.KL,
        summary="as int8-minmax, ranges of least Kullback-Leibler divergence",
    ),
    Strategy(
        "int8-mse",
        calibration=Calibration.MSE,
        weight_range=WeightRange.MSE,
        summary="as int8, ranges of weights of least squared error, too",
    ),
    Strategy(
        "int8-average",
        calibration=Calibration.MOVING_AVERAGE,
        summary="as int8-minmax, ranges are moving averages of the samples' ranges",
    ),
    Strategy(
        "int8-outlier",
        calibration=Calibration.OUTLIER,
        summary="as int8-minmax, ranges leave out values far from all others",
    ),
    Strategy("int8-symmetric", symmetric=True, summary="as int8-minmax, activation zero points fixed at 0"),
    Strategy("int8-tensor", per_channel=False, summary="as int8-minmax, one scale a weight"),
    Strategy(
        "int8-pow2",
        symmetric=True,
        power_of_two=True,
        calibration=Calibration.MSE,
        weight_range=WeightRange.MSE,
        bias_correction=True,
        summary="zero points 0, scales are powers of two: requantization is a shift; ranges of least squared error, "
        "biases corrected",
    ),
    Strategy(
        "int8-equalized",
        **_GPTQ8,
        equalize=True,
        summary="as int8-gptq, channels equalized across layers",
    ),
    Strategy(
        "int8-twins",
        **_GPTQ8,
        equalize=True,
        twins=True,
        summary="as int8-equalized, channels twice where the accelerator has idle lanes: one bit more for them",
    ),
    Strategy(
        "int8-best",
        calibration=Calibration.MSE,
        candidates=("int8-gptq", "int8-minmax", "int8-percentile", "int8-kl", "int8-mse", "int8-twins"),
        summary="that of six int8 strategies with the least noise on held-out calibration samples",
    ),
    Strategy("w4a8", **_W4, summary="4-bit weights but in the first and last layer, biases corrected"),
    Strategy(
        "w4a8-adaround",
        **_W4,
        weight_rounding=WeightRounding.ADAROUND,
        summary="as w4a8, each weight rounded up or down as the layer's output asks (AdaRound)",
    ),
    Strategy(
        "w4a8-gptq",
        **_W4,
        weight_rounding=WeightRounding.GPTQ,
        summary="as w4a8, errors of rounding made up for by the weights after them (GPTQ)",
    ),
    # Nine weights have few others to make up for their errors: 8 bits for them are hardly any bytes.
    Strategy(
        "w4a8-twins",
        **_W4,
        weight_rounding=WeightRounding.GPTQ,
        depthwise_layers=LayerPolicy.INT8,
        equalize=True,
        twins=True,
        summary="as w4a8-gptq and int8-twins, depthwise layers with 8-bit weights",
    ),
    Strategy(
        "w4a8-stochastic",
        **_W4,
        weight_rounding=WeightRounding.STOCHASTIC,
        summary="as w4a8, weights rounded at random by their distance",
    ),
    Strategy(
        "w4g16a8-gptq",
        **_W4,
        weight_rounding=WeightRounding.GPTQ,
        weight_group=16,
        depthwise_layers=LayerPolicy.INT8,
        summary="as w4a8-gptq, 16 inputs share a factor where the array takes 8 bits, depthwise layers 8-bit",
    ),
    Strategy(
        "w4g32a8",
        weight_bits=4,
        weight_group=32,
        per_channel=False,
        symmetric=True,
        calibration=Calibration.MSE,
        weight_range=WeightRange.MSE,
        summary="4-bit weights in all layers, one scale each, 32 inputs share a factor where the array takes 8 bits, "
        "zero points 0: fewest bytes, for language models, whose last layer is the largest",
    ),
    Strategy(
        "w2a8-gptq",
        **_NARROW,
        weight_bits=2,
        weight_rounding=WeightRounding.GPTQ,
        depthwise_layers=LayerPolicy.INT8,
        summary="as w4a8-gptq with 2-bit weights, depthwise layers 8-bit: half its bytes where the array takes 4 bits",
    ),
    Strategy(
        "w2g16a8-gptq",
        **_NARROW,
        weight_bits=2,
        weight_rounding=WeightRounding.GPTQ,
        weight_group=16,
        depthwise_layers=LayerPolicy.INT8,
        summary="as w2a8-gptq, 16 inputs share a factor from 1 to 7 where the array takes 4 bits",
    ),
    Strategy("w4a4", **_W4, activation_bits=4, summary="as w4a8, 4-bit activations"),
    Strategy(
        "mixed",
        **_GPTQ8,
        budget=Budget.BYTES,
        budget_share=0.6,
        summary="4- and 8-bit layers by measured sensitivity, within 60 % of int8's weight bytes",
    ),
    Strategy(
        "w4a8-mixed",
        **_GPTQ8,
        weight_bits=4,
        equalize=True,
        twins=True,
        augment=3,
        budget=Budget.BYTES,
        budget_share=0.6,
        summary="as w4a8-twins, but 8-bit weights where noise was measured, within 60 % of int8's weight bytes; "
        "weights are fitted to four times the samples",
    ),
    Strategy(
        "mixed-cycles",
        **_GPTQ8,
        budget=Budget.CYCLES,
        budget_share=0.7,
        summary="4- and 8-bit layers by measured sensitivity, within 70 % of int8's cycles",
    ),
    Strategy(
        "qat-int8",
        **_GPTQ8,
        epochs=4,
        learning_rate=1e-4,
        summary="as int8-gptq, then weights trained with quantization in the loop",
    ),
    Strategy(
        "qat-w4a8",
        **_W4,
        weight_rounding=WeightRounding.GPTQ,
        epochs=8,
        learning_rate=1e-3,
        summary="as w4a8-gptq, then weights trained with quantization in the loop",
    ),
    Strategy(
        "tvm",
        symmetric=True,
        power_of_two=True,
        per_channel=False,
        calibration=Calibration.GLOBAL,
        global_scale=8.0,
        bias_bits=8,
        first_layer=LayerPolicy.FLOAT,
        dense_layers=LayerPolicy.FLOAT,
        summary="Relay's published recipe: global scale 8, powers of two, first convolution and dense layers float",
    ),
    Strategy("fp8-e4m3", number_format=NumberFormat.FP8_E4M3, summary=f"FP8 E4M3, {_NO_HARDWARE}"),
    Strategy("fp8-e5m2", number_format=NumberFormat.FP8_E5M2, summary=f"FP8 E5M2, {_NO_HARDWARE}"),
    Strategy("mxint8", number_format=NumberFormat.MXINT8, summary=f"MXINT8, blocks of 32, {_NO_HARDWARE}"),
    Strategy("mxfp8", number_format=NumberFormat.MXFP8, summary=f"MXFP8 E4M3, blocks of 32, {_NO_HARDWARE}"),
    Strategy("mxfp6", number_format=NumberFormat.MXFP6, summary=f"MXFP6 E2M3, blocks of 32, {_NO_HARDWARE}"),
    Strategy("mxfp4", number_format=NumberFormat.MXFP4, summary=f"MXFP4 E2M1, blocks of 32, {_NO_HARDWARE}"),
)


def strategy_names() -> tuple[str, ...]:
    """Names that `find_strategy` knows, the default first."""
    return tuple(strategy.name for strategy in STRATEGIES)
