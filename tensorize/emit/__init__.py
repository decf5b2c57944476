"""Writes ordered steps as instructions: addresses, semaphores, and the check of the finished program."""
