"""Applications: each a package of its own that puts the parts of the library to one use."""

from . import speech, tagging, text
