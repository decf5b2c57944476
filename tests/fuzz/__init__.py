"""Fuzzing: twelve entry points, each fed with mutated and made-up inputs in children of limited memory and time."""
