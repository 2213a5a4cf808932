"""The best label sequences of linear chains, by Viterbi with k paths kept a label: any device, any k.

B rows, T positions, K labels. Chains are canonical: the label of row b at t exists where t < lengths[b].
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .semirings import finite


@torch.no_grad()
def best_paths(
    k: int, node: Tensor, edge: Tensor, start: Tensor, end: Tensor, lengths: Int[Tensor, " B"]
) -> tuple[Float[Tensor, "B k"], Int[Tensor, "B k T"]]:
    """The k label sequences of highest score and their scores, best first; a score of -inf where there are fewer.

    delta_t(j, n) is the n-th best score of a prefix that ends in label j; the candidates of the next position are all
    (i, n), of which the k best are kept with whence they came. The best of all is taken out at each position and summed
    apart, so that close sequences are told apart at the end of a long chain as at its start. Beyond a row labels are 0.

    References: Viterbi (1967); Forney (1973), The Viterbi algorithm; Seshadri, Sundberg (1994), List Viterbi decoding.
    """
    B, T, K = node.shape
    steps = [edge] * (T - 1) if edge.ndim == 2 else edge.unbind(1)
    delta = torch.cat(((start + node[:, 0])[..., None], node.new_full((B, K, k - 1), -torch.inf)), -1)
    stay = torch.arange(K * k, device=node.device).expand(B, -1)
    level, origins = torch.zeros(B, dtype=torch.float64, device=node.device), []
    for t in range(1, T):
        candidates = delta[..., None] + steps[t - 1][..., :, None, :]
        score, origin = _top(candidates.flatten(1, 2), k)
        inside = (t < lengths)[:, None, None]
        score = score.mT + node[:, t, :, None]
        best = finite(score[..., 0].amax(1))
        delta = torch.where(inside, score - best[:, None, None], delta)
        level = level + torch.where(inside[:, 0, 0], best, 0)
        origins.append(torch.where(inside[..., 0], origin.mT.flatten(1), stay))
    score, place = _top((delta + end[:, None]).flatten(1), k)
    score, places = (score.double() + level[:, None]).to(node.dtype), [place]
    for origin in reversed(origins):
        places.append(origin.gather(1, places[-1]))
    labels = torch.stack(places[::-1], -1) // k
    inside = torch.arange(T, device=node.device) < lengths[:, None]
    none = lengths == 0
    score = torch.where(none[:, None], torch.where(torch.arange(k, device=node.device) == 0, 0.0, -torch.inf), score)
    return score, labels.masked_fill(~inside[:, None], 0)


def _top(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest along dimension 1 and where they are; the maximum is found many times faster than by topk."""
    return x.max(1, keepdim=True) if k == 1 else x.topk(k, 1)
