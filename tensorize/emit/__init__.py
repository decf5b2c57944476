"""Ordered steps become instructions: addresses, semaphores, and the check of the finished program."""
