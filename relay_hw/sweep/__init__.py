"""Sweeps: many independent tasks on several processes or machines, and a journal of their results.

In: functions, values. Out: results as they come, stored so that a killed sweep goes on where it was.
"""
