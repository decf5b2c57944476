; Pixels of three blocks of 16 channels to three planes of padded rows, then seen through one-tap maxima.
.config default
.section uops uops 0x0 32
.uop wgt=1 first=1
.section input input 0x20 576
.data random seed=3
.section out output 0x260 640

load mem=uop dram=0x0 z=2
load mem=inp dram=0x20 sram=3 z=3 y=2 x=3 x_stride=48 y_stride=288 x_pad_0=1 x_pad_1=1 y_pad_1=1 pitch=4 pad_value=-7 set=s0
gemm mode=max overwrite=1 uop_end=1 iter_in=40 acc_in=1 inp_in=1 inp_base=3 wait=s0 set=s1
requant form=pass clip_lo=-128 clip_hi=127 iter_in=15 acc_in=1 dst_in=1 wait=s1
requant form=pass clip_lo=-128 clip_hi=127 iter_in=15 acc_base=16 acc_in=1 dst_base=15 dst_in=1
requant form=pass clip_lo=-128 clip_hi=127 iter_in=8 acc_base=32 acc_in=1 dst_base=30 dst_in=1 set=s2
store mem=out dram=0x260 z=38 wait=s2
finish
