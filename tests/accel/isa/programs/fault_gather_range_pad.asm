; Padding counts for the scratchpad's range.
.config tiny
.section input input 0x0 128
.data random seed=3
.section out output 0x80 32

gather dram=0x10 sram=1008 pitch=2 y=2 x=2 y_stride=32 row_bytes=20 run=8 x_step=3 y_pad_0=1 y_pad_1=2
finish
