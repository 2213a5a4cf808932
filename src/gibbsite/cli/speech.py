"""`gibbsite speech`: learn a recogniser, transcribe recordings, list n-best transcripts, count errors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, final

import tyro

from ..apps.speech import Plan, SpeechError, Units, Utterance
from ..apps.speech.manifest import recording
from ..apps.speech.scores import counted, error_rate
from ..files import write_lines
from ..recipes import APPLICATIONS
from ..recipes.speech_model import Learned, asked
from ..report import RunDirectory
from .runs import recipe_of, start, write_report
from .words import Run, UsageError, named, opened, parsed

_HELP = """usage: gibbsite speech COMMAND

commands:
  train                learn a recogniser of phones or characters, by CTC, CTC-CRF or LF-MMI
  decode RUN FILES     transcribe recordings
  nbest RUN            the most probable transcripts of each utterance, as JSON lines
  evaluate RUN         error rates with their 95 % intervals

`--help` after a command says the rest; `gibbsite resume RUN` goes on with learning that was interrupted.

example:
  gibbsite speech train --data fsdd --loss ctc --out runs/digits
  gibbsite speech evaluate runs/digits
  gibbsite speech nbest runs/digits --out digits.jsonl
"""


@final
@dataclass(frozen=True)
class _Decode:
    """Transcribe recordings: prints each name and the units on its most probable path."""

    run: Run
    """The run's directory."""
    files: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILES")]
    """WAV files, or arrays of features (frames, size) in .npy files, as those that were learned from."""
    beam: int = 0
    """Prefixes in the beam of a search for the most probable units (0: those on the most probable path)."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""


@final
@dataclass(frozen=True)
class _NBest:
    """Write lists of transcripts: {"id", "ref", "onebest", "hyps": [[text, log p(y | x)], ...]} for each utterance."""

    run: Run
    """The run's directory."""
    out: Path
    """A new file for JSON lines."""
    n: int = 10
    """Transcripts of each utterance."""
    beam: int = 50
    """Prefixes in the beam of the search."""
    of: str = "test"
    """The run's test or validation utterances, or a manifest of others."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""


@final
@dataclass(frozen=True)
class _Evaluate:
    """Count errors of units and, where the units are characters, of words (by jiwer); keeps both in the run's report."""

    run: Run
    """The run's directory."""
    of: str = "test"
    """The run's test or validation utterances, or a manifest of others."""
    beam: int = 0
    """Prefixes in the beam of a search for the most probable units (0: those on the most probable path)."""
    seed: int = 0
    """Where the bootstrap's random numbers start."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""


def speech(words: list[str]) -> int:
    """gibbsite speech COMMAND."""
    if not words or words[0] in ("-h", "--help"):
        print(_HELP, end="")
        return 0 if words else 2
    commands: dict[str, Callable[[list[str]], int]] = {
        "train": _train,
        "decode": _decode,
        "nbest": _nbest,
        "evaluate": _evaluate,
    }
    return commands[named("speech command", words[0], commands)](words[1:])


def _train(words: list[str]) -> int:
    return start("speech", APPLICATIONS["speech"], "speech train", words)


def _decode(words: list[str]) -> int:
    options = parsed(_Decode, "speech decode", words)
    beam, (learned, _) = _least(options.beam, "beam", 0), _learned(options.run, options.device)
    utterances = [recording(path) for path in options.files]
    learned.check(utterances)
    for utterance in utterances:
        print(f"{utterance.name}\t{learned.joined(learned.heard(utterance, beam))}")
    return 0


def _nbest(words: list[str]) -> int:
    options = parsed(_NBest, "speech nbest", words)
    if options.out.exists():
        raise UsageError(f"--out {options.out}: exists, and is not overwritten; choose another")
    learned, _ = _learned(options.run, options.device)
    rows = []
    for utterance in _asked(learned, options.of)[0]:
        listed = learned.listed(utterance, _least(options.n, "n", 1), _least(options.beam, "beam", 1))
        hypotheses = [[learned.joined(units), score] for units, score in listed]
        rows.append({"id": utterance.name, "ref": utterance.text, "onebest": hypotheses[0][0], "hyps": hypotheses})
    write_lines(options.out, rows)
    print(f"wrote {options.out}: {len(rows)} utterances")
    return 0


def _evaluate(words: list[str]) -> int:
    options = parsed(_Evaluate, "speech evaluate", words)
    learned, directory = _learned(options.run, options.device)
    utterances, units = _asked(learned, options.of)
    said = [units.split(utterance.text, utterance.name) for utterance in utterances]
    heard = [learned.heard(utterance, _least(options.beam, "beam", 0)) for utterance in utterances]
    texts = {learned.plan.units: [[_spaced(part) for part in parts] for parts in (said, heard)]}
    if learned.plan.units == "characters":
        texts["words"] = [["".join(part) for part in parts] for parts in (said, heard)]
    with RunDirectory.held(options.run):
        for what, (references, hypotheses) in texts.items():
            rate = error_rate(counted(references, hypotheses), seed=options.seed)
            how = f"beam of {options.beam}" if options.beam else "best path"
            row = {"kind": "evaluated", "of": options.of, "how": how, "what": what, "error": list(rate)}
            directory.record(row)
            ends = f"{100 * rate.lower:.2f} to {100 * rate.upper:.2f} %"
            print(f"errors of {what}: {100 * rate.value:.2f} %, 95 % interval {ends} ({len(utterances)} utterances)")
        print(f"wrote {write_report(*recipe_of(directory), directory)}")
    return 0


def _asked(learned: Learned, of: str) -> tuple[Sequence[Utterance], Units]:
    utterances, units = asked(learned.plan, of)
    if not utterances:
        raise SpeechError(f"--of {of}: expected at least 1 utterance, got none; name a manifest")
    learned.check(utterances)
    return utterances, units


def _least(value: int, name: str, least: int) -> int:
    if value < least:
        raise UsageError(f"--{name}: expected at least {least}, got {value}")
    return value


def _spaced(units: tuple[str, ...]) -> str:
    """Units as words of their own, for a counter of words; a space, which only characters have, is none of these."""
    return " ".join("<space>" if unit == " " else unit for unit in units)


def _learned(path: Path, device: str) -> tuple[Learned, RunDirectory]:
    directory = opened(path)
    made_by = directory.config().get("recipe")
    plan = recipe_of(directory)[1] if made_by in APPLICATIONS else None
    if not isinstance(plan, Plan):
        raise UsageError(f"{path}: expected a run of `gibbsite speech train`, got one of {made_by}")
    try:
        return Learned.load(plan, directory, device), directory
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"--device {device}: {str(error).splitlines()[0]}") from error
