; 4-bit weights times factors: a whole block of granules behind its factors, and a part of one.
.config default
.section uops uops 0x0 64
.uop first=1
.uop src=1 wgt=1
.uop dst=1 wgt=2 first=1
.uop dst=1 src=1 wgt=3
.section weights weights 0x40 512
.data random seed=53
.section input input 0x240 128
.data random seed=54
.section out output 0x2c0 128

load mem=uop dram=0x0 z=2
load mem=wgt dram=0x40 sram=2 z=32
load mem=wgt expand=1 pitch=1 dram=0x40 z=20
load mem=inp dram=0x240 z=8 set=s0
gemm overwrite=1 uop_end=4 iter_in=4 acc_in=2 inp_in=1 wait=s0
alu alu_op=shr rounding=floor use_imm=1 imm=9 uop_end=1 iter_in=8 dst_in=1 set=s1
requant form=pass clip_lo=-128 clip_hi=127 iter_in=8 acc_in=1 dst_in=1 wait=s1 set=s2
store mem=out dram=0x2c0 z=8 wait=s2
finish
