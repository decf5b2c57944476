"""Every example network in a size that is quick to run, built once."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import onnx
import pytest

from examples.models import NETWORKS, Example
from examples.models.builder import images

# Networks that end with a global average take any size.
SMALL = {
    "resnet18": 32,
    "resnet34": 32,
    "resnet50": 32,
    "mobilenet_v1": 32,
    "mobilenet_v2": 32,
    "mobilenet_grouped": 32,
    "densenet121": 32,
    "wake_words": 96,
}


class Built:
    """A network, its model in a small size, and two images that it was not built with."""

    def __init__(self, example: Example) -> None:
        self.example = example
        self.model = example.model(SMALL.get(example.name))
        axes = self.model.graph.input[0].type.tensor_type.shape.dim
        self.images = images([axis.dim_value for axis in axes][1:], 2, seed=77)

    def at_published_size(self) -> onnx.ModelProto:
        """The model for inputs of the published size; its weights do not depend on that."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        if SMALL.get(self.example.name):
            for axis in model.graph.input[0].type.tensor_type.shape.dim[2:]:
                axis.dim_value = self.example.size
        return model

    @cached_property
    def values(self) -> dict[str, np.ndarray]:
        """Outputs of all nodes for both images, by node name, from onnxruntime."""
        import onnxruntime

        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        names = [node.output[0] for node in model.graph.node]
        del model.graph.output[:]
        model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        runs = [session.run(names, {"input": image[None]}) for image in self.images]
        both = [np.concatenate(pair) for pair in zip(*runs, strict=True)]
        return {node.name: value for node, value in zip(model.graph.node, both, strict=True)}


@pytest.fixture(scope="session", params=NETWORKS, ids=lambda example: example.name)
def built(request: pytest.FixtureRequest) -> Built:
    """Each network."""
    return Built(request.param)
