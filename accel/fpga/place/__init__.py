"""Netlists of yosys before nextpnr routes them: passes over cells, a floorplan, placement and its timing."""
