"""Error rates with their bootstrap intervals: of words or units by jiwer, and the difference of two recognisers."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from ... import random
from ...random import Seed
from ...space import whole
from .edits import Edits
from .errors import SpeechError


class Rate(NamedTuple):
    """An error rate, and the ends of its 95 % interval."""

    value: float
    lower: float
    upper: float


def counted(references: Sequence[str], hypotheses: Sequence[str]) -> list[Edits]:
    """The edits of words between each pair of texts, counted by jiwer.

    Example:
        >>> from gibbsite.apps.speech.scores import counted
        >>> counted(["one two"], ["one too"])
        [Edits(substitutions=1, deletions=0, insertions=0, length=2)]
    """
    jiwer = _jiwer()
    if len(references) != len(hypotheses) or not references:
        raise SpeechError(f"hypotheses: expected one a reference, at least 1, got {len(hypotheses)} for {len(references)}")
    parts = [jiwer.process_words(a, b) for a, b in zip(references, hypotheses)]
    return [
        Edits(part.substitutions, part.deletions, part.insertions, part.hits + part.substitutions + part.deletions)
        for part in parts
    ]


def _jiwer() -> Any:
    try:
        import jiwer
    except ImportError as error:
        raise SpeechError("scores are counted by jiwer, which is not installed: pip install 'gibbsite[speech]'") from error
    return jiwer


def error_rate(found: Sequence[Edits], *, seed: Seed, draws: int = 10_000) -> Rate:
    """sum of errors / sum of lengths, and its percentile interval over utterances drawn with replacement.

    References: Bisani and Ney (2004), Bootstrap estimates for confidence intervals in ASR performance evaluation.
    """
    return _rate(_errors(found), _lengths(found), seed, draws)


def difference(first: Sequence[Edits], second: Sequence[Edits], *, seed: Seed, draws: int = 10_000) -> Rate:
    """The first error rate less the second, of the same utterances drawn together, so that what is hard for both cancels."""
    if len(first) != len(second):
        raise SpeechError(f"second: expected edits of the same {len(first)} utterances, got {len(second)}")
    return _rate(_errors(first) - _errors(second), _lengths(first), seed, draws)


def _errors(found: Sequence[Edits]) -> Float[Tensor, " utterances"]:
    return torch.tensor([float(edit.errors) for edit in found], dtype=torch.float64)


def _lengths(found: Sequence[Edits]) -> Float[Tensor, " utterances"]:
    return torch.tensor([float(edit.length) for edit in found], dtype=torch.float64)


def _rate(errors: Tensor, lengths: Tensor, seed: Seed, draws: int) -> Rate:
    if not len(errors) or not float(lengths.sum()):
        raise SpeechError("edits: expected at least 1 utterance with at least 1 unit, got none")
    drawn = random.integers(len(errors), (whole(draws, "draws"), len(errors)), random.generator(seed))
    rates = errors[drawn].sum(1) / lengths[drawn].sum(1).clamp(min=1)
    ends = rates.quantile(torch.tensor([0.025, 0.975], dtype=torch.float64))
    return Rate(float(errors.sum() / lengths.sum()), *ends.tolist())
