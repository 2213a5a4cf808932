"""ARPA files: n-gram models as text, log10 probabilities and backoff weights, one n-gram a line."""

import gzip
import math
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

import numpy as np

from ..check import instance
from ..files import atomic
from ..space import Tokens
from .backoff import Grams, automaton
from .ngram import NGram

START, END = "<s>", "</s>"
_NEVER = -99.0  # what stands for log10 0 in these files


def write_arpa(model: NGram, words: Sequence[str], path: str | Path) -> None:
    """Writes a model: `words[i]` is the word of id i, that of eos is </s>, and the start is written as <s>.

    Numbers have twelve digits, which other programs read as well as their own. A name that ends in .gz is compressed.

    Example:
        >>> import tempfile, torch, gibbsite as gb
        >>> space = gb.Tokens(length=3, vocabulary=3, eos=0)
        >>> model = gb.distributions.kneser_ney(torch.tensor([[1, 2, 0], [2, 0, 0]]), space, order=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     gb.distributions.write_arpa(model, ["</s>", "very", "good"], folder + "/small.arpa")
        ...     same, words = gb.distributions.read_arpa(folder + "/small.arpa", length=3)
        >>> words
        ['</s>', 'very', 'good']
        >>> bool((same(torch.tensor([1, 2, 0])) - model(torch.tensor([1, 2, 0]))).abs() < 1e-9)
        True
    """
    model, path = instance(model, NGram, "model", "; make one by kneser_ney"), Path(path)
    words = [*listed(words, model.space), START]
    sections = _sections(model)
    with atomic(path) as raw, _compressed(raw, path, "wb") as file:
        counts = "".join(f"ngram {n}={len(section.log_p)}\n" for n, section in enumerate(sections, 1))
        file.write(f"\\data\\\n{counts}".encode())
        for n, section in enumerate(sections, 1):
            file.write(f"\n\\{n}-grams:\n".encode())
            texts = [words[token] for token in section.tokens[:, 0]]
            for column in section.tokens.T[1:]:
                texts = [f"{text} {words[token]}" for text, token in zip(texts, column)]
            tails = [f"\t{weight:.12g}" if weight else "" for weight in section.log_backoff]
            lines = (f"{p:.12g}\t{text}{tail}\n" for p, text, tail in zip(section.log_p, texts, tails))
            file.writelines(line.encode(errors="surrogateescape") for line in lines)
        file.write(b"\n\\end\\\n")


def read_arpa(path: str | Path, length: int) -> tuple[NGram, list[str]]:
    """The model of an ARPA file, over sequences of at most `length` tokens, and its words: ids are places in that list.

    Words have the order of the file's unigrams, without <s>. Scores are those of the file also where it was pruned; that
    they sum to 1 is as true as its digits.
    """
    path = Path(path)
    with path.open("rb") as raw, _compressed(raw, path, "rb") as file:
        lines = _Lines(path, file)
        sections: list[_Section] = []
        ids: dict[bytes, int] = {}
        for n, count in enumerate(_header(lines), 1):
            sections.append(_section(lines, n, count, ids))
        lines.expect("\\end\\")
    if START.encode() not in ids:  # a file may do without
        ids[START.encode()] = len(ids)
        sections[0] = _with_start(sections[0], len(ids) - 1, 0.0)
    words = [word.decode(errors="surrogateescape") for word in ids if word != START.encode()]
    if END not in words:
        raise ValueError(f"{path}: expected the unigram {END}, which ends sequences, got none")
    grams = _table(sections, ids, lines)
    return NGram(automaton(grams, len(words)), Tokens(length, len(words), words.index(END))), words


class _Section(NamedTuple):
    """The n-grams of one order: ids (the start is `vocabulary`), log10 of probability and backoff, the line of the first."""

    tokens: np.ndarray
    log_p: np.ndarray
    log_backoff: np.ndarray
    first: int = 0


