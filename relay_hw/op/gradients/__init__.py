"""What the gradients of operators share; each gradient stands beside its operator.

A gradient is (call, adjoint of its result) -> adjoint of each argument. Gradients are Relay again, of operators that
have gradients themselves, so that derivatives of every order follow.
"""
