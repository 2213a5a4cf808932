"""`gibbsite tag`: train a tagger on a corpus, tag text with it, score it."""

import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, make_dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, final

import torch
import tyro

from ..apps.tagging import Corpus, Learner, Tagger
from ..apps.tagging.findings import findings
from ..apps.tagging.models import MODELS, read
from ..apps.tagging.page import page
from ..apps.tagging.scores import check_scorable
from ..recipes import Bars
from ..report import RunDirectory, next_directory, render, surroundings
from .tag_use import evaluate, predict
from .words import RUNS, UsageError, named, one_word_flags

TAG = "tag"
_INTERRUPTED = 130
_HELP = """usage: gibbsite tag COMMAND

commands:
  train TRAIN --dev DEV    train a tagger on a corpus in CoNLL-U or in columns, and write a report
  predict RUN < TEXT       tag text of one sentence a line, its words parted by spaces
  evaluate RUN FILE        score a tagger on another corpus

`gibbsite tag train --help` lists its options; those of another model than features: `--model NAME --help`.
models: {models}

example:
  gibbsite tag train train.conllu --dev dev.conllu --column upos --out runs/upos
  echo "the dog runs" | gibbsite tag predict runs/upos --confidence
"""
_File = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="TRAIN")]


@final
@dataclass(frozen=True)
class Train:
    """What `gibbsite tag train` is told, whatever the model."""

    train: _File
    """The corpus to learn from: CoNLL-U, or columns with an empty line between sentences; may be compressed by gzip."""
    dev: Path | None = None
    """The corpus that chooses which epoch's weights are kept; without it the last are."""
    test: Path | None = None
    """A corpus that is only scored."""
    column: str = "upos"
    """Which column has the labels: upos, xpos, lemma, feats, deprel (CoNLL-U); pos, chunk, ner (columns); or its number."""
    scheme: Literal["bio", "bioes"] = "bio"
    """How labels of spans are written."""
    model: str = "features"
    """Which kind of tagger."""
    out: Path | None = None
    """Where the run is written; by default the next runs/tag-NUMBER."""
    replace: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Replace an earlier run of this command in --out."""
    seed: int = 0
    """Where all random numbers start."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""

    def corpora(self) -> dict[str, Corpus]:
        """The corpora that are named, read; it says which of their labels are not in the first."""
        try:
            paths = {"train": self.train, "dev": self.dev, "test": self.test}
            found = {name: Corpus.read(path, self.column, self.scheme) for name, path in paths.items() if path}
            known = found["train"].learnable().names
            for corpus in found.values():
                check_scorable(corpus, known)
        except ValueError as error:
            raise UsageError(f"tag train: {error}") from error
        for name, corpus in found.items():
            if unknown := sorted(set(corpus.alphabet().names) - set(known)):
                some = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
                text = f"{name} has labels that {self.train} has not, which count as errors: {some}"
                print(f"gibbsite: {text}", file=sys.stderr)
        return found


class _Options(NamedTuple):
    """All of a command line: what to do, and the settings of the model that --model names."""

    common: Train
    learner: Learner


def tag(words: list[str]) -> int:
    """gibbsite tag COMMAND."""
    if not words or words[0] in ("-h", "--help"):
        print(_HELP.format(models=", ".join(MODELS)), end="")
        return 0 if words else 2
    commands: dict[str, Callable[[list[str]], int]] = {"train": _train, "predict": predict, "evaluate": evaluate}
    return commands[named("command", words[0], commands)](words[1:])


def _train(words: list[str]) -> int:
    options = _options(words)
    told = options.common
    corpora = told.corpora()
    out = told.out or next_directory(RUNS, TAG)
    record = {"recipe": TAG, "preset": told.model, "seed": told.seed, "words": words, "command": _again(words)}
    parameters = {name: value for name, value in vars(told).items() if name not in ("out", "replace")}
    record |= {"parameters": parameters | asdict(options.learner)} | surroundings(told.device)
    with RunDirectory.held(out):
        if told.replace:
            RunDirectory.clear(out, TAG)
        return _carry_out(options, corpora, RunDirectory.create(out, record))


def resume(directory: RunDirectory) -> int:
    """Goes on with a run that was interrupted, in a directory that is held."""
    options = _options([str(word) for word in directory.config()["words"]])
    return _carry_out(options, options.common.corpora(), directory)


def report(directory: RunDirectory) -> Path:
    """Writes the report of a run."""
    record, results = directory.config(), directory.results()
    interrupted = any(row.get("kind") == "interrupted" for row in results)
    return directory.write_report(render(page(record, results), record, interrupted=interrupted))


def _options(words: list[str]) -> _Options:
    flags = one_word_flags(words)
    chosen = [after for flag, after in pairwise(flags) if flag == "--model"]
    learner = MODELS[named("model", chosen[-1], MODELS) if chosen else "features"]
    own = Annotated[learner, tyro.conf.arg(name="")]
    fields: list[Any] = [("common", Annotated[Train, tyro.conf.arg(name="")])]
    kind = make_dataclass("options", [*fields, ("learner", own, field(default_factory=learner))])
    try:
        found: Any = tyro.cli(kind, prog="gibbsite tag train", description=learner.__doc__, args=flags)
        torch.empty(0, device=found.common.device)
    except (ValueError, RuntimeError, AssertionError) as error:  # the configuration's own checks; torch's of the device
        raise UsageError(f"tag train: {str(error).splitlines()[0]}") from error
    return _Options(found.common, found.learner)


def _again(words: list[str]) -> str:
    """The command that runs this again, elsewhere."""
    flags = one_word_flags(words)
    where = {place + step for place, flag in enumerate(flags) if flag == "--out" for step in (0, 1)}
    kept = [word for place, word in enumerate(flags) if place not in where and word != "--replace"]
    return shlex.join(["gibbsite", "tag", "train", *kept])


def _carry_out(options: _Options, corpora: dict[str, Corpus], directory: RunDirectory) -> int:
    began, status = time.monotonic(), 0
    try:
        tagger = _trained(options, corpora, directory)
        known = {row["part"] for row in directory.results() if row.get("kind") == "scores"}
        for part in [name for name in ("dev", "test") if name in corpora and name not in known]:
            directory.record(findings(tagger, corpora[part], part))
    except FloatingPointError as error:
        raise UsageError(f"tag train: {error}") from error
    except KeyboardInterrupt:
        status = _INTERRUPTED
    directory.record({"kind": "interrupted" if status else "finished", "seconds": time.monotonic() - began})
    path = report(directory)
    if status:
        print(f"gibbsite: interrupted; `gibbsite resume {directory.path}` goes on with it", file=sys.stderr)
    print(f"{page(directory.config(), directory.results()).lead}\nwrote {path}")
    return status


def _trained(options: _Options, corpora: dict[str, Corpus], directory: RunDirectory) -> Tagger:
    """The tagger that the run already kept, or one trained now."""
    if directory.model_path.is_file():
        return read(directory.model_path)
    with Bars(shown=sys.stderr.isatty()).total(100) as part:
        advance, done = part("training, per cent"), [0]

        def tell(now: int, of: int) -> None:
            share = 100 * now // of
            advance(share - done[0])
            done[0] = share

        tagger = options.learner.fit(
            corpora["train"], corpora.get("dev"), seed=options.common.seed, device=options.common.device,
            out=directory.path, progress=tell,
        )  # fmt: skip
    tagger.save(directory.model_path)
    return tagger
