; GEMM, output stage and residual add with the sizes of ecp5.
.config ecp5
.section uops uops 0x0 64
.uop first=1
.uop src=1 wgt=1
.uop dst=1 first=1 wgt=1
.uop dst=1 src=1
.section weights weights 0x40 256
.data random seed=24
.section prm constants 0x140 512
.prm bias=99 multiplier=65531 shift=22
.prm bias=-4321 multiplier=-65527 shift=21
.section input input 0x340 64
.data random seed=25
.section res input 0x380 128
.data random seed=26
.section out output 0x400 384

load mem=uop dram=0x0 z=4
load mem=wgt dram=0x40 z=16
load mem=prm dram=0x140 z=32
load mem=inp dram=0x340 z=4 set=s0
load mem=acc expand=1 dram=0x380 sram=256 z=8 set=s1
gemm overwrite=1 uop_end=4 iter_in=4 acc_in=2 inp_in=2 wait=s0 set=s2
requant form=scale dst=acc clip_lo=-128 clip_hi=127 iter_out=2 iter_in=4 acc_out=1 acc_in=2 dst_out=1 dst_in=2 prm_out=1 zero_point=4 wait=s1,s2
requant form=add clip_lo=-120 clip_hi=119 iter_out=2 iter_in=4 acc_out=1 acc_in=2 res_base=256 dst_out=4 dst_in=1 prm_out=1
requant form=pass clip_lo=-128 clip_hi=127 iter_in=8 acc_in=1 dst_base=8 dst_in=1 set=s3
store mem=out dram=0x400 z=16 wait=s3
finish
