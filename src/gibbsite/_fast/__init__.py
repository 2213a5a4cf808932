"""Compiled CPU loops (numpy and numba only): the same law as the torch path, chosen in one table."""
