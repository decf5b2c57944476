"""Answers for assistants: what a build costs and why, in at most 2 KB, over the Model Context Protocol."""
