"""An n-gram model as a conditional: cut to likely tokens, going on from prefixes, in a language model."""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..check import instance
from ..random import Source
from .incremental import Incremental, State, Tensors
from .ngram import NGram


@final
class NGramConditional(Incremental):
    """log p(next token | context) of an n-gram model; the state is the number of each sequence's context.

    Example:
        >>> import torch, gibbsite as gb
        >>> x, space = torch.tensor([[1, 2, 1, 0], [1, 2, 2, 0]]), gb.Tokens(length=4, vocabulary=3, eos=0)
        >>> ngram = gb.distributions.kneser_ney(x, space, order=2)
        >>> q = gb.distributions.Autoregressive(gb.distributions.NGramConditional(ngram), space)
        >>> bool(torch.allclose(q(x), ngram(x))), q.after([1]).truncated(top_k=2).sample(5, seed=0).shape
        (True, torch.Size([5, 3]))
    """

    def __init__(self, ngram: NGram):
        super().__init__()
        self.ngram = instance(ngram, NGram, "ngram", "; made by kneser_ney or read_arpa")

    def start(self, n: int) -> State:
        return Tensors((self.ngram.initial(n).long(),))

    def step(
        self, tokens: Int[Tensor, "n t"], state: State, source: Source | None = None
    ) -> tuple[Float[Tensor, "n t vocabulary"], State]:
        (context,), vocabulary = instance(state, Tensors, "state").parts, self.ngram.space.vocabulary
        logits = []
        for token in tokens.unbind(1):
            moved, _ = self.ngram.step(context, token.clamp(max=vocabulary - 1))
            context = torch.where(token == vocabulary, context, moved)  # the start was read before
            logits.append(self.ngram.conditionals_at(context))
        return torch.stack(logits, 1), Tensors((context,))
