"""Gradients of the operators, one file a family: (call, adjoint of its result) -> adjoint of each argument.

They are Relay again, of operators that have gradients themselves, so that derivatives of every order follow.
"""
