"""Steps of all layers in one order: what stays on chip, when constants are loaded, which micro-ops are shared."""
