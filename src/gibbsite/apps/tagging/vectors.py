"""Word vectors from a text file, as GloVe, word2vec and fastText write them: a word and its numbers a line."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from .read import CorpusError


def read_vectors(path: Path) -> tuple[list[str], Float[Tensor, "words size"]]:
    """The lower-cased words, each with the first of its vectors; a first line "words size" is passed over.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "vectors.txt"
        ...     _ = file.write_text("2 3\\nthe 0.1 0.2 0.3\\nDog 1 2 3\\n")
        ...     words, vectors = read_vectors(file)
        >>> words, vectors[1].tolist()
        (['the', 'dog'], [1.0, 2.0, 3.0])
    """
    found: dict[str, list[float]] = {}
    size = 0
    for number, line in enumerate(_lines(path), start=1):
        word, *texts = line.rstrip("\n ").split(" ")
        if number == 1 and len(texts) == 1:
            continue
        try:
            values = [float(text) for text in texts]
        except ValueError:
            values = []
        size = size or len(values)
        if not values or len(values) != size:
            raise CorpusError(f"{path}, line {number}: expected a word and {size or 'its'} numbers, got {line[:60]!r}")
        found.setdefault(word.lower(), values)
    if not found:
        raise CorpusError(f"{path}: expected at least one word with its vector, got none")
    return list(found), torch.tensor(list(found.values()))


def _lines(path: Path) -> Iterator[str]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            yield from file
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise CorpusError(f"{path}: cannot be read as text in UTF-8 ({error})") from error
