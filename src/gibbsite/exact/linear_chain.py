"""Linear chains: label sequences with potentials on labels and on pairs of neighbours, exactly."""

from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .. import random
from ..model import Distribution
from ..random import Seed
from ..space import Categorical, whole
from .chain_forward import messages
from .chain_inputs import Canonical, canonical, check_chain
from .chain_masks import Layout
from .chain_paths import best_paths
from .chain_score import score_labels, score_view
from .chain_total import best_path, log_partition
from .semirings import Log
from .structured import NBest, check_rows, checked, fold, hold, marginals, mean


@final
class LinearChain(Distribution):
    """log p(y) = start[y_1] + sum_t node_t[y_t] + sum_t edge_t[y_t, y_(t+1)] + end[y_n] - log Z, a row of the batch.

    `node` (*batch, T, K); `edge` (K, K), or what broadcasts to (*batch, T-1, K, K); `start`, `end` (K,) or (*batch, K), or
    None, which is 0. Log-potentials: -inf forbids, and gradients stay finite. `mask` (*batch, T) says which positions have a
    label: pads at either end and holes are skipped; the neighbours of a hole are joined by the edge that enters the position
    behind it (edge[t-1] for position t). Beyond the mask inputs are ignored and results are 0; without labels log Z = 0.
    float16 and bfloat16 are computed in float32. A batch is a family of laws, one a row: `chain(y)` takes (*batch, T) or
    (n, *batch, T) labels.

    References: Lafferty, McCallum, Pereira (2001), Conditional random fields.

    Example:
        >>> import torch, gibbsite as gb
        >>> node, edge = torch.tensor([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]]), torch.tensor([[1.0, -torch.inf], [0.0, 0.0]])
        >>> chain = gb.exact.LinearChain(node, edge)
        >>> chain.mode().tolist()
        [0, 0, 0]
        >>> round(chain(chain.mode()).exp().item(), 4), [round(p, 4) for p in chain.marginals()[:, 1].tolist()]
        (0.4763, [0.5237, 0.0474, 0.0237])
    """

    node: Tensor
    edge: Tensor
    start: Tensor | None
    end: Tensor | None
    mask: Tensor
    batch_shape: torch.Size
    _lengths: Tensor
    _order: Tensor | None

    def __init__(
        self,
        node: Float[Tensor, "*batch T K"],
        edge: Tensor,
        *,
        start: Tensor | None = None,
        end: Tensor | None = None,
        mask: Bool[Tensor, "*batch T"] | None = None,
    ):
        super().__init__()
        node, edge, start, end, mask = check_chain(node, edge, start, end, mask)
        hold(self, node=node, edge=edge, start=start, end=end, mask=mask)
        layout = Layout.of(mask.flatten(0, -2) if mask.ndim > 1 else mask[None])
        self.register_buffer("_lengths", layout.lengths, persistent=False)
        self.register_buffer("_order", layout.order, persistent=False)
        self.space: Categorical = Categorical(tuple(node.shape[-2:-1]), node.shape[-1])
        self.batch_shape = node.shape[:-2]

    @property
    def _layout(self) -> Layout:
        return Layout(self._lengths, self._order, self.space.sites)

    def _canonical(self) -> Canonical:
        return canonical(self.node, self.edge, self.start, self.end, self.mask, self._layout)

    def log_partition(self) -> Float[Tensor, "*batch"]:
        """log Z of each row; an error where every label sequence is forbidden."""
        return checked(log_partition(*self._canonical())).view(self.batch_shape)

    def forward(self, x: Int[Tensor, "*n batch T"]) -> Float[Tensor, "*n batch"]:
        c = self._canonical()
        return self._score(c, x) - checked(log_partition(*c)).view(self.batch_shape)

    def log_prob(self, x: Int[Tensor, "*n batch T"]) -> Float[Tensor, "*n batch"]:
        """log p(x), the same as `chain(x)`."""
        return self(x)

    def score(self, x: Int[Tensor, "*n batch T"]) -> Float[Tensor, "*n batch"]:
        """U(x), the sum of the potentials along x: log p(x) + log Z."""
        return self._score(self._canonical(), x)

    def _score(self, c: Canonical, x: Tensor) -> Tensor:
        x = torch.as_tensor(x)
        if not x.is_floating_point():
            y = self._layout.compact(self._labels(x))
            return score_labels(c, y).view(x.shape[:-1])
        z = self.space.embed(x, c.node.dtype)
        if z.shape[-self.node.ndim :] != self.node.shape:
            expected = ", ".join(map(str, self.node.shape))
            raise ValueError(f"x: expected the one-hot view of shape (*, {expected}), got {tuple(x.shape)}")
        z = fold(z, self.batch_shape, 2)
        return score_view(c, self._layout.compact_rows(z).masked_fill(~self._layout.inside[..., None], 0)).view(x.shape[:-2])

    def _labels(self, x: Tensor) -> Int[Tensor, "n B T"]:
        """Labels as rows, 0 beyond the mask whatever stands there."""
        x = check_rows(x, self.mask.shape)
        return fold(self.space.check(x.masked_fill(~self.mask, 0)), self.batch_shape, 1)

    def marginals(self) -> Float[Tensor, "*batch T K"]:
        """p(y_t = k): the gradient of log Z with respect to `node`; 0 beyond the mask. Differentiable."""
        (node,) = self._gradients(self._canonical(), edges=False)
        return self._layout.spread_rows(node).view(*self.batch_shape, *node.shape[1:])

    def edge_marginals(self) -> Float[Tensor, "*batch T-1 K K"]:
        """p(y_t = i, y_(t+1) = j) at each edge that is in use, 0 at the others; over a hole: at the edge that enters."""
        _, edge = self._gradients(self._canonical(), edges=True)
        return self._layout.spread_edges(edge).view(*self.batch_shape, *edge.shape[1:])

    def _gradients(self, c: Canonical, *, edges: bool) -> tuple[Tensor, ...]:
        """d log Z / d node and, if asked, d edge, an edge a position."""
        if edges and c.edge.ndim == 2:
            c = c._replace(edge=c.edge.expand(len(c.node), c.node.shape[1] - 1, -1, -1))
        return marginals(lambda _, *scores: log_partition(*scores), c, 1 + edges)

    def mode(self) -> Int[Tensor, "*batch T"]:
        """The most probable label sequence (Viterbi, 1967)."""
        score, labels = best_path(*self._canonical())
        checked(score)
        return self._layout.spread(labels).view(self.mask.shape)

    def n_best(self, k: int) -> NBest:
        """The k most probable label sequences, best first."""
        k, c = whole(k, "k"), self._canonical()
        (score, labels), total = best_paths(k, *c), checked(log_partition(*c)).detach()
        labels = self._layout.spread(labels.movedim(1, 0)).view(k, *self.mask.shape)
        return NBest(labels, (score - total[:, None]).T.reshape(k, *self.batch_shape))

    def posterior_decode(self) -> Int[Tensor, "*batch T"]:
        """The most probable label at each position, on its own: the fewest expected errors; 0 beyond the mask."""
        return self.marginals().detach().argmax(-1)

    def confidence(self, x: Int[Tensor, "*n batch T"]) -> Float[Tensor, "*n batch T"]:
        """p(y_t = x_t) at each position; 0 beyond the mask."""
        p, y = self.marginals(), self._labels(x).view(torch.as_tensor(x).shape)
        return p.expand(*y.shape, -1).gather(-1, y[..., None])[..., 0]

    @torch.no_grad()
    def sample(self, n: int, *, seed: Seed) -> Int[Tensor, "n *batch T"]:
        n, c = whole(n, "n", 0), self._canonical()
        checked(log_partition(*c))
        source, alphas = random.generator(seed, c.node.device), messages(Log(), c.node, c.edge, c.start, c.lengths).log_alpha
        edges = [c.edge] * (len(alphas) - 1) if c.edge.ndim == 2 else c.edge.mT.unbind(1)
        rows, drawn = torch.arange(len(c.node), device=c.node.device), []
        for t in reversed(range(len(alphas))):
            onward = c.end
            if drawn:
                follow = c.edge.T[drawn[-1]] if c.edge.ndim == 2 else edges[t][rows, drawn[-1]]
                onward = torch.where((c.lengths - 1 == t)[:, None], c.end, follow)
            logits = (alphas[t] + onward).masked_fill((t >= c.lengths)[:, None], 0)
            drawn.append(random.categorical(logits.expand(n, -1, -1), source))
        y = torch.stack(drawn[::-1], -1)
        return self._layout.spread(y).view(n, *self.mask.shape)

    def entropy(self) -> Float[Tensor, "*batch"]:
        """-E[log p(y)] of each row, in nats."""
        return self.cross_entropy(self)

    def cross_entropy(self, other: "LinearChain") -> Float[Tensor, "*batch"]:
        """-E_p[log q(y)], p this chain and q the other, on the same positions; inf where q forbids what p may draw."""
        if (
            not isinstance(other, LinearChain)
            or other.mask.shape != self.mask.shape
            or not torch.equal(other.mask, self.mask)
        ):
            raise ValueError("other: expected a LinearChain with the same batch, positions and mask")
        if other.space != self.space:
            raise ValueError(f"other: expected a chain on {self.space}, got {other.space}")
        p, q, layout = self._canonical(), other._canonical(), self._layout
        node, edge = self._gradients(p, edges=True)
        node = layout.inside[..., None] * node
        last = node.gather(1, (p.lengths - 1).clamp(min=0)[:, None, None].expand(-1, 1, node.shape[-1]))[:, 0]
        score = mean(node, q.node) + mean(edge, q.edge) + mean(node[:, 0], q.start) + mean(last, q.end)
        return (checked(log_partition(*q)) - score).view(self.batch_shape)

    def kl(self, other: "LinearChain") -> Float[Tensor, "*batch"]:
        """KL(p || q) = E_p[log p(y) - log q(y)] of each row, p this chain and q the other."""
        return self.cross_entropy(other) - self.entropy()

    def constrain(self, allowed: Bool[Tensor, "*batch T K"]) -> "LinearChain":
        """This chain where only the allowed labels of each position may be; beyond the mask `allowed` is ignored.

        p(y) of what is left is renormalised; log Z of the result less this chain's is log p(all labels are allowed).
        """
        allowed = torch.as_tensor(allowed)
        if allowed.dtype != torch.bool or allowed.shape != self.node.shape:
            got = f"{allowed.dtype} {tuple(allowed.shape)}"
            raise ValueError(f"allowed: expected booleans of shape {tuple(self.node.shape)}, got {got}")
        none = self.mask & ~allowed.any(-1)
        if bool(none.any()):
            bad = none.nonzero()[0].tolist()
            raise ValueError(f"allowed: expected at least one label at each position of the mask, got none at {bad}")
        node = self.node.masked_fill(~allowed, -torch.inf)
        return LinearChain(node, self.edge, start=self.start, end=self.end, mask=self.mask)

    def log_prob_of(self, allowed: Bool[Tensor, "*batch T K"]) -> Float[Tensor, "*batch"]:
        """log p(every label is one of those allowed at its position): what partial labels are learned by.

        References: Tsuboi et al. (2008), Training conditional random fields using incomplete annotations.
        """
        inside = log_partition(*self.constrain(allowed)._canonical())
        return inside.view(self.batch_shape) - self.log_partition()
