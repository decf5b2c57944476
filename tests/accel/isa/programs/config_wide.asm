; GEMM, output stage and residual add with the sizes of wide.
.config wide
.section uops uops 0x0 64
.uop first=1
.uop src=1 wgt=1
.uop dst=1 first=1 wgt=1
.uop dst=1 src=1
.section weights weights 0x40 2048
.data random seed=24
.section prm constants 0x840 1024
.prm bias=99 multiplier=2147483643 shift=37
.prm bias=-4321 multiplier=-2147483639 shift=36
.section input input 0xc40 256
.data random seed=25
.section res input 0xd40 256
.data random seed=26
.section out output 0xe40 768

load mem=uop dram=0x0 z=2
load mem=wgt dram=0x40 z=64
load mem=prm dram=0x840 z=32
load mem=inp dram=0xc40 z=8 set=s0
load mem=acc expand=1 dram=0xd40 sram=256 z=8 set=s1
gemm overwrite=1 uop_end=4 iter_in=4 acc_in=2 inp_in=2 wait=s0 set=s2
requant form=scale dst=acc clip_lo=-128 clip_hi=127 iter_out=2 iter_in=4 acc_out=1 acc_in=2 dst_out=1 dst_in=2 prm_out=1 zero_point=4 wait=s1,s2
requant form=add clip_lo=-120 clip_hi=119 iter_out=2 iter_in=4 acc_out=1 acc_in=2 res_base=256 dst_out=4 dst_in=1 prm_out=1
requant form=pass clip_lo=-128 clip_hi=127 iter_in=8 acc_in=1 dst_base=8 dst_in=1 set=s3
store mem=out dram=0xe40 z=16 wait=s3
finish
