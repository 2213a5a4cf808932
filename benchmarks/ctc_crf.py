"""# What does an exact CTC-CRF loss cost beside torch's CTC loss?

16 utterances of 500 frames, 50 labels and a blank, 60 labels each. Every contestant starts at logits, takes log-softmax, the
sum of its losses, and the gradient of the logits. The denominator of CTC-CRF is the sum over all label sequences, weighed by
a bigram (5151 arcs); the whole loss takes the numerator as well. CTC's loss and gradient are the same in torch and here, to
1e-5 in double precision. "Plain torch" writes the denominator as a product of a batch of vectors and a matrix a frame,
scaled, with autograd.
"""

from collections.abc import Callable

import torch
from _harness import Contest, Contestant, Target, main
from torch import Tensor
from torch.nn.functional import ctc_loss

import gibbsite as gb

BATCH, FRAMES, LABELS, WRITTEN = 16, 500, 50, 60


def bigram() -> gb.exact.Graph:
    table = torch.randn(LABELS + 1, LABELS + 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).log_softmax(
        1
    )
    arcs = [(h, k + 1, k + 1, float(table[h, k])) for h in range(LABELS + 1) for k in range(LABELS)]
    return gb.exact.Graph.of(arcs, end={h: float(table[h, LABELS]) for h in range(LABELS + 1)})


def plainly(graph: gb.exact.Graph, logits: Tensor) -> Tensor:
    """log Z of the denominator: every arc into a state reads one label, so that a frame is a matrix and a column of x."""
    x = logits.log_softmax(-1).exp()
    matrix = torch.zeros(graph.states, graph.states).to(x).index_put((graph.source, graph.target), graph.weight.exp().to(x))
    reads = torch.zeros(graph.states, dtype=torch.long).index_put((graph.target,), graph.label)
    alpha, log_z = graph.start.exp().to(x).expand(BATCH, -1), x.new_zeros(BATCH)
    for t in range(FRAMES):
        alpha = (alpha @ matrix) * x[:, t, reads]
        total = alpha.sum(1, keepdim=True)
        alpha, log_z = alpha / total, log_z + total[:, 0].log()
    return log_z + (alpha @ graph.end.exp().to(x)).log()


def contests() -> list[Contest]:
    source = torch.Generator().manual_seed(1)
    logits = (2 * torch.randn(BATCH, FRAMES, LABELS + 1, generator=source)).requires_grad_()
    labels = torch.randint(1, LABELS + 1, (BATCH, WRITTEN), generator=source)
    frames, counts = torch.full((BATCH,), FRAMES), torch.full((BATCH,), WRITTEN)
    denominator = gb.exact.compose(gb.exact.ctc_topology(LABELS + 1), bigram())
    crf = gb.exact.CTCCRF(denominator)
    losses = {
        "gibbsite, denominator": lambda z: gb.exact.forward(denominator, z.log_softmax(-1), frames),
        "gibbsite, CTC-CRF loss": lambda z: crf(z.log_softmax(-1), labels, frames, counts),
        "gibbsite, CTC loss": lambda z: gb.exact.ctc_loss(z.log_softmax(-1), labels, frames, counts),
        "torch, CTC loss": lambda z: ctc_loss(z.log_softmax(-1).transpose(0, 1), labels, frames, counts, reduction="none"),
        "plain torch, denominator": lambda z: plainly(denominator, z),
    }
    agree(losses["gibbsite, CTC loss"], losses["torch, CTC loss"], logits.detach().double())
    agree(losses["gibbsite, denominator"], losses["plain torch, denominator"], logits.detach().double())

    def contestant(name: str) -> Contestant:
        return Contestant(name, lambda: torch.autograd.grad(losses[name](logits).sum(), logits), 1)

    shape = f"{BATCH} utterances of {FRAMES} frames, {LABELS} labels"
    target = Target("gibbsite, denominator", "torch, CTC loss", 1 / 3)
    peers = ["torch, CTC loss", "plain torch, denominator"]
    ours = [name for name in losses if name not in peers]
    return [
        Contest(f"A loss and its gradient: {shape}", [contestant(name) for name in (*ours, peers[0])], [target]),
        Contest(f"The denominator and its gradient: {shape}", [contestant(name) for name in (ours[0], peers[1])]),
    ]


def agree(ours: Callable[[Tensor], Tensor], theirs: Callable[[Tensor], Tensor], logits: Tensor) -> None:
    """In double precision, for in float32 the logarithms of torch's CTC are too coarse at this length."""
    logits.requires_grad_()
    values, slopes = zip(*[(x.detach(), torch.autograd.grad(x.sum(), logits)[0]) for x in (ours(logits), theirs(logits))])
    torch.testing.assert_close(*values, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(*slopes, rtol=0, atol=1e-5)


if __name__ == "__main__":
    main(__file__, contests)
