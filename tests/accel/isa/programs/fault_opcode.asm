; Operation code 9 is unknown.
.config tiny
.section input input 0x0 64
.data random seed=27
.section uops uops 0x40 32
.uop
.uop dst=1 src=1 wgt=1
.section out output 0x60 64
.window 4096

load mem=acc expand=1 dram=0x0 z=2 set=s0
requant form=pass clip_lo=-128 clip_hi=127 iter_in=8 acc_in=1 dst_in=1 wait=s0 set=s1
.word 0x9
finish
