; A depthwise convolution: four taps of four channels, three of them with a step of one line, and a fifth line's channels.
.config tiny
.section uops uops 0x0 32
.uop first=1
.uop src=4 wgt=1
.uop dst=1 src=1 wgt=2 first=1
.section weights weights 0x20 64
.data random seed=7
.section input input 0x60 256
.data random seed=8
.section prm constants 0x160 64
.prm bias=5 multiplier=1 shift=7
.section out output 0x1a0 64

load mem=uop dram=0x0 z=2
load mem=wgt dram=0x20 z=4
load mem=prm dram=0x160 z=4
load mem=inp dram=0x60 z=16 set=s0
gemm mode=taps overwrite=1 uop_end=3 iter_in=8 acc_in=2 inp_in=4 wait=s0 set=s1
requant form=scale clip_lo=-128 clip_hi=127 iter_in=16 acc_in=1 dst_in=1 wait=s1 set=s2
store mem=out dram=0x1a0 z=4 wait=s2
finish
