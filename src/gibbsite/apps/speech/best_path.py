"""The most probable path of a weighted automaton that reads scores (Viterbi), in torch on any device."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...exact import Graph, GraphBatch
from .errors import SpeechError


def best_path(graph: Graph | GraphBatch, scores: Float[Tensor, "frames labels"]) -> Int[Tensor, " frames"]:
    """The arc at each frame of the path of greatest start + sum_t (weight(a_t) + scores[t, label(a_t)]) + end.

    Arcs that read nothing are not allowed. Of arcs that are equally good the first is taken.

    References: Viterbi (1967), Error bounds for convolutional codes and an asymptotically optimum decoding algorithm.

    Example:
        >>> import torch, gibbsite as gb
        >>> from gibbsite.apps.speech.best_path import best_path
        >>> ctc = gb.exact.ctc_topology(3)
        >>> arcs = best_path(ctc, torch.tensor([[0.0, 5, 0], [9, 0, 0], [0, 0, 7]]))
        >>> ctc.label[arcs].tolist()
        [1, 0, 2]
    """
    scores = scores.detach().double()
    source, target, label, weight = (x.to(scores.device) for x in (graph.source, graph.target, graph.label, graph.weight))
    value, end, count = graph.start.to(scores).clone(), graph.end.to(scores), torch.arange(len(source), device=scores.device)
    weight, chosen = weight.detach().double(), list[Tensor]()
    for frame in scores:
        reached = value[source] + weight + frame[label]
        value = torch.full_like(value, -torch.inf).scatter_reduce(0, target, reached, "amax")
        first = torch.where(reached == value[target], count, len(source))
        chosen.append(torch.full_like(end, len(source), dtype=torch.long).scatter_reduce(0, target, first, "amin"))
    if not bool((value + end > -torch.inf).any()):
        raise SpeechError(f"scores: expected frames that some path can read, got {len(scores)}, and none can")
    state, arcs = int((value + end).argmax()), list[int]()
    for arc in (step.tolist() for step in reversed(chosen)):
        arcs.append(arc[state])
        state = int(source[arcs[-1]])
    return torch.tensor(arcs[::-1], dtype=torch.long, device=scores.device)
