"""The two formats that corpora come in: CoNLL-U, and columns with an empty line between sentences."""

import gzip
import re
import zlib
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

Words = tuple[tuple[str, ...], tuple[str, ...]]  # words, labels
_CONLLU = {"form": 1, "lemma": 2, "upos": 3, "xpos": 4, "feats": 5, "deprel": 7}
_COLUMNS = {"pos": 1, "chunk": 2, "ner": -1}
_FIELDS = 10
_WORD, _NO_WORD = re.compile(r"\d+"), re.compile(r"\d+[-.]\d+")  # 7; 7-8 (a range of words) and 7.1 (an empty node)
_DOCUMENT = "-DOCSTART-"
_COMMENT = re.compile(r"# [\w ]+ ?=")  # else a hash sign is a word
_BLANK = " \t\r"  # not all that Python takes for white space: a word may be a no-break space


class CorpusError(ValueError):
    """A file that is no corpus: which, at which line, and what was expected there."""


def read_sentences(path: Path, column: str) -> Iterator[Words]:
    """Each sentence's words and labels."""
    lines = _lines(path)
    filled = [line for line in lines if line.strip(_BLANK)]
    if not filled:
        raise CorpusError(f"{path}: expected at least one sentence, got none")
    conllu = _is_conllu(next((line for line in filled if not line.startswith(("#", _DOCUMENT))), ""))
    place = _place(column, conllu, path)
    words: list[str] = []
    labels: list[str] = []
    for number, line in enumerate([*lines, ""], start=1):
        if not line.strip(_BLANK):
            if words:
                yield tuple(words), tuple(labels)
                words, labels = [], []
            continue
        token = (_conllu if conllu else _columns)(line, place, f"{path}, line {number}", not words)
        if token is not None:
            words.append(token[0])
            labels.append(token[1])


def _lines(path: Path) -> list[str]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read ({error.strerror})") from error
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise CorpusError(f"{path}: not a whole gzip file ({error})") from error
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise CorpusError(f"{path}, line {line}: expected text in UTF-8, got the byte {content[error.start]:#x}") from None


def _is_conllu(line: str) -> bool:
    fields = line.split("\t")
    return len(fields) == _FIELDS and bool(_WORD.fullmatch(fields[0]) or _NO_WORD.fullmatch(fields[0]))


def _place(column: str, conllu: bool, path: Path) -> int:
    names = _CONLLU if conllu else _COLUMNS
    if column in names:
        return names[column]
    if re.fullmatch(r"-?[1-9]\d*", str(column)):
        return int(column) - (int(column) > 0)
    kind, near = "CoNLL-U" if conllu else "columns", get_close_matches(str(column), names, n=1, cutoff=0.6)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise CorpusError(
        f"{path}: is in {kind}, where a column is one of {', '.join(names)} or a number (1 the first, -1 the last); got "
        f"{column!r}{hint}"
    )


def _conllu(line: str, place: int, where: str, first: bool) -> tuple[str, str] | None:
    if line.startswith("#") and first:
        return None
    fields = line.split("\t")
    if len(fields) != _FIELDS:
        raise CorpusError(f"{where}: expected {_FIELDS} fields with tabs between them (CoNLL-U), got {len(fields)}")
    if _NO_WORD.fullmatch(fields[0]):
        return None
    if not _WORD.fullmatch(fields[0]):
        raise CorpusError(f"{where}: expected a word's number in the first field, such as 7, 7-8 or 7.1, got {fields[0]!r}")
    return _token(fields, 1, place, where, absent="_" if place in (3, 4, 7) else "")


def _columns(line: str, place: int, where: str, first: bool) -> tuple[str, str] | None:
    if first and line.startswith(_DOCUMENT):
        return None
    line = line.strip(_BLANK)
    fields = [field.strip(" ") for field in line.split("\t")] if "\t" in line else re.split(" +", line)
    if first and _COMMENT.match(line):
        return None
    if len(fields) < 2:
        raise CorpusError(f"{where}: expected a word and at least one label, got {line!r} alone")
    return _token(fields, 0, place, where, absent="")


def _token(fields: list[str], word: int, place: int, where: str, absent: str) -> tuple[str, str]:
    if not -len(fields) <= place < len(fields):
        raise CorpusError(f"{where}: expected a column {place + 1}, got {len(fields)} columns")
    label = fields[place]
    if not fields[word]:
        raise CorpusError(f"{where}: expected a word, got an empty field")
    if label == absent or not label:
        raise CorpusError(f"{where}: expected a label in column {place % len(fields) + 1}, got {label!r}; try another")
    return fields[word], label
