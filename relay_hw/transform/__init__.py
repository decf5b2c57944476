"""Passes over modules, one pass a file."""
