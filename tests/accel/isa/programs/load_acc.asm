; 32-bit words and padding bytes into the accumulator, read back byte by byte.
.config tiny
.section uops uops 0x0 32
.uop
.section input input 0x20 64
.data random seed=13
.section out output 0x60 128

load mem=uop dram=0x0 z=1
load mem=acc dram=0x20 sram=2 z=1 y=2 x=2 y_stride=32 x_stride=16 pad_value=-2 y_pad_1=1 x_pad_0=1 set=s0
; split 8 accumulator entries into bytes: low byte first, each sign-extended
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=mov src_in=1 dst_base=64 src_base=2 wait=s0
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=64
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=64
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=mov src_in=1 dst_base=72 src_base=2
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=8 dst_base=72
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=72
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=72
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=mov src_in=1 dst_base=80 src_base=2
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=16 dst_base=80
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=80
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=80
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=mov src_in=1 dst_base=88 src_base=2
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=88
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=mul use_imm=1 imm=16777216 dst_base=88
alu uop_begin=0 uop_end=1 iter_in=8 dst_in=1 alu_op=shr use_imm=1 rounding=floor imm=24 dst_base=88 set=s14
requant form=pass clip_lo=-128 clip_hi=127 iter_in=32 acc_base=64 acc_in=1 dst_in=1 wait=s14 set=s15
store mem=out dram=0x60 z=8 wait=s15
finish
