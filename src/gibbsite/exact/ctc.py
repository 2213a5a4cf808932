"""CTC-CRF, LF-MMI and CTC: -log p(y | x) of label sequences given the emissions of an encoder, exactly."""

import warnings
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..check import instance, number
from .graph import Graph, check_lengths
from .graph_forward import forward
from .graph_restrict import restrict
from .topologies import ctc_graphs


def sequence_loss(
    denominator: Graph,
    emissions: Float[Tensor, "batch frames columns"],
    labels: Int[Tensor, "batch most"],
    lengths: Int[Tensor, " batch"],
    label_lengths: Int[Tensor, " batch"],
) -> Float[Tensor, " batch"]:
    """-log p(y | x) = log Z(x) - log Z(x, y): over all paths of the denominator, less over those that write y.

    Both sums hold the weights of the graph, so that p(y | x) sums to 1 over all y. It is +inf, with gradient 0, where no
    path of lengths[b] frames writes y. An empty y is a sequence like others.
    """
    if len(labels) != len(emissions):
        raise ValueError(f"labels: expected a sequence an utterance, {len(emissions)}, got {len(labels)}")
    graph = instance(denominator, Graph, "denominator").to(emissions.device)
    whole = forward(graph, emissions, lengths)
    given = forward(restrict(graph, labels, label_lengths), emissions, lengths)
    loss = torch.where(given > -torch.inf, whole - given, torch.inf)
    return loss.to(torch.promote_types(emissions.dtype, torch.float32))


def ctc_loss(
    log_probabilities: Float[Tensor, "batch frames columns"],
    labels: Int[Tensor, "batch most"],
    lengths: Int[Tensor, " batch"],
    label_lengths: Int[Tensor, " batch"],
    *,
    blank: int = 0,
) -> Float[Tensor, " batch"]:
    """-log of the sum over all CTC alignments of labels of prod_t p_t(label): the CRF without a language model.

    It is `sequence_loss` of `ctc_topology`, whose log Z is 0 when the columns are probabilities. +inf, with gradient 0,
    where there are too few frames.

    References: Graves et al. (2006), Connectionist temporal classification.

    Example:
        >>> import torch, gibbsite as gb
        >>> even = torch.full((1, 2, 2), 0.5).log()
        >>> loss = gb.exact.ctc_loss(even, torch.tensor([[1]]), torch.tensor([2]), torch.tensor([1]))
        >>> round((-loss).exp().item(), 6)  # 01, 10, 11 of four
        0.75
    """
    _check_ctc_labels(log_probabilities, labels, label_lengths, blank)
    device = log_probabilities.device
    graphs = ctc_graphs(labels.to(device), label_lengths.to(device), blank=blank)
    loss = -forward(graphs, log_probabilities, lengths)
    return loss.to(torch.promote_types(log_probabilities.dtype, torch.float32))


def _check_ctc_labels(emissions: Tensor, labels: Tensor, label_lengths: Tensor, blank: int) -> None:
    if labels.ndim != 2 or labels.dtype != torch.long or len(labels) != len(emissions):
        got = f"{str(labels.dtype).removeprefix('torch.')} {tuple(labels.shape)}"
        raise ValueError(f"labels: expected int64 of shape ({len(emissions)}, most), got {got}")
    check_lengths(label_lengths, "label lengths", len(labels), labels.shape[1])
    inside = torch.arange(labels.shape[1], device=labels.device) < label_lengths.to(labels.device)[:, None]
    strange = inside & ((labels < 0) | (labels >= emissions.shape[-1]) | (labels == blank))
    if bool(strange.any()):
        b, i = strange.nonzero()[0].tolist()
        expected = f"columns in [0, {emissions.shape[-1]}) other than the blank, {blank}"
        raise ValueError(f"labels: expected {expected}, got {int(labels[b, i])} at {[b, i]}")


