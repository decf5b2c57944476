"""Relay's nodes, types and modules."""