def listed(words: Sequence[str], space: Tokens) -> list[str]:
    """The words as a list, if they can stand in an ARPA file: one an id, that of eos being </s>."""
    words = list(words)
    if len(words) != space.vocabulary or words[space.eos] != END:
        got = f"{len(words)}" + (f", that of eos {words[space.eos]!r}" if len(words) > space.eos else "")
        raise ValueError(f"words: expected {space.vocabulary}, that of eos={space.eos} being {END!r}, got {got}")
    for place, word in enumerate(words):
        if not isinstance(word, str) or word.split() != [word] or word == START:
            raise ValueError(f"words[{place}]: expected a string without spaces that is not {START!r}, got {word!r}")
    if len(set(words)) < len(words):
        raise ValueError("words: expected no word twice, got " + repr(max(words, key=words.count)))
    return words


def _compressed(file: IO[bytes], path: Path, mode: str) -> Any:
    """The file, through gzip if its name says so."""
    if path.suffix != ".gz":
        return nullcontext(file)
    return gzip.GzipFile(fileobj=file, mode=mode, filename="", mtime=0)


def _sections(model: NGram) -> list[_Section]:
    """The n-grams of each order, in the order of the automaton's arcs."""
    state, word = np.divmod(model.key.cpu().numpy(), model.space.vocabulary)
    parent, label, target = (part.cpu().numpy() for part in (model.parent, model.label, model.target))
    log_p, log_backoff = (part.double().cpu().numpy() / math.log(10) for part in (model.log_p, model.log_backoff))
    own = (parent[target] == state) & (label[target] == word)  # the target is the n-gram itself, not a suffix of it
    backoff = np.where(own, log_backoff[target], 0)
    depth, above = np.zeros(len(parent), np.int64), np.arange(len(parent))
    while above.any():
        depth, above = depth + (above > 0), np.maximum(parent[above], 0)
    sections = []
    for n in range(1, model.order + 1):
        arcs = np.flatnonzero(depth[state] == n - 1)
        context, columns = state[arcs], [word[arcs]]
        for _ in range(n - 1):
            columns.append(label[context])
            context = parent[context]
        sections.append(_Section(np.stack(columns[::-1], 1), np.maximum(log_p[arcs], _NEVER), backoff[arcs]))
    return [_with_start(sections[0], model.space.vocabulary, log_backoff[int(model.start)]), *sections[1:]]


def _with_start(section: _Section, start: int, weight: float) -> _Section:
    """The unigrams and, as the last of them, <s>."""
    tokens, log_p = np.append(section.tokens, [[start]], 0), np.append(section.log_p, _NEVER)
    return _Section(tokens, log_p, np.append(section.log_backoff, weight), section.first)


class _Lines:
    """The lines of a file without what surrounds them, counted; `fail` names the last one."""

    def __init__(self, path: Path, lines: Iterable[bytes]):
        self.path, self.lines, self.number = path, iter(lines), 0

    def next(self) -> bytes | None:
        """The next line; None at the end of the file."""
        line = next(self.lines, None)
        self.number += 1
        return None if line is None else line.strip()

    def next_full(self) -> bytes:
        """The next line that is not empty; what there is at the end of the file is empty."""
        while (line := self.next()) == b"":
            pass
        return line or b""

    def expect(self, wanted: str) -> None:
        """Reads on to a line that is `wanted`."""
        if (line := self.next_full()) != wanted.encode():
            self.fail(wanted, line)

    def fail(self, wanted: str, got: bytes, number: int | None = None) -> NoReturn:
        """An error that says what was expected at a line, and what came."""
        shown = repr(got.decode(errors="replace"))[:100] if got else "nothing"
        raise ValueError(f"{self.path}:{number or self.number}: expected {wanted}, got {shown}")


def _header(lines: _Lines) -> list[int]:
    """How many n-grams each order has."""
    while (line := lines.next()) != b"\\data\\":
        if line is None:
            lines.fail("\\data\\, where an ARPA file begins", b"")
    counts = []
    while line := (lines.next() if counts else lines.next_full()):
        wanted = f"ngram {len(counts) + 1}=COUNT"
        name, _, count = line.partition(b"=")
        if name.split() != [b"ngram", str(len(counts) + 1).encode()] or not count.strip().isdigit():
            lines.fail(wanted, line)
        counts.append(int(count))
    return counts or lines.fail("ngram 1=COUNT", b"")


