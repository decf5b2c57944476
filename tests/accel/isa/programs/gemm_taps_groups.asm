; Taps on ecp5: two groups in an entry of WGT, output blocks of two entries, both loops.
.config ecp5
.section uops uops 0x0 32
.uop first=1 wgt=1
.uop src=2 wgt=2
.uop src=6 wgt=0 dst=1 first=1
.section weights weights 0x20 512
.data random seed=7
.section input input 0x220 256
.data random seed=8
.section prm constants 0x320 256
.prm bias=-3 multiplier=1 shift=8
.section out output 0x420 192

load mem=uop dram=0x0 z=2
load mem=wgt dram=0x20 z=32
load mem=prm dram=0x320 z=16
load mem=inp dram=0x220 z=16 set=s0
gemm mode=taps overwrite=1 uop_end=3 iter_out=2 iter_in=3 acc_out=6 acc_in=2 inp_out=8 inp_in=4 wgt_out=1 wgt_in=65535 wgt_base=2 wait=s0 set=s1
requant form=scale clip_lo=-128 clip_hi=127 iter_in=12 acc_in=1 dst_in=1 wait=s1 set=s2
store mem=out dram=0x420 z=12 wait=s2
finish
