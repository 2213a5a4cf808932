"""The default encoder: word vectors and a convolution over characters, read by LSTMs in both directions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ...check import number
from ...random import Source
from ...space import whole
from .encoder import Batch, Encoder
from .layers import BiLSTM, convolution, dropped, embedding, replaced
from .vectors import read_vectors
from .vocabulary import END, PAD, UNKNOWN, Vocabulary


@final
class Characters(nn.Module):
    """c(form): for each width of window `filters` maxima over the form's windows of relu(convolution), 0 at least.

    Windows lie within the form, between symbols of its begin and its end; a form shorter than a window has one.

    References: Ma and Hovy (2016); Kim et al. (2016), Character-aware neural language models.
    """

    def __init__(self, characters: int, size: int, filters: int, widths: Sequence[int], *, source: Source):
        super().__init__()
        self.embedding = embedding(END + 1 + characters, size, source)
        self.windows = nn.ModuleList([convolution(size, filters, width, source) for width in widths])
        self.widths, self.size = tuple(widths), filters * len(widths)

    def forward(self, spellings: Int[Tensor, "forms C"]) -> Float[Tensor, "forms features"]:
        inside = spellings != PAD
        x = (self.embedding(spellings) * inside[..., None]).mT
        place, lengths = torch.arange(spellings.shape[1], device=x.device), inside.sum(1, keepdim=True)
        found = []
        for window, width in zip(self.windows, self.widths):
            y = window(x).relu()
            within = place[: y.shape[-1]] < (lengths - width + 1).clamp(min=1)
            found.append((y * within[:, None]).amax(-1))
        return torch.cat(found, -1)


@final
class WordEncoder(Encoder):
    """h = BiLSTM([word vector; characters]), the BiLSTM in `layers` layers.

    While learning, a word seen n times is read as unknown with probability `word_dropout` / (word_dropout + n), so that the
    unknown word's vector is learned from rare words; whole components of what layers are given are dropped with probability
    `dropout`.

    References: Lample et al. (2016); Kiperwasser and Goldberg (2016), for the dropping of words.

    Example:
        >>> import torch
        >>> sentences = [("the", "dog"), ("barks",)]
        >>> encoder = WordEncoder.of(sentences, source=torch.Generator().manual_seed(0))
        >>> encoder(encoder.read(sentences)).shape
        torch.Size([2, 2, 400])
    """

    drop: Tensor

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        word_size: int = 100,
        character_size: int = 30,
        filters: int = 50,
        widths: Sequence[int] = (2, 3, 4),
        hidden: int = 200,
        layers: int = 1,
        dropout: float = 0.33,
        source: Source,
    ):
        super().__init__()
        self.vocabulary, self.word_size, self.hidden = vocabulary, word_size, hidden
        self.dropout = number(dropout, "dropout", least=0, below=1)
        self.character_size, self.filters, self.widths = character_size, filters, tuple(widths)
        self.words = embedding(UNKNOWN + 1 + len(vocabulary.words), whole(word_size, "word_size"), source)
        self.characters = Characters(len(vocabulary.characters), character_size, filters, widths, source=source)
        sizes = [word_size + self.characters.size, *[2 * whole(hidden, "hidden")] * whole(layers, "layers")]
        self.layers = nn.ModuleList([BiLSTM(inputs, hidden, source=source) for inputs in sizes[:-1]])
        self.size = sizes[-1]
        self.register_buffer("drop", torch.zeros(len(self.words.weight)))

    @classmethod
    def of(
        cls,
        sentences: Sequence[Sequence[str]],
        *,
        word_dropout: float = 0.25,
        vectors: Path | None = None,
        source: Source,
        **sizes: Any,
    ) -> Self:
        """An encoder of the words of these sentences, and of those of a file of vectors, with which they then begin."""
        words, given = ([], None) if vectors is None else read_vectors(Path(vectors))
        if given is not None:
            sizes["word_size"] = given.shape[1]
        encoder = cls(Vocabulary.of(sentences, words), source=source, **sizes)
        if given is not None:
            encoder.words.weight.data[[encoder.vocabulary.word(word) for word in words]] = given
        encoder.count(sentences, word_dropout)
        return encoder

    def count(self, sentences: Sequence[Sequence[str]], word_dropout: float) -> None:
        """Sets how often each word is dropped, by how often it stands in these sentences."""
        if not number(word_dropout, "word_dropout", least=0):
            return
        counts = Counter(self.vocabulary.word(word) for sentence in sentences for word in sentence)
        for word, count in counts.items():
            self.drop[word] = word_dropout / (word_dropout + count)

    def read(self, sentences: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        return self.vocabulary.read(sentences, least=max(self.widths))

    def forward(self, batch: Batch, *, source: Source | None = None) -> Float[Tensor, "batch places size"]:
        words = replaced(batch["words"], UNKNOWN, self.drop[batch["words"]], source)
        spelled = nn.functional.embedding(batch["forms"], self.characters(batch["spellings"]))
        x = dropped(torch.cat((self.words(words), spelled), -1), self.dropout, source)
        for layer in self.layers:
            x = dropped(layer(x, batch["mask"]), self.dropout, source)
        return x

    def settings(self) -> dict[str, Any]:
        return {
            "words": list(self.vocabulary.words), "characters": self.vocabulary.characters, "word_size": self.word_size,
            "character_size": self.character_size, "filters": self.filters, "widths": list(self.widths),
            "hidden": self.hidden, "layers": len(self.layers), "dropout": self.dropout,
        }  # fmt: skip

    @classmethod
    def restored(cls, settings: Mapping[str, Any]) -> Self:
        sizes = {key: value for key, value in settings.items() if key not in ("words", "characters")}
        vocabulary = Vocabulary(tuple(settings["words"]), settings["characters"])
        return cls(vocabulary, **sizes, source=torch.Generator().manual_seed(0))
