"""Any encoder of the transformers library, with the first piece of each word for the word."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Self, final

import torch
from jaxtyping import Float
from torch import Tensor

from ...check import number
from ...random import Source
from .encoder import Batch, Encoder
from .layers import dropped

_SPECIAL = ("unk_token", "cls_token", "sep_token", "pad_token", "bos_token", "eos_token", "mask_token")


@final
class HuggingFace(Encoder):
    """h = the last layer's vectors of a pre-trained network. A word's place is that of its first piece: the mask has holes.

    `tokenizer` is a fast one (`PreTrainedTokenizerFast`), `network` what `AutoModel` loads. The network's own dropout, which
    would draw from torch's global random state, is off; components of its last layer are dropped with probability `dropout`.

    References: Devlin et al. (2019), BERT; Wolf et al. (2020), Transformers.
    """

    def __init__(self, tokenizer: Any, network: torch.nn.Module, *, dropout: float = 0.1):
        super().__init__()
        if not tokenizer.is_fast:
            raise ValueError(f"tokenizer: expected a fast one, got {type(tokenizer).__name__}; load it with use_fast=True")
        self._tokenizer, self.network = tokenizer, network
        self.dropout = number(dropout, "dropout", least=0, below=1)
        self.size: int = network.config.hidden_size  # pyright: ignore
        self._most = getattr(network.config, "max_position_embeddings", None)

    @classmethod
    def load(cls, name: str, *, dropout: float = 0.1) -> Self:
        """A network and its tokenizer from a folder, or by its name on the hub."""
        transformers = _transformers()
        with torch.random.fork_rng():
            network = transformers.AutoModel.from_pretrained(name)
        return cls(transformers.AutoTokenizer.from_pretrained(name), network, dropout=dropout)

    def read(self, sentences: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        found = self._pieces(sentences)
        firsts = [_firsts(found.word_ids(row)) for row in range(len(sentences))]
        lost = [[k for k in range(len(words)) if k not in first] for words, first in zip(sentences, firsts)]
        if any(lost):  # words that the tokenizer makes nothing of
            unknown = self._tokenizer.unk_token or self._tokenizer.eos_token
            return self.read([[unknown if k in gone else w for k, w in enumerate(s)] for s, gone in zip(sentences, lost)])
        mask = torch.zeros(found["input_ids"].shape, dtype=torch.bool)
        for row, first in enumerate(firsts):
            mask[row, list(first.values())] = True
        longest = int(found["attention_mask"].sum(1).max())
        if self._most is not None and longest > self._most:
            raise ValueError(f"sentences: expected at most {self._most} pieces, got {longest}; split the longest sentences")
        return {"pieces": found["input_ids"], "attended": found["attention_mask"], "mask": mask}

    def _pieces(self, sentences: Sequence[Sequence[str]]) -> Any:
        words = [list(sentence) for sentence in sentences]
        return self._tokenizer(words, is_split_into_words=True, padding=True, return_tensors="pt")

    def forward(self, batch: Batch, *, source: Source | None = None) -> Float[Tensor, "batch places size"]:
        self.network.eval()
        found = self.network(input_ids=batch["pieces"], attention_mask=batch["attended"])
        return dropped(found.last_hidden_state, self.dropout, source)

    def settings(self) -> dict[str, Any]:
        special = {name: getattr(self._tokenizer, name, None) for name in _SPECIAL}
        return {
            "tokenizer": self._tokenizer.backend_tokenizer.to_str(),
            "special": {name: str(token) for name, token in special.items() if token is not None},
            "padding_side": self._tokenizer.padding_side,
            "network": json.loads(self.network.config.to_json_string(use_diff=False)),  # pyright: ignore
            "dropout": self.dropout,
        }

    @classmethod
    def restored(cls, settings: Mapping[str, Any]) -> Self:
        transformers = _transformers()
        from tokenizers import Tokenizer

        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_object=Tokenizer.from_str(settings["tokenizer"]),
            padding_side=settings["padding_side"],
            **settings["special"],
        )
        config = transformers.AutoConfig.for_model(**settings["network"])
        with torch.random.fork_rng():
            network = transformers.AutoModel.from_config(config)
        return cls(tokenizer, network, dropout=settings["dropout"])


def _firsts(word_of_piece: Sequence[int | None]) -> dict[int, int]:
    """The place of the first piece of each word."""
    places: dict[int, int] = {}
    for place, word in enumerate(word_of_piece):
        if word is not None:
            places.setdefault(word, place)
    return places


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise ImportError("networks of Hugging Face need transformers; pip install 'gibbsite[text]'") from error
    return transformers
