; 4-bit weights on w4: operands of two entries, low and high halves, one entry, taps.
.config w4
.section uops uops 0x0 64
.uop first=1
.uop src=1 wgt=1
.uop dst=1 first=1 wgt=1
.uop dst=1 src=3
.uop src=2 wgt=2 dst=2
.uop src=1 wgt=3 dst=2 first=1
.uop src=2 wgt=1 dst=3
.uop src=5 wgt=9 dst=3
.section weights weights 0x40 1024
.data random seed=41
.section prm constants 0x440 256
.prm bias=-7 multiplier=3 shift=9
.section input input 0x540 256
.data random seed=42
.section out output 0x640 512

load mem=uop dram=0x0 z=4
load mem=wgt dram=0x40 z=64
load mem=prm dram=0x440 z=16
load mem=acc expand=1 dram=0x540 z=16 y=2
load mem=inp dram=0x540 z=16 set=s0
gemm overwrite=1 uop_end=6 iter_in=4 acc_in=4 inp_in=2 wait=s0
gemm nibble=low uop_end=2 iter_in=4 acc_in=4 inp_in=1 wgt_base=1
gemm nibble=high uop_end=2 iter_in=4 acc_in=4 inp_in=1 wgt_base=2
gemm mode=entry nibble=low overwrite=1 uop_begin=4 uop_end=6 iter_in=4 acc_in=4 inp_in=2 acc_base=16
gemm mode=entry nibble=high uop_begin=4 uop_end=6 iter_in=4 acc_in=4 inp_in=2 acc_base=16
gemm mode=entry uop_end=1 inp_base=15 acc_base=16
gemm mode=taps nibble=low uop_begin=6 uop_end=8 iter_in=4 acc_in=4 inp_in=2 wgt_in=3 acc_base=16
gemm mode=taps nibble=high uop_begin=6 uop_end=8 iter_in=4 acc_in=4 inp_in=2 wgt_in=3 acc_base=16
gemm mode=taps uop_begin=6 uop_end=8 wgt_base=4 set=s1
requant form=scale clip_lo=-128 clip_hi=127 iter_in=32 acc_in=1 dst_in=1 wait=s1 set=s2
store mem=out dram=0x640 z=32 wait=s2
finish
