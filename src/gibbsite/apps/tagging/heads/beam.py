"""Beam search over label sequences whose scores look back on all labels, and the scores of given sequences.

Shapes: B sentences, W hypotheses, T places, K labels, H units of the prediction network.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .potentials import Potentials
from .prediction import Memory, Prediction


class Found(NamedTuple):
    """Hypotheses, best first: labels (0 from `ends` on), scores (-inf: there is none), and how far each sentence went.

    `left` says of which sentences the gold prefix fell out of the beam, at place ends - 1.
    """

    labels: Int[Tensor, "B W T"]
    scores: Float[Tensor, "B W"]
    ends: Int[Tensor, " B"]
    left: Bool[Tensor, " B"]


@torch.no_grad()
def search(
    f: Float[Tensor, "B T K"],
    lengths: Int[Tensor, " B"],
    prediction: Prediction,
    potentials: Potentials,
    width: int,
    *,
    gold: Int[Tensor, "B T"] | None = None,
    keep: Float[Tensor, "B 1 H"] | None = None,
) -> Found:
    """The `width` best hypotheses, place by place. With `gold`, a sentence ends where its gold prefix leaves the beam.

    References: Collins and Roark (2004), for early updates; EBM-SLP, section 4.3.2.
    """
    (B, T, K), rows = f.shape, torch.arange(len(f), device=f.device)
    scores = f.new_full((B, width), -torch.inf)
    scores[:, 0] = 0.0
    labels = lengths.new_zeros((B, width, T))
    last, memory = lengths.new_full((B * width,), K), None
    keep = None if keep is None else keep.repeat_interleave(width, 0)
    slot, ends, left = torch.zeros_like(lengths), lengths, torch.zeros_like(lengths, dtype=torch.bool)
    for t in range(T):
        g, memory = prediction.step(last, memory, keep)
        grown = (scores[..., None] + potentials(f[:, t, None], g.view(B, width, K))).flatten(1)
        top, index = grown.topk(width, -1)
        goes_on = t < ends
        if gold is not None:
            hit = index == (slot * K + gold[:, t])[:, None]
            slot = hit.int().argmax(-1)
            fell = goes_on & ~hit.any(-1)
            ends, left = torch.where(fell, t + 1, ends), left | fell
        parent = torch.where(goes_on[:, None], index // K, torch.arange(width, device=f.device))
        label = torch.where(goes_on[:, None], index % K, 0)
        scores = torch.where(goes_on[:, None], top, scores)
        labels = labels.gather(1, parent[..., None].expand(-1, -1, T))
        labels[..., t] = label
        last, memory = label.flatten(), _chosen(memory, (rows[:, None] * width + parent).flatten())
    return Found(labels, scores, ends, left)


def _chosen(memory: Memory, rows: Int[Tensor, " rows"]) -> Memory:
    return memory[0][:, rows], memory[1][:, rows]


def sequence_scores(
    f: Float[Tensor, "B T K"],
    labels: Int[Tensor, "B M T"],
    ends: Int[Tensor, " B"],
    prediction: Prediction,
    potentials: Potentials,
    *,
    keep: Float[Tensor, "B 1 H"] | None = None,
) -> Float[Tensor, "B M"]:
    """u(y_1..y_j) = sum_(t <= j) of the scores of y_t, j = ends: M sequences a sentence, with a graph, by one run."""
    B, M, T = labels.shape
    keep = None if keep is None else keep.repeat_interleave(M, 0)
    g = prediction(labels.reshape(B * M, T), keep).view(B, M, T, -1)
    each = potentials(f[:, None].expand_as(g), g).gather(-1, labels[..., None])[..., 0]
    return torch.where(torch.arange(T, device=f.device) < ends[:, None, None], each, 0.0).sum(-1)
