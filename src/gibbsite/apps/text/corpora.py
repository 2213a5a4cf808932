"""Corpora of text: the lines of a file, the King James Bible, WikiText-2."""

import gzip
import re
from dataclasses import dataclass
from pathlib import Path
from typing import final

from ...datasets import DatasetError
from ...datasets.source import Source

_EVERY = 20
_VERSE = re.compile(r"^\w+:\d+ +(.*)$")


@final
@dataclass(frozen=True)
class Corpus:
    """Texts for training, for looking at while training, and for testing."""

    name: str
    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]
    licence: str


def lines(path: Path | str) -> list[str]:
    """The lines of a text file in UTF-8, without white space at their ends; empty ones too.

    Example:
        >>> import tempfile, pathlib, gibbsite as gb
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = pathlib.Path(folder, "corpus.txt").write_text("one line\\nanother\\n")
        ...     gb.text.lines(pathlib.Path(folder, "corpus.txt"))
        ['one line', 'another']
    """
    raw = Path(path).read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{path}, line {line}: expected text in UTF-8, got byte {raw[error.start]:#04x}; convert the file"
        ) from None
    found = [line.strip() for line in text.split("\n")]
    return found[:-1] if found and not found[-1] else found


_BIBLE = Source(
    folder="text",
    url="",
    sha256="cd45f0c9cedab8e4439bd6486c8952c77cc8b0ecc5d1f6ae3513f2039f47229d",
    forms={"kjv.txt.gz": gzip.decompress, "kjv.txt": bytes},
)


def king_james() -> Corpus:
    """The 31,102 verses of the King James Bible; of every 20, one is for validation and one for testing.

    The file has a verse a line, `Ge1:1 In the beginning ...`.
    """
    verses = []
    for number, line in enumerate(_BIBLE.read().decode("ascii").splitlines(), 1):
        if (found := _VERSE.match(line)) is None:
            raise DatasetError(f"kjv.txt, line {number}: expected a verse such as 'Ge1:1 In the ...', got {line[:40]!r}")
        verses.append(found[1])
    parts = [tuple(verse for k, verse in enumerate(verses) if (k % _EVERY == last)) for last in (_EVERY - 2, _EVERY - 1)]
    train = tuple(verse for k, verse in enumerate(verses) if k % _EVERY < _EVERY - 2)
    return Corpus("King James Bible", train, parts[0], parts[1], "public domain")


_WIKITEXT = {
    part: Source(
        folder="text/wikitext2",
        url=f"https://raw.githubusercontent.com/pytorch/examples/main/word_language_model/data/wikitext-2/{part}.txt",
        sha256=digest,
        forms={f"{part}.txt": bytes},
    )
    for part, digest in (
        ("valid", "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8"),
        ("test", "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0"),
    )
}


def wikitext2() -> Corpus:
    """The validation and test parts of WikiText-2 by paragraphs, headings among them, rare words as <unk>.

    Its training part is not fetched, for lack of a digest to check it by: read a copy of one's own with `lines`.

    References: Merity et al. (2017), Pointer sentinel mixture models.
    """
    parts = {
        part: tuple(line.strip() for line in source.read().decode().split("\n") if line.strip())
        for part, source in _WIKITEXT.items()
    }
    return Corpus("WikiText-2", (), parts["valid"], parts["test"], "CC BY-SA 3.0")
