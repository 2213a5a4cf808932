"""A tokeniser and a law of its tokens: from a prefix to the law of what follows it."""

from collections.abc import Iterable
from typing import final

from jaxtyping import Int
from torch import Tensor, nn

from ...check import instance
from ...distributions import Autoregressive
from ...space import Tokens
from .sentences import Sentences, sentences
from .tokeniser import Tokeniser


@final
class LanguageModel(nn.Module):
    """lm(prefix) is the law of the tokens that follow a text; lm("") is that of whole texts, lm.distribution.

    Example:
        >>> import gibbsite as gb
        >>> tokeniser = gb.text.Words(["to", "be", "or", "not"])
        >>> network = gb.distributions.LSTM(tokeniser.vocabulary, hidden=8, seed=0)
        >>> lm = gb.text.LanguageModel(tokeniser, network, length=6)
        >>> following = lm("to be").truncated(top_k=3)
        >>> x = following.sample(5, seed=0)
        >>> x.shape, len(lm.decode(x))
        (torch.Size([5, 4]), 5)
    """

    def __init__(self, tokeniser: Tokeniser, conditional: nn.Module, *, length: int):
        super().__init__()
        self.tokeniser = instance(tokeniser, Tokeniser, "tokeniser", "; such as gb.text.Words.of(texts)")
        self.distribution = Autoregressive(conditional, Tokens(length, tokeniser.vocabulary, tokeniser.eos))

    def forward(self, prefix: str = "") -> Autoregressive:
        """The law of what follows the prefix."""
        return self.distribution.after(self.tokeniser.encode(prefix))

    def encode(self, texts: Iterable[str]) -> Sentences:
        """Texts as rows of the distribution's space; what is empty or too long for it is left out, and said."""
        return sentences(self.tokeniser, texts, length=self.distribution.space.length)

    def decode(self, x: Int[Tensor, "n length"]) -> list[str]:
        """Rows of ids, each up to its end, as texts."""
        texts = []
        for row in x.tolist():
            end = row.index(self.tokeniser.eos) if self.tokeniser.eos in row else len(row)
            texts.append(self.tokeniser.decode(row[:end]))
        return texts
