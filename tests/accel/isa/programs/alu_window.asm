; 2x2 maximum with stride 2 (the same destination in four micro-ops), then a running sum where each
; micro-op reads what the one before it wrote.
.config tiny
.section uops uops 0x0 64
.uop dst=0 src=0
.uop dst=0 src=1
.uop dst=0 src=4
.uop dst=0 src=5
.uop dst=1 src=0
.section input input 0x40 64
.data random seed=16
.section out output 0x80 64

load mem=uop dram=0x0 z=3
; 4 x 4 image of entries at 0..15
load mem=acc expand=1 dram=0x40 z=4 set=s0
alu alu_op=mov uop_end=1 iter_out=2 iter_in=2 dst_out=2 dst_in=1 src_out=8 src_in=2 dst_base=32 wait=s0
alu alu_op=max uop_end=4 iter_out=2 iter_in=2 dst_out=2 dst_in=1 src_out=8 src_in=2 dst_base=32
alu alu_op=shr use_imm=1 imm=3 rounding=half_even uop_end=1 iter_in=12 dst_in=1
alu alu_op=add uop_begin=4 uop_end=5 iter_in=11 dst_in=1 src_in=1 set=s1
requant form=pass clip_lo=-128 clip_hi=127 iter_in=12 acc_in=1 dst_in=1 wait=s1
requant form=pass clip_lo=-128 clip_hi=127 iter_in=4 acc_base=32 acc_in=1 dst_base=12 dst_in=1 set=s2
store mem=out dram=0x80 z=4 wait=s2
finish
