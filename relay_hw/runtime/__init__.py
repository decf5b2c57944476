"""Compiling a model into a build folder, and running and profiling it on a device."""
