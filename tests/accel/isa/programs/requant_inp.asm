; A layer's result is the next one's input: written to INP, among LOADs to other lines that wait for it.
.config tiny
.section uops uops 0x0 32
.uop first=1
.uop src=1 wgt=1
.section weights weights 0x20 128
.data random seed=7
.section input input 0xa0 512
.data random seed=8
.section prm constants 0x2a0 64
.prm bias=9 multiplier=3 shift=9
.section out output 0x2e0 128

load mem=uop dram=0x0 z=2
load mem=wgt dram=0x20 z=8
load mem=prm dram=0x2a0 z=4
load mem=inp dram=0xa0 z=16 set=s0
gemm overwrite=1 uop_end=2 iter_in=32 acc_in=1 inp_in=1 wait=s0 set=s1
requant form=scale dst=inp dst_base=512 clip_lo=-128 clip_hi=127 iter_in=32 acc_in=1 dst_in=1 wait=s1 set=s2
load mem=inp dram=0x120 sram=256 z=2 y=3 x=4 x_stride=16 y_stride=64 x_pad_0=1 x_pad_1=1 pad_value=3
load mem=inp dram=0xa0 sram=64 z=1 y=3 x=5 x_stride=16 y_pad_0=1 pitch=3 pad_value=-3
gather dram=0xa0 sram=384 y=2 x=6 y_stride=64 row_bytes=48 left=2 run=9 lane=1 x_step=4 pitch=4 pad_value=1 set=s3
gemm overwrite=1 uop_end=2 iter_in=16 acc_in=1 inp_in=2 inp_base=512 acc_base=256 wait=s2
gemm overwrite=1 uop_end=1 iter_in=16 acc_in=1 inp_in=4 inp_base=256 acc_base=272 wait=s3 set=s4
requant form=scale clip_lo=-128 clip_hi=127 iter_in=32 acc_in=1 acc_base=256 dst_in=1 wait=s4 set=s5
store mem=out dram=0x2e0 z=8 wait=s5
finish
