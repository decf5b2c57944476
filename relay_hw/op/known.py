"""Names of the operators of TVM's last Relay release that have no meaning here. In: a name. Out: whether it is one."""

from __future__ import annotations

from typing import Final

NAMES: Final = frozenset(
    """
adv_index annotation.bitpack_end annotation.bitpack_start annotation.cast_hint annotation.checkpoint
annotation.with_funcid arange argsort argwhere auto_scheduler_layout_transform call_lowered cumprod cumsum dft
dyn.broadcast_to dyn.expand_dims dyn.full dyn.image.resize2d dyn.nn.pad dyn.nn.upsampling dyn.nn.upsampling3d
dyn.one_hot dyn.ones dyn.reshape dyn.sparse_to_dense dyn.squeeze dyn.strided_slice dyn.tile dyn.topk dyn.zeros
einsum fixed_point_multiply_per_axis hardswish image.affine_grid image.crop_and_resize image.dilation2d
image.grid_sample image.resize1d image.resize2d image.resize3d invert_permutation matrix_set_diag
memory.alloc_storage memory.alloc_tensor memory.kill meshgrid meta_schedule_layout_transform ndarray_size
nn.avg_pool2d_grad nn.batch_to_space_nd nn.bitpack nn.bitserial_conv2d nn.bitserial_dense
nn.contrib_conv2d_NCHWc nn.contrib_conv2d_gemm_weight_transform
nn.contrib_conv2d_gemm_without_weight_transform nn.contrib_conv2d_winograd_nnpack_weight_transform
nn.contrib_conv2d_winograd_weight_transform nn.contrib_conv2d_winograd_without_weight_transform
nn.contrib_conv3d_winograd_weight_transform nn.contrib_conv3d_winograd_without_weight_transform
nn.contrib_dense_pack nn.contrib_depthwise_conv2d_NCHWc nn.conv2d_backward_weight nn.correlation
nn.deformable_conv2d nn.depth_to_space nn.dilate nn.fifo_buffer nn.internal.sparse_dense_padded
nn.max_pool2d_grad nn.nll_loss nn.space_to_batch_nd nn.space_to_depth nn.sparse_add nn.sparse_conv2d
nn.sparse_dense nn.sparse_transpose nn.upsampling3d parser.MetaRef qnn.abs qnn.avg_pool2d
qnn.batch_matmul qnn.contrib_dense_pack qnn.conv2d_transpose qnn.erf qnn.exp qnn.hardswish qnn.leaky_relu
qnn.log qnn.rsqrt qnn.sigmoid qnn.simulated_dequantize qnn.simulated_quantize qnn.softmax qnn.sqrt qnn.tanh
random.multinomial random.normal random.threefry_generate random.threefry_split random.uniform
relay.op.annotation.simulated_quantize reverse_sequence scatter searchsorted sequence_mask shape_of slice_like
sliding_window sort sparse_fill_empty_rows sparse_reshape sparse_to_dense stft strided_set topk trilu unique
unravel_index vision.all_class_non_max_suppression vision.get_valid_counts vision.multibox_prior
vision.multibox_transform_loc vision.non_max_suppression vision.proposal vision.regular_non_max_suppression
vision.roi_align vision.roi_pool vision.yolo_reorg vm.invoke_tvm_op vm.reshape_tensor vm.shape_of
""".split()
)


def is_known(name: str) -> bool:
    """Whether Relay has an operator `name` that is not yet given a meaning here."""
    return name in NAMES
