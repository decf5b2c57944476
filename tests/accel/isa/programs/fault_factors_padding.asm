; Weights with factors have no padding around them.
.config default
.section weights weights 0x0 512
.data random seed=55
.window 4096

load mem=uop z=2
load mem=wgt expand=1 pitch=1 z=2 x_pad_1=1
finish