class _Counting(nn.Module):
    """Counts the utterances without a path, and says so once."""

    impossible: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("impossible", torch.tensor(0))

    def counted(self, loss: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
        """The loss as it is, its infinities counted."""
        none = int((loss == torch.inf).sum())
        if none and not int(self.impossible):
            warnings.warn(
                f"{none} of {len(loss)} utterances have no path: too few frames, or labels that the language "
                "model forbids. Their loss is +inf and their gradient 0; leave them out of means. This is said once; "
                "`.impossible` counts them all",
                stacklevel=3,
            )
        self.impossible += none
        return loss


@final
class CTCCRF(_Counting):
    """A conditional random field with the states of CTC: -log p(y | x), exactly.

    p(y | x) = sum over alignments a of y of exp(phi(a, x)) / sum over all alignments of exp(phi),
    phi(a, x) = log p_LM(B(a)) + sum_t emissions[t, a_t]

    `denominator` is `compose(ctc_topology(columns), label_model)`, a graph that reads columns and writes labels with the
    weights of a language model. The numerator is that graph restricted to y: it includes log p_LM(y), so that the loss is a
    negative log-probability, never below 0. With `ctc_weight` c the loss is -log p(y | x) + c ctc_loss(emissions, y), for
    which emissions should be log-probabilities.

    References: Xiang, Ou (2019), CRF-based single-stage acoustic modeling with CTC topology.

    Example:
        >>> import torch, gibbsite as gb
        >>> flat = gb.exact.CTCCRF(gb.exact.ctc_topology(2))
        >>> even = torch.zeros(1, 2, 2)
        >>> round((-flat(even, torch.tensor([[1]]), torch.tensor([2]), torch.tensor([1]))).exp().item(), 6)
        0.75
    """

    __final__ = True

    def __init__(self, denominator: Graph, *, ctc_weight: float = 0.0, blank: int = 0) -> None:
        super().__init__()
        self.denominator = instance(denominator, Graph, "denominator")
        self.ctc_weight = number(ctc_weight, "ctc_weight", least=0)
        self.blank = blank

    def forward(
        self,
        emissions: Float[Tensor, "batch frames columns"],
        labels: Int[Tensor, "batch most"],
        lengths: Int[Tensor, " batch"],
        label_lengths: Int[Tensor, " batch"],
    ) -> Float[Tensor, " batch"]:
        """-log p(y | x) of each utterance; labels are columns other than the blank, padded anyhow beyond label_lengths."""
        loss = sequence_loss(self.denominator, emissions, labels, lengths, label_lengths)
        if self.ctc_weight:
            loss = loss + self.ctc_weight * ctc_loss(emissions, labels, lengths, label_lengths, blank=self.blank)
        return self.counted(loss)


@final
class LFMMI(_Counting):
    """Lattice-free MMI: -log p(y | x) of the CRF with the 2-state topology of hidden Markov models, and no blank.

    `denominator` is `compose(hmm_topology(labels), label_model)`: emissions have two columns a label.

    References: Povey et al. (2016), Purely sequence-trained neural networks for ASR based on lattice-free MMI.

    Example:
        >>> import torch, gibbsite as gb
        >>> loss = gb.exact.LFMMI(gb.exact.hmm_topology(2))
        >>> one = loss(torch.zeros(1, 1, 4), torch.tensor([[1]]), torch.tensor([1]), torch.tensor([1]))
        >>> round((-one).exp().item(), 6)  # a frame holds either label
        0.5
    """

    __final__ = True

    def __init__(self, denominator: Graph) -> None:
        super().__init__()
        self.denominator = instance(denominator, Graph, "denominator")

    def forward(
        self,
        emissions: Float[Tensor, "batch frames columns"],
        labels: Int[Tensor, "batch most"],
        lengths: Int[Tensor, " batch"],
        label_lengths: Int[Tensor, " batch"],
    ) -> Float[Tensor, " batch"]:
        """-log p(y | x) of each utterance."""
        return self.counted(sequence_loss(self.denominator, emissions, labels, lengths, label_lengths))
