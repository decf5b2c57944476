; Two kernel rows of a 3-channel image unfolded with padding around, made visible by identity weights.
.config tiny
.section uops uops 0x0 32
.uop first=1
.section weights weights 0x20 32
.data i8 1 0 0 0  0 1 0 0  0 0 1 0  0 0 0 1
.section input input 0x40 96
.data random seed=23
.section out output 0xa0 384

load mem=uop dram=0x0 z=1
load mem=wgt dram=0x20 z=1
load mem=inp dram=0x40 sram=0 z=6
load mem=inp dram=0x40 sram=24 z=6
load mem=inp dram=0x40 sram=48 z=6
load mem=inp dram=0x40 sram=72 z=6
gather dram=0x40 sram=8 pitch=4 y=2 x=3 y_stride=48 row_bytes=21 run=9 x_step=6 left=3 pad_value=-77 y_pad_0=1 y_pad_1=1
gather dram=0x60 sram=8 pitch=4 y=3 x=3 y_stride=16 row_bytes=16 run=6 lane=9 x_step=3 left=-2 pad_value=5 y_pad_1=1 set=s0
gemm overwrite=1 uop_end=1 iter_in=96 acc_in=1 inp_in=1 wait=s0 set=s1
requant form=pass clip_lo=-128 clip_hi=127 iter_in=96 acc_in=1 dst_in=1 wait=s1 set=s2
store mem=out dram=0xa0 z=24 wait=s2
finish
