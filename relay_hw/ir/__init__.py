"""The IR: Relay's expressions, types and modules."""
