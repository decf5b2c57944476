"""Networks with seeded weights as ONNX: trained ones cannot be shipped, and cycles do not depend on weights.

In: a name of `NETWORKS`. Out: an `onnx.ModelProto`; `python -m examples.models NAME -o FILE` writes one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from examples.models.dcgan import dcgan
from examples.models.densenet import densenet121
from examples.models.gated import efficientnet_b0, mobilenet_v3_small
from examples.models.mobilenet import mobilenet_grouped, mobilenet_v1, mobilenet_v2
from examples.models.resnet import resnet18, resnet34, resnet50
from examples.models.tiny import ds_cnn, resnet8, wake_words
from examples.models.yolo import yolov8n

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True, slots=True)
class Example:
    """One network. `size`: what `build` takes as its input's height (and width), the published one.

    `macs`: multiply-accumulates of convolutions and dense layers at that size, inserted zeros of transposed
    convolutions not counted; products with padding are.
    """

    name: str
    build: Callable[[int, int], onnx.ModelProto]
    size: int
    input: str
    output: str
    macs: int
    about: str

    def model(self, size: int | None = None, seed: int = 0) -> onnx.ModelProto:
        """The network for inputs of `size`. Raises ValueError where that is below 1."""
        if size is not None and size < 1:
            raise ValueError(f"size must be at least 1, not {size}")
        return self.build(size or self.size, seed)


NETWORKS = (
    Example("resnet18", resnet18, 224, "3x224x224", "1000", 1_814_073_344, "ResNet-18"),
    Example("resnet34", resnet34, 224, "3x224x224", "1000", 3_663_761_408, "ResNet-34"),
    Example("resnet50", resnet50, 224, "3x224x224", "1000", 4_089_184_256, "ResNet-50 v1.5"),
    Example("mobilenet_v1", mobilenet_v1, 224, "3x224x224", "1000", 568_740_352, "MobileNet v1"),
    Example("mobilenet_v2", mobilenet_v2, 224, "3x224x224", "1000", 300_774_272, "MobileNet v2"),
    Example(
        "mobilenet_grouped", mobilenet_grouped, 224, "3x224x224", "1000", 829_530_112, "MobileNet v1, groups of 16"
    ),
    Example("densenet121", densenet121, 224, "3x224x224", "1000", 2_834_161_664, "DenseNet-121"),
    Example("mobilenet_v3_small", mobilenet_v3_small, 224, "3x224x224", "1000", 56_510_400, "MobileNet v3, small"),
    Example("efficientnet_b0", efficientnet_b0, 224, "3x224x224", "1000", 385_814_752, "EfficientNet-B0"),
    Example("yolov8n", yolov8n, 640, "3x640x640", "144x8400", 4_371_456_000, "YOLOv8n, up to its boxes"),
    Example("dcgan", dcgan, 100, "100", "3x64x64", 410_583_040, "DCGAN's generator"),
    Example("resnet8", resnet8, 32, "3x32x32", "10", 12_501_632, "MLPerf Tiny, image classification"),
    Example("ds_cnn", ds_cnn, 49, "1x49x10", "12", 2_656_768, "MLPerf Tiny, keyword spotting"),
    Example("wake_words", wake_words, 96, "3x96x96", "2", 7_489_664, "MLPerf Tiny, visual wake words"),
)


def find(name: str) -> Example:
    """The network called `name`. Raises ValueError."""
    for example in NETWORKS:
        if example.name == name:
            return example
    raise ValueError(f"network must be one of {', '.join(example.name for example in NETWORKS)}, not {name}")


__all__ = ["NETWORKS", "Example", "find"]
