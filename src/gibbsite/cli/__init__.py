"""The command line: run, resume and report experiments; draw from what they trained, score states, bracket log Z."""

from .commands import main

__all__ = ["main"]
