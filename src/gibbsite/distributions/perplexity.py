"""Perplexity: how many equally likely tokens a model chooses among, on average."""

import torch
from jaxtyping import Int
from torch import Tensor

from ..check import instance
from ..model import Distribution
from ..space import Tokens


@torch.no_grad()
def perplexity(q: Distribution, x: Int[Tensor, "sequences length"]) -> float:
    """exp(-sum log q(x) / number of tokens); the eos that ends a sequence is a token, the padding after it is not.

    Example:
        >>> import torch, gibbsite as gb
        >>> q = gb.distributions.Autoregressive(gb.distributions.NGramTable(4), gb.Tokens(3, 4, eos=0))
        >>> round(gb.distributions.perplexity(q, torch.tensor([[1, 0, 0], [2, 3, 1]])), 5)
        4.0
    """
    space = instance(q.space, Tokens, "q.space")
    x = space.check(x).reshape(-1, space.length)
    tokens = int((space.lengths(x) + 1).clamp(max=space.length).sum())
    if not tokens:
        raise ValueError("x: expected sequences, got none")
    return float((-q(x).double().sum() / tokens).exp())
