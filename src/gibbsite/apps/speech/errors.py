"""What is wrong with a user's recordings, transcripts or options."""

from typing import final

from ...datasets import DatasetError


@final
class SpeechError(DatasetError, ValueError):
    """Data or options of the speech application that cannot be used: what was expected, what came, what to do."""
