"""Masked language models as potentials: how well each token is foreseen from all others."""

from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ...check import instance
from ...model import Model, dtype_of
from ...space import Tokens, whole
from .hugging_face import loaded, longest
from .pieces import Pieces
from .sentences import Sentences, sentences


@final
class MaskedLanguageModel(Model):
    """U(x) = sum_i log p(x_i | x with token i masked), the pseudo-log-likelihood, over the tokens before the end.

    Each token asks the network once, `batch` masked copies at a time. The tokenizer's cls and sep tokens stand around x.

    References: Wang and Cho (2019), BERT has a mouth, and it must speak; Salazar et al. (2020), Masked language model
        scoring.
    """

    def __init__(
        self, network: nn.Module, tokeniser: Pieces, *, length: int, around: tuple[int, int], mask: int, batch: int = 64
    ):
        super().__init__()
        self.network, self.tokeniser = instance(network, nn.Module, "network"), instance(tokeniser, Pieces, "tokeniser")
        self.space: Tokens = Tokens(length, tokeniser.vocabulary, tokeniser.eos)
        self.first, self.last, self.mask, self.batch = *around, mask, whole(batch, "batch")

    def forward(self, x: Int[Tensor, "*batch length"]) -> Float[Tensor, "*batch"]:
        batch = x.shape[:-1]
        x = self.space.check(x).reshape(-1, self.space.length)
        lengths = self.space.lengths(x)
        row, place = (torch.arange(x.shape[1], device=x.device) < lengths[:, None]).nonzero(as_tuple=True)
        if not len(row):
            return torch.zeros(batch, dtype=dtype_of(self), device=x.device)
        parts = zip(row.split(self.batch), place.split(self.batch))
        each = torch.cat([self._foreseen(x, lengths, *part) for part in parts])
        return each.new_zeros(len(x)).index_add(0, row, each).reshape(batch)

    def _foreseen(self, x: Tensor, lengths: Tensor, row: Tensor, place: Tensor) -> Float[Tensor, " copies"]:
        """log p of the token at `place` of `row`, from that row with it masked."""
        width = int(lengths[row].max())
        at, last = torch.arange(width + 2, device=x.device), lengths[row, None] + 1
        padded = nn.functional.pad(x[row, :width], (1, 1), value=self.last)
        copies = torch.where(at == 0, self.first, torch.where(at < last, padded, self.last))
        copies = torch.where(at == place[:, None] + 1, self.mask, copies)
        if self.network.training:  # its dropout would draw from torch's global random state
            self.network.eval()
        logits = self.network(input_ids=copies, attention_mask=(at <= last).long()).logits
        count = torch.arange(len(row), device=x.device)
        fine = torch.promote_types(logits.dtype, torch.float32)
        return logits[count, place + 1].log_softmax(-1, dtype=fine)[count, x[row, place]]

    def encode(self, texts: list[str]) -> Sentences:
        """Texts as rows of the space; what is empty or too long for it is left out, and said."""
        return sentences(self.tokeniser, texts, length=self.space.length)


def masked_from_hugging_face(
    model: Any, tokenizer: Any = None, *, length: int | None = None, batch: int = 64, dtype: torch.dtype = torch.float32
) -> MaskedLanguageModel:
    """A masked language model of transformers, and its tokenizer, as a potential on texts of at most `length` tokens.

    Either may be a folder or a name on the hub. Texts end with the tokenizer's sep token (its eos token where it has none).
    """
    network, tokenizer = loaded(model, tokenizer, "AutoModelForMaskedLM", dtype)
    first = next((k for k in (tokenizer.cls_token_id, tokenizer.bos_token_id) if k is not None), None)
    last = next((k for k in (tokenizer.sep_token_id, tokenizer.eos_token_id) if k is not None), None)
    if first is None or last is None or tokenizer.mask_token_id is None:
        raise ValueError("tokenizer: expected one with a cls_token, a sep_token and a mask_token, as masked models have")
    length = longest(network, length, 2)
    vocabulary = network.config.get_text_config().vocab_size  # pyright: ignore
    pieces = Pieces(tokenizer, vocabulary=vocabulary, eos=last)
    return MaskedLanguageModel(
        network, pieces, length=length, around=(first, last), mask=tokenizer.mask_token_id, batch=batch
    )
