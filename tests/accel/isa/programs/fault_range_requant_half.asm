; A part of INP behind the last one, where entries have two.
.config ecp5w4
requant form=pass dst=inp clip_lo=-1 clip_hi=1 dst_base=8191
requant form=pass dst=inp clip_lo=-1 clip_hi=1 dst_base=8192
finish
