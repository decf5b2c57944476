; The last granule of weights is outside the window, behind two of factors.
.config default
.section weights weights 0x0 512
.data random seed=55
.window 4096

load mem=uop z=2
load mem=wgt expand=1 pitch=1 dram=3808 z=17
finish
