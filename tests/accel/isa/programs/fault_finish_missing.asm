; The last instruction must be FINISH; what is missing has the index behind it.
.config tiny
.section out output 0x0 32

load mem=inp z=1
load mem=inp z=1
