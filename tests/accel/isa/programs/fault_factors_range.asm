; The last granule of weights is outside WGT.
.config ecp5
.section weights weights 0x0 512
.data random seed=55
.window 4096

load mem=uop z=2
load mem=wgt expand=1 pitch=1 sram=1023 z=5
finish
