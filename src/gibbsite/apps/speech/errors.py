"""What is wrong with a user's recordings, transcripts or options."""


class SpeechError(ValueError):
    """Data or options of the speech application that cannot be used: what was expected, what came, what to do."""
