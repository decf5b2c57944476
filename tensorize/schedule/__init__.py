"""Schedules the steps of all layers: their order, what stays on chip, when constants are loaded, shared micro-ops."""
