; Rows and runs of padding around a 2-D load, made visible by identity weights.
.config tiny
.section uops uops 0x0 32
.uop first=1
.section weights weights 0x20 32
.data i8 1 0 0 0  0 1 0 0  0 0 1 0  0 0 0 1
.section input input 0x40 96
.data random seed=11
.section out output 0xa0 352

load mem=uop dram=0x0 z=1
load mem=wgt dram=0x20 z=1
load mem=inp dram=0x40 sram=8 z=1 y=2 x=2 y_stride=48 x_stride=16 pad_value=-77 y_pad_0=1 y_pad_1=1 x_pad_0=1 x_pad_1=2 set=s0
gemm overwrite=1 uop_end=1 iter_in=80 acc_in=1 inp_in=1 inp_base=8 wait=s0 set=s1
requant form=pass clip_lo=-128 clip_hi=127 iter_in=80 acc_in=1 dst_in=1 wait=s1 set=s2
store mem=out dram=0xa0 z=20 wait=s2
finish
