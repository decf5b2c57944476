"""A debugger for Relay programs: steps forwards and backwards through the values that an evaluation computes.

In: a module and arguments. Out: a dialogue. `history.py` records the evaluation as far as it is asked for, `places.py`
has breakpoints, `session.py` the commands, under the names that gdb gives them.
"""
