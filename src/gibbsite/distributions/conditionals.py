"""What an autoregressive distribution asks for: the logits of each next token, from the tokens before it.

A conditional takes ids `previous` (batch, t), of which the first is the start, id `vocabulary`, to logits (batch, t,
vocabulary); row t may depend on previous[:, :t+1] only.
"""

import math
from typing import cast, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils import skip_init

from .. import random
from ..check import floats
from ..random import Seed
from ..space import whole


@final
class NGramTable(nn.Module):
    """A table of logits for each of the last `history` tokens; before the first token stand starts.

    `logits` has history + 1 dimensions: (vocabulary + 1, ..., vocabulary + 1, vocabulary), the oldest token first. It is 0
    where it is not given.

    Example:
        >>> import torch, gibbsite as gb
        >>> bigram = gb.distributions.NGramTable(3)
        >>> bigram(torch.tensor([[3, 0, 2]])).shape
        torch.Size([1, 3, 3])
    """

    def __init__(self, vocabulary: int, history: int = 1, logits: Float[Tensor, "..."] | None = None):
        super().__init__()
        self.vocabulary, self.history = whole(vocabulary, "vocabulary", 2), whole(history, "history", 0)
        shape = (*[vocabulary + 1] * history, vocabulary)
        self.logits = nn.Parameter(torch.zeros(shape) if logits is None else floats(logits, "logits", shape).clone())

    def forward(self, previous: Int[Tensor, "batch t"]) -> Float[Tensor, "batch t vocabulary"]:
        if not self.history:
            return self.logits.expand(*previous.shape, -1)
        starts = previous.new_full((len(previous), self.history - 1), self.vocabulary)
        padded = torch.cat((starts, previous), 1)
        return self.logits[tuple(padded.unfold(1, self.history, 1).unbind(-1))]


@final
class LSTM(nn.Module):
    """A recurrent network of one layer, with `hidden` units and embeddings of that size.

    References: Hochreiter and Schmidhuber (1997), Long short-term memory.
    """

    def __init__(self, vocabulary: int, hidden: int = 64, *, seed: Seed):
        super().__init__()
        self.vocabulary, hidden = whole(vocabulary, "vocabulary", 2), whole(hidden, "hidden")
        self.embedding = cast(nn.Embedding, skip_init(nn.Embedding, vocabulary + 1, hidden))
        self.recurrent = nn.LSTM(hidden, hidden, batch_first=True, device="meta").to_empty(device="cpu")
        self.readout = cast(nn.Linear, skip_init(nn.Linear, hidden, vocabulary))
        source = random.generator(seed)
        self.embedding.weight.data = random.normal((vocabulary + 1, hidden), source, self.embedding.weight.dtype)
        for parameter in (*self.recurrent.parameters(), *self.readout.parameters()):
            parameter.data = (2 * random.uniform(parameter.shape, source, parameter.dtype) - 1) / math.sqrt(hidden)

    def forward(self, previous: Int[Tensor, "batch t"]) -> Float[Tensor, "batch t vocabulary"]:
        return self.readout(self.recurrent(self.embedding(previous))[0])
