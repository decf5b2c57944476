; Weights with factors are one run: not two runs.
.config ecp5
.section weights weights 0x0 512
.data random seed=55
.window 4096

load mem=uop z=2
load mem=wgt expand=1 pitch=1 z=2 x=2
finish
