"""Compatibility layers: scripts written for other systems need only their imports changed."""
