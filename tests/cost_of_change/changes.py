"""One change for each recipe of CONTRIBUTING.md that the project promises to be cheap."""

from __future__ import annotations

from tests.cost_of_change.recipe import ROOT, Create, Insert, Recipe, Replace

OPERATOR = Recipe(
    "An operator, with gradient, ONNX converter and TVM lowering",
    bar=3,
    check="operator_silu.py",
    edits=(
        Replace("relay_hw/op/activation.py", '"prelu", "relu"]', '"prelu", "relu", "silu"]'),
        Insert(
            "relay_hw/op/activation.py",
            "relu = unary_builder(RELU)\n",
            """

def _silu_slope(x: Expr, y: Expr, g: Expr) -> Expr:
    gate = ops().sigmoid(x)
    return g * (gate + y * (number(1, x) - gate))


SILU = unary("nn.silu", lambda x: x / (1 + np.exp(-x)), "x * sigmoid(x)", slope=_silu_slope)
silu = unary_builder(SILU)
""",
        ),
        Replace("relay_hw/op/activation.py", "OPS = (", "OPS = (SILU, "),
        Insert(
            "relay_hw/frontend/onnx/elementwise.py",
            """    return nn.leaky_relu(args[0], node.attr("alpha", 0.01))
""",
            """

def _swish(node: Node, args: Arguments) -> Expr:
    alpha = args.scalar(node.attr("alpha", 1.0), args[0])
    return op.divide(nn.silu(op.multiply(args[0], alpha)), alpha)
""",
        ),
        Insert(
            "relay_hw/frontend/onnx/elementwise.py",
            """        Converter("LeakyRelu", _leaky_relu),
""",
            """        Converter("Swish", _swish),
""",
        ),
        Insert(
            "relay_hw/backend/tvm/ops/elementwise.py",
            """        "sigmoid": _function(_sigmoid),
""",
            """        "nn.silu": _function(lambda x: s.bind(lambda v: v * _sigmoid(v), x)),
""",
        ),
    ),
    tests=("tests/relay_hw/op/test_registry.py",),
)

_UPDATE_CONTROL = """  wire        is_mov = is_alu_i ? ZERO[op_i] : !keep_i;
"""
_UPDATE_MINUS = """  localparam [15:0] MINUS = `VTA_ALUOPS_MINUS;
  wire        is_minus = is_alu_i && MINUS[op_i] && !ahead_i;
  reg         minus_o_q;
  always @(posedge clk_i) if (valid_i) minus_o_q <= is_minus;
"""
ALU = Recipe(
    "An ALU operation, end to end",
    bar=5,
    check="alu_sub.py",
    generates=True,
    edits=(
        Insert("accel/isa/alu.py", "    CLIP = 6\n", "    SUB = 7\n"),
        Insert(
            "accel/isa/alu.py",
            '    ADD = "ADD"  # sum of both\n',
            '    MINUS = "MINUS"  # the second operand counts negative\n',
        ),
        Insert(
            "accel/isa/alu.py",
            """        AluOp.ADD: _row("a + b", Control.ADD),
""",
            """        AluOp.SUB: _row("a - b", Control.ADD, Control.MINUS),
""",
        ),
        Insert(
            "accel/isa/arith.py",
            """            return a + b
""",
            """        case AluOp.SUB:
            return a - b
""",
        ),
        # a - b is a + ~b + 1: the one is carried by the place of the highest dropped bit
        Insert("accel/rtl/vta_alu_lane.v", "    input  wire        greater_i,\n", "    input  wire        minus_i,\n"),
        Replace("accel/rtl/vta_alu_lane.v", "old_q <= {result_o, 1'b0};", "old_q <= {result_o, minus_i};"),
        Replace("accel/rtl/vta_alu_lane.v", "else old_q <= old;", "else old_q <= {old[32:1], old[0] || minus_i};"),
        Replace("accel/rtl/vta_alu_lane.v", "second_q <= b_i;", "second_q <= b_i ^ {32{minus_i}};"),
        Replace("accel/rtl/vta_alu_lane.v", "<= ups(rounding_i,", "<= minus_i ? 6'd1 : ups(rounding_i,"),
        Insert("accel/rtl/vta_update.v", _UPDATE_CONTROL, _UPDATE_MINUS),
        Insert(
            "accel/rtl/vta_update.v",
            "          .greater_i (greater_o_q),\n",
            "          .minus_i   (minus_o_q),\n",
        ),
        Insert(
            "accel/rtl/fast/vta_update.v",
            _UPDATE_CONTROL,
            _UPDATE_MINUS
            + """  reg         minus_u_q;
  always @(posedge clk_i) if (valid_o_q) minus_u_q <= minus_o_q;
""",
        ),
        Insert(
            "accel/rtl/fast/vta_update.v",
            "sums[i*32+:32] = a[i*32+:32] + b[i*32+:32];\n  endfunction\n",
            """
  function automatic [ENTRY_W-1:0] differences;
    input [ENTRY_W-1:0] a, b;
    integer i;
    for (i = 0; i < BLOCK_OUT; i = i + 1) differences[i*32+:32] = a[i*32+:32] - b[i*32+:32];
  endfunction
""",
        ),
        Replace(
            "accel/rtl/fast/vta_update.v",
            "      else updated = sums(old_q, second_q);",
            "      else if (minus_u_q) updated = differences(old_q, second_q);\n"
            "      else updated = sums(old_q, second_q);",
        ),
    ),
)

