"""Proves that programs compute what their Relay functions say, on terms instead of numbers."""
