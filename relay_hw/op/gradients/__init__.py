"""Shared helpers of operators' gradients; each gradient is beside its operator.

A gradient is (call, adjoint of its result) -> adjoint of each argument. Gradients are Relay again, of operators that
have gradients themselves, so that derivatives of every order follow.
"""