PASS = Recipe(
    "A pass",
    bar=2,
    check="pass_double_negative.py",
    edits=(
        Create(
            "relay_hw/transform/drop_double_negative.py",
            '''"""Drops the negative of a negative."""

from __future__ import annotations

from relay_hw.ir.expr import Call, Expr, Function, Op
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import post_order, rebuild
from relay_hw.transform.base import FunctionPass


class DropDoubleNegative(FunctionPass):
    """negative(negative(x)) becomes x."""

    name = "drop-double-negative"

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        memo: dict[Expr, Expr] = {}
        for node in post_order(function):
            new = rebuild(node, memo)
            inner = _negated(new)
            twice = None if inner is None else _negated(inner)
            memo[node] = new if twice is None else twice
        found = memo[function]
        assert isinstance(found, Function)
        return found


def _negated(node: Expr) -> Expr | None:
    is_negative = isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == "negative"
    return node.args[0] if is_negative else None
''',
        ),
        Insert(
            "relay_hw/transform/passes.py",
            "from relay_hw.transform.defuse_ops import DefuseOps\n",
            "from relay_hw.transform.drop_double_negative import DropDoubleNegative\n",
        ),
        Insert("relay_hw/transform/passes.py", "    DeadCodeElimination,\n", "    DropDoubleNegative,\n"),
    ),
)

STRATEGY = Recipe(
    "A quantization strategy",
    bar=1,
    check="strategy.py",
    edits=(
        Insert(
            "relay_hw/quantize/recipes.py",
            """    Strategy("int8-tensor", per_channel=False, summary="as int8-minmax, one scale a weight"),
""",
            """    Strategy("int7-tensor", weight_bits=7, per_channel=False, summary="as int8-tensor, narrower"),
""",
        ),
    ),
)

ROUNDING = Recipe(
    "A rounding mode for weights",
    bar=2,
    check="rounding.py",
    edits=(
        Insert("relay_hw/quantize/choices.py", '    FLOOR = "floor"\n', '    CEILING = "ceiling"\n'),
        Insert(
            "relay_hw/quantize/number.py",
            """            rounded = np.floor(scaled)
""",
            """        case WeightRounding.CEILING:
            rounded = np.ceil(scaled)
""",
        ),
    ),
)

DEVICE = Recipe(
    "A device",
    bar=1,
    check="device.py",
    edits=(
        Replace(
            "relay_hw/target/accel/devices.py",
            "    from relay_hw.accel.sim.device import Device\n",
            """    from relay_hw.accel.isa.program import Program, SectionKind
    from relay_hw.accel.sim.device import Bytes, Device, LaunchStats
""",
        ),
        Insert(
            "relay_hw/target/accel/devices.py",
            """    return FpgaDevice(config, open_link(port, soc.baud, _PATIENCE), soc, progress=options.progress)
""",
            '''

class _Pair:
    """Two devices that do the same: every byte that is read must be that of both, cycles are those of the first."""

    def __init__(self, first: Device, second: Device) -> None:
        self._first, self._second = first, second

    @property
    def config(self) -> AccelConfig:
        return self._first.config

    def load(self, program: Program) -> None:
        self._first.load(program)
        self._second.load(program)

    def write(self, offset: int, data: Bytes) -> None:
        self._first.write(offset, data)
        self._second.write(offset, data)

    def read(self, offset: int, size: int) -> Bytes:
        found, other = self._first.read(offset, size), self._second.read(offset, size)
        if found.tobytes() != other.tobytes():
            raise AccelError(f"bytes from {offset} on must be those of both devices")
        return found

    def launch(self, stream: SectionKind | None = None) -> LaunchStats:
        streams = () if stream is None else (stream,)
        self._second.launch(*streams)
        return self._first.launch(*streams)


def _open_pair(config: AccelConfig, options: DeviceOptions) -> Device:
    return _Pair(_open_cycle(config, options), _open_functional(config, options))
''',
        ),
        Insert(
            "relay_hw/target/accel/devices.py",
            """    DeviceKind(CYCLE, _open_cycle, has_exact_cycles=True),
""",
            """    DeviceKind("pair", _open_pair, has_exact_cycles=True),
""",
        ),
    ),
)

_NPU = ROOT / "examples" / "toy_npu"
TARGET = Recipe(
    "A target",
    bar=1,
    check="target.py",
    edits=tuple(
        Create(f"outside_npu/{path.name}", path.read_text().replace("examples.toy_npu", "outside_npu"))
        for path in sorted(_NPU.glob("*.py"))
    ),
)

RECIPES = (OPERATOR, ALU, PASS, STRATEGY, ROUNDING, DEVICE, TARGET)
