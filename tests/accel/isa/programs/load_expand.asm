; int8 bytes widened to accumulator lanes, with padding runs of two granules.
.config tiny
.section input input 0x0 64
.data random seed=12
.section out output 0x40 256

load mem=acc expand=1 dram=0x0 sram=4 z=2 y=2 x=1 y_stride=32 x_stride=32 pad_value=-5 y_pad_0=1 y_pad_1=0 x_pad_0=0 x_pad_1=1 set=s0
; 3 rows x 2 runs x 32 bytes = 192 lanes = 48 entries
requant form=pass clip_lo=-128 clip_hi=127 iter_in=48 acc_base=4 acc_in=1 dst_in=1 wait=s0 set=s1
store mem=out dram=0x40 z=12 wait=s1
finish
