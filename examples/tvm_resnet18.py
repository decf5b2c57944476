"""A script as it was written for TVM: ResNet-18 from `relay.var` and `relay.nn`, passes, build, run, save, load.

Only the imports have changed: each line's comment says what it was. `--size 64 --target numpy` makes it quick.
"""

import argparse

import numpy as np

from relay_hw.compat import tvm  # import tvm
from relay_hw.compat.tvm import relay  # from tvm import relay
from relay_hw.compat.tvm.contrib import graph_executor, utils  # from tvm.contrib import graph_executor, utils
from relay_hw.compat.tvm.relay import testing  # from tvm.relay import testing
from relay_hw.compat.tvm.relay.dataflow_pattern import is_op, wildcard  # from tvm.relay.dataflow_pattern import ...


def conv_bn_relu(data, name, channels, kernel, stride, relu=True):
    weight = relay.var(name + "_weight")
    pad = kernel // 2
    x = relay.nn.conv2d(
        data, weight, channels=channels, kernel_size=(kernel, kernel), strides=(stride, stride), padding=(pad, pad)
    )
    statistics = [relay.var(f"{name}_{part}") for part in ("gamma", "beta", "moving_mean", "moving_var")]
    x = relay.nn.batch_norm(x, *statistics, epsilon=1e-5)[0]
    return relay.nn.relu(x) if relu else x


def basic_block(data, name, channels, stride):
    x = conv_bn_relu(data, name + "_conv1", channels, 3, stride)
    x = conv_bn_relu(x, name + "_conv2", channels, 3, 1, relu=False)
    if stride != 1:
        data = conv_bn_relu(data, name + "_down", channels, 1, stride, relu=False)
    return relay.nn.relu(relay.add(x, data))


def resnet18(batch, size, classes):
    data = relay.var("data", shape=(batch, 3, size, size), dtype="float32")
    x = conv_bn_relu(data, "stem", 64, 7, 2)
    x = relay.nn.max_pool2d(x, pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
    for stage, channels in enumerate((64, 128, 256, 512)):
        for block in range(2):
            stride = 2 if stage > 0 and block == 0 else 1
            x = basic_block(x, f"stage{stage}_block{block}", channels, stride)
    x = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(x))
    x = relay.nn.dense(x, relay.var("fc_weight"), units=classes)
    x = relay.nn.softmax(relay.nn.bias_add(x, relay.var("fc_bias")))
    return relay.Function(relay.analysis.free_vars(x), x)


def main(size, classes, target):
    mod, params = testing.create_workload(resnet18(1, size, classes))
    print(mod.astext(show_meta_data=False)[:400], "...")

    # Passes, one by one and in sequence, with their times.
    seq = tvm.transform.Sequential(
        [
            relay.transform.InferType(),
            relay.transform.SimplifyInference(),
            relay.transform.FoldConstant(),
            relay.transform.FoldScaleAxis(),
            relay.transform.CanonicalizeOps(),
            relay.transform.EliminateCommonSubexpr(),
            relay.transform.FuseOps(fuse_opt_level=2),
        ]
    )
    bound = tvm.IRModule.from_expr(relay.build_module.bind_params_by_name(mod["main"], params))
    timing = tvm.instrument.PassTimingInstrument()
    with tvm.transform.PassContext(opt_level=3, instruments=[timing]):
        fused = seq(bound)
        profile = timing.render()
    print(profile)
    primitive = []
    relay.analysis.post_order_visit(
        fused["main"], lambda node: primitive.append(node) if isinstance(node, relay.Function) else None
    )
    conv_relu = is_op("nn.relu")(is_op("nn.conv2d")(wildcard(), wildcard()).optional(lambda x: x + wildcard()))
    matched = sum(1 for function in primitive if conv_relu.match(function.body))
    print(f"{len(primitive) - 1} fused functions, {matched} of them a convolution, an addition and relu")

    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target=target, params=params)

    dev = tvm.device(str(tvm.target.Target("llvm")), 0)
    module = graph_executor.GraphModule(lib["default"](dev))
    data = np.random.RandomState(0).uniform(-1, 1, size=(1, 3, size, size)).astype("float32")
    module.set_input("data", data)
    module.run()
    out = module.get_output(0, tvm.nd.empty((1, classes))).numpy()
    print("ten first probabilities:", out.flatten()[:10])

    # The interpreter is the meaning of the program: the build must agree with it.
    debug = relay.create_executor("debug", mod=mod, device=dev, target="llvm", params=params).evaluate()
    tvm.testing.assert_allclose(out, debug(tvm.nd.array(data)).numpy(), rtol=1e-4, atol=1e-6)

    temp = utils.tempdir()
    path_lib = temp.relpath("deploy_lib.tar")
    lib.export_library(path_lib)
    loaded = graph_executor.GraphModule(tvm.runtime.load_module(path_lib)["default"](dev))
    loaded.run(data=tvm.nd.array(data))
    tvm.testing.assert_allclose(loaded.get_output(0).numpy(), out, atol=1e-5)
    print("saved, loaded, and the same")
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=224, help="height and width of the image")
    parser.add_argument("--classes", type=int, default=1000, help="number of classes")
    parser.add_argument("--target", default="llvm", help="llvm, or numpy to compile nothing")
    options = parser.parse_args()
    main(options.size, options.classes, options.target)
