"""Improves yosys's netlists before nextpnr routes them: passes over cells, a floorplan, placement and its timing."""
