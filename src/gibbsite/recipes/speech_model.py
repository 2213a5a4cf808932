"""The recogniser that a run of the speech application learned, for the commands that use it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from ..apps.speech import Alphabet, Criterion, Plan, Recogniser, Units, criterion_of, heard, recogniser_of, scores_of, task
from ..apps.speech.corpus import Utterance, check_like
from ..apps.speech.manifest import utterances
from ..apps.speech.task import units_of
from ..report import RunDirectory, RunDirectoryError


@final
@dataclass(frozen=True, eq=False)
class Learned:
    """A recogniser with its loss, which knows the most probable paths, and its alphabet."""

    plan: Plan
    recogniser: Recogniser
    criterion: Criterion
    alphabet: Alphabet
    size: int
    rate: int

    @classmethod
    def load(cls, plan: Plan, directory: RunDirectory, device: str) -> "Learned":
        """What a run kept, on a device; neither its corpus nor its dictionary is needed."""
        corpus = next((row for row in directory.results() if row.get("kind") == "corpus"), None)
        kept = directory.samples("transcripts")
        if corpus is None or not kept:
            raise RunDirectoryError(f"{directory.path}: ended before anything was learned; run it again")
        plan, alphabet = replace(plan, device=device), Alphabet(tuple(corpus["symbols"]))
        criterion = criterion_of(plan, alphabet.classes, kept["labels"].split(kept["counts"].tolist()))
        recogniser = directory.load_model(recogniser_of(plan, corpus["inputs"], criterion.classes))
        recogniser = recogniser.eval().requires_grad_(False)
        return cls(plan, recogniser, criterion.to(device), alphabet, corpus["size"], corpus["rate"])

    def check(self, utterances: Iterable[Utterance]) -> None:
        """An error unless these are recordings like those that were learned from."""
        for utterance in utterances:
            check_like(utterance, self.size, self.rate, "as those that were learned from have")

    def joined(self, units: Sequence[str]) -> str:
        """Units as text."""
        return ("" if self.plan.units == "characters" else " ").join(units)

    def heard(self, utterance: Utterance, beam: int = 0) -> tuple[str, ...]:
        """The units on the most probable path, or the most probable units that a search with a beam finds."""
        if beam:
            return self.listed(utterance, 1, beam)[0][0]
        return self.alphabet.decode(heard(utterance, self.recogniser, self.criterion))

    def listed(self, utterance: Utterance, count: int, beam: int) -> list[tuple[tuple[str, ...], float]]:
        """The most probable units, each with log p(y | x), best first."""
        found = self.criterion.listed(scores_of(utterance, self.recogniser), count, beam)
        return [(self.alphabet.decode(labels), score) for labels, score in found]


def asked(plan: Plan, of: str) -> tuple[Sequence[Utterance], Units]:
    """The test or held-out utterances of a run's corpus, or those of a manifest, and how their texts are cut."""
    if of in ("test", "validation"):
        given = task(plan)
        return (given.corpus.test if of == "test" else given.corpus.validation), given.units
    own = task(plan).units if plan.data != "manifest" else None
    return utterances(Path(of)), units_of(plan, own)
