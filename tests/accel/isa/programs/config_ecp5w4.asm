; Output blocks of half an entry of INP: written by the output stage, multiplied, taken back by taps and max.
.config ecp5w4
.section uops uops 0x0 64
.uop first=1
.uop src=1
.uop src=3 wgt=2 first=1
.uop src=0 wgt=5 first=1
.section weights weights 0x40 512
.data random seed=41
.section input input 0x240 256
.data random seed=42
.section res input 0x340 128
.data random seed=43
.section out output 0x3c0 192

load mem=uop dram=0x0 z=2
load mem=wgt dram=0x40 z=32
load mem=inp dram=0x240 z=16 set=s0
load mem=acc expand=1 dram=0x340 z=8 set=s1
requant form=pass dst=inp clip_lo=-100 clip_hi=99 iter_out=2 iter_in=4 acc_out=4 acc_in=1 dst_base=3 dst_out=9 dst_in=2 wait=s0,s1 set=s2
gemm overwrite=1 uop_end=2 iter_in=4 acc_in=1 inp_in=2 acc_base=512 wait=s2
gemm mode=taps overwrite=1 uop_begin=2 uop_end=3 iter_in=4 acc_in=1 inp_in=1 acc_base=516
gemm mode=max overwrite=1 uop_begin=3 uop_end=4 iter_in=16 acc_in=1 inp_in=1 acc_base=520 set=s3
requant form=pass clip_lo=-128 clip_hi=127 iter_in=24 acc_in=1 acc_base=512 dst_in=1 wait=s3 set=s4
store mem=out dram=0x3c0 z=12 wait=s4
finish