def _section(lines: _Lines, n: int, count: int, ids: dict[bytes, int]) -> _Section:
    """Reads the n-grams of order n; those of order 1 say what the words are."""
    lines.expect(f"\\{n}-grams:")
    first = lines.number + 1
    numbers, tokens = np.zeros((count, 2)), np.zeros((count, n), np.int64)
    for row in range(count):
        line = lines.next() or b""
        parts = line.split()
        if n == 1 and len(parts) > 1:
            if parts[1] in ids:
                lines.fail("a word that was not there before", line)
            ids[parts[1]] = len(ids)
        try:
            tokens[row] = [ids[part] for part in parts[1 : n + 1]]
            numbers[row, : len(parts) - n] = [float(part) for part in (parts[0], *parts[n + 1 :])]
        except KeyError as error:
            lines.fail(f"words of \\1-grams:, not {error.args[0].decode(errors='replace')!r}", line)
        except (IndexError, ValueError):
            lines.fail(f"log10 p, {n} words and possibly a log10 weight ({count} such lines, of which {row} came)", line)
        if not numbers[row, 0] <= 0 or not numbers[row, 1] < math.inf:
            lines.fail("log10 p of at most 0 and a finite log10 weight", line)
    if line := lines.next():
        lines.fail(f"an empty line after {count} {n}-grams", line)
    return _Section(tokens, numbers[:, 0], numbers[:, 1], first)


def _table(sections: list[_Section], ids: dict[bytes, int], lines: _Lines) -> Grams:
    """The flat table: each order sorted by context and token, contexts and suffixes found among the orders before."""
    start = ids[START.encode()]
    place = np.arange(len(ids)) - (np.arange(len(ids)) > start)
    place[start] = len(ids) - 1
    keys, none = np.full(1, -1), np.zeros(1, np.int64)
    levels = [Grams(none, keys, none, none, np.zeros(1), np.zeros(1))]
    for n, section in enumerate(sections, 1):
        tokens = place[section.tokens]
        context, suffix = _found(keys, tokens[:, :-1], len(ids)), np.full(len(tokens), -1)
        _refuse(context < 0, f"an {n}-gram whose first {n - 1} words are listed too", section, lines)
        _refuse((tokens[:, 1:] == len(ids) - 1).any(1), f"{START} at the beginning only", section, lines)
        for left in range(1, n + 1):
            open_ = np.flatnonzero(suffix < 0)
            suffix[open_] = _found(keys, tokens[open_, left:], len(ids))
        key = context * len(ids) + tokens[:, -1]
        rows = np.argsort(key, kind="stable")
        twice = np.zeros(len(rows), bool)
        twice[rows[1:]] = key[rows[1:]] == key[rows[:-1]]
        _refuse(twice, f"an {n}-gram that was not there before", section, lines)
        numbers = (part[rows] * math.log(10) for part in (section.log_p, section.log_backoff))
        levels.append(Grams(context[rows], tokens[rows, -1], suffix[rows], np.full(len(rows), n), *numbers))
        keys = np.concatenate((keys, key[rows]))
    return Grams(*[np.concatenate(column) for column in zip(*levels)])


def _found(keys: np.ndarray, tokens: np.ndarray, symbols: int) -> np.ndarray:
    """The rows of n-grams, -1 where there is none."""
    row = np.zeros(len(tokens), np.int64)
    for column in tokens.T:
        wanted = row * symbols + column
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        row = np.where((row >= 0) & (keys[at] == wanted), at, -1)
    return row


def _refuse(wrong: np.ndarray, wanted: str, section: _Section, lines: _Lines) -> None:
    if wrong.any():
        lines.fail(wanted, b"another", section.first + int(wrong.argmax()))
