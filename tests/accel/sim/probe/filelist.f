vta_top.v
