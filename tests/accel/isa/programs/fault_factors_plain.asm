; Factors are for weights that become wider.
.config default
.section weights weights 0x0 512
.data random seed=55
.window 4096

load mem=uop z=2
load mem=wgt pitch=1 z=16
finish
