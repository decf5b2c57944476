; Three rows of a 3x3 maximum as three slots; then masks with holes, kept on old values or not.
.config tiny
.section uops uops 0x0 64
.uop wgt=7 first=1
.uop src=24 wgt=7
.uop src=48 wgt=7
.uop dst=2 src=1 wgt=9
.uop dst=3 src=2 wgt=8 first=1
.uop dst=3 src=3 wgt=2
.uop dst=4 src=60 wgt=1 first=1
.section input input 0x40 320
.data random seed=8
.section out output 0x180 64

load mem=uop dram=0x0 z=4
load mem=acc expand=1 dram=0x40 z=4
load mem=inp dram=0x40 z=20 set=s0
gemm mode=max overwrite=1 uop_end=3 iter_in=2 acc_in=1 inp_in=8 wait=s0
gemm mode=max overwrite=1 uop_begin=3 uop_end=7
gemm mode=max uop_begin=4 uop_end=7 acc_base=4 set=s1
requant form=pass clip_lo=-128 clip_hi=127 iter_in=16 acc_in=1 dst_in=1 wait=s1 set=s2
store mem=out dram=0x180 z=4 wait=s2
finish
