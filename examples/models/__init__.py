"""Networks with seeded weights as ONNX: trained ones cannot be shipped, and cycles do not depend on weights.

In: a name of `NETWORKS`. Out: an `onnx.ModelProto`; `python -m examples.models NAME -o FILE` writes one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from examples.models.dcgan import dcgan
from examples.models.densenet import densenet121
from examples.models.encoders import Sizes, bert, conformer, kwt
from examples.models.gated import efficientnet_b0, mobilenet_v3_small
from examples.models.llama import llama_decode, llama_prefill
from examples.models.mobilenet import mobilenet_grouped, mobilenet_v1, mobilenet_v2
from examples.models.resnet import resnet18, resnet34, resnet50
from examples.models.tiny import ds_cnn, resnet8, wake_words
from examples.models.vision import Stage, deit_tiny, mobilevit_xxs
from examples.models.yolo import yolov8n

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True, slots=True)
class Example:
    """One network. `size`: what `build` takes as its input's height (and width) or number of tokens, the published one.

    `macs`: multiply-accumulates of convolutions, dense layers and products of two tensors at that size, inserted zeros
    of transposed convolutions not counted; products with padding are. `input`, `output`: shapes of the first ones.
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

# Networks of tokens: with products of two tensors, softmax and norms of rows; some of several inputs and outputs.
TRANSFORMERS = (
    Example("deit_tiny", deit_tiny, 224, "3x224x224", "1000", 1_253_683_200, "DeiT-Tiny, a vision transformer"),
    Example("mobilevit_xxs", mobilevit_xxs, 256, "3x256x256", "1000", 407_364_096, "MobileViT-XXS"),
    Example("bert", bert, 128, "128", "128x256", 436_207_616, "BERT, 4 layers of 256, padding mask"),
    Example("kwt_1", kwt, 98, "1x40x98", "35", 73_700_032, "KWT-1, keyword spotting"),
    Example("conformer", conformer, 100, "100x144", "100x144", 50_788_800, "a block of a conformer"),
    Example("llama_prefill", llama_prefill, 64, "64", "1x32000", 405_577_728, "TinyStories-15M, a prompt"),
    Example("llama_decode", llama_decode, 256, "1", "1x32000", 16_072_704, "TinyStories-15M, one word and caches"),
)
# The same structures of few and narrow layers: a size, and what builds them.
SMALL: Mapping[str, tuple[int, Callable[[int, int], onnx.ModelProto]]] = {
    "deit_tiny": (64, partial(deit_tiny, sizes=Sizes(48, 2, 3, 96))),
    "mobilevit_xxs": (64, partial(mobilevit_xxs, stages=(Stage(16, 1, 2), Stage(24, 1, 2, 1, 32)))),
    "bert": (24, partial(bert, sizes=Sizes(64, 1, 2, 128), words=300)),
    "kwt_1": (20, partial(kwt, sizes=Sizes(32, 2, 1, 64))),
    "conformer": (20, partial(conformer, sizes=Sizes(48, 1, 4, 96))),
    "llama_prefill": (24, partial(llama_prefill, sizes=Sizes(96, 2, 2, 192), words=300)),
    "llama_decode": (24, partial(llama_decode, sizes=Sizes(96, 2, 2, 192), words=300)),
}


def small(name: str, seed: int = 0) -> onnx.ModelProto:
    """The transformer called `name` with few and narrow layers."""
    size, build = SMALL[name]
    return build(size, seed)


def find(name: str) -> Example:
    """The network called `name`. Raises ValueError."""
    known = (*NETWORKS, *TRANSFORMERS)
    for example in known:
        if example.name == name:
            return example
    raise ValueError(f"network must be one of {', '.join(example.name for example in known)}, not {name}")


__all__ = ["NETWORKS", "SMALL", "TRANSFORMERS", "Example", "find", "small"]
