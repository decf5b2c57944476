; One output entry from two tiles, for eight pairs of input entries.
.config tiny
.section uops uops 0x0 32
.uop dst=0 src=0 wgt=0 first=1
.uop dst=0 src=1 wgt=1
.section weights weights 0x20 32
.data random seed=1 low=-8 high=7
.section input input 0x40 64
.data random seed=2 low=-8 high=7
.section out output 0x80 32

load mem=uop dram=0x0 z=2
load mem=wgt dram=0x20 z=2
load mem=inp dram=0x40 z=4 set=s0
gemm overwrite=1 uop_end=2 iter_in=8 acc_in=1 inp_in=2 wait=s0 set=s1
requant form=pass clip_lo=-128 clip_hi=127 iter_in=8 acc_in=1 dst_in=1 wait=s1 set=s2
store mem=out dram=0x80 z=2 wait=s2
finish
