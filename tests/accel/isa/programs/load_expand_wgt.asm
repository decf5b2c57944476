; 4-bit weights in DRAM become bytes: padding as well, two to a byte.
.config tiny
.section uops uops 0x0 64
.uop first=1
.uop src=1 wgt=1
.uop src=2 wgt=2
.uop src=3 wgt=3
.uop dst=1 wgt=4 first=1
.uop dst=1 wgt=5
.uop dst=1 src=2 wgt=6
.uop dst=1 src=3 wgt=7
.section weights weights 0x40 128
.data random seed=43
.section prm constants 0xc0 64
.prm bias=5 multiplier=1 shift=5
.section input input 0x100 64
.data random seed=44
.section out output 0x140 32

load mem=uop dram=0x0 z=4
load mem=wgt dram=0x60 sram=7 z=1
load mem=wgt expand=1 dram=0x40 z=1 y=2 y_stride=32 y_pad_0=1 x_pad_1=1 pad_value=-59
load mem=prm dram=0xc0 z=4
load mem=inp dram=0x100 z=4 set=s0
gemm overwrite=1 uop_end=8 iter_in=4 acc_in=2 inp_in=3 wait=s0 set=s1
requant form=scale clip_lo=-128 clip_hi=127 iter_in=8 acc_in=1 dst_in=1 wait=s1 set=s2
store mem=out dram=0x140 z=2 wait=s2
finish
