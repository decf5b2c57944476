"""The tests. This file makes `tests` a package of this checkout, whatever is installed under that name."""
