"""# How fast are linear-chain CRFs, beside pytorch-crf and torch-struct?

Random float32 weights, every chain whole. "log Z" is the log-partition function of a batch and its gradient to all weights;
"log p" the log-likelihood of labels and its gradient, as a training step takes it; "best" the best labels (Viterbi). Ours
is `gibbsite.exact.LinearChain` whole, with its checks and its masks, and, for log Z, the compiled loops alone. Theirs is
`CRF` of pytorch-crf: for log Z its normaliser (a private method), for log p the module, for the best labels `decode`, which
returns lists. All three are checked to give the same numbers. torch-struct, which keeps every pair of labels of a chain's
every position several times (it took 8.6 GB and 11 s at the first size), gets a case of its own, and a smaller one.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch_struct
from _harness import Contest, Contestant, Target, child, main, number, table
from torchcrf import CRF

import gibbsite as gb
from gibbsite.exact.chain_total import log_partition

SIZES = ((64, 100, 50, 15), (32, 1000, 20, 25))  # chains, positions, labels; the target for log Z
SMALL = (16, 50, 20)
BEST = 8
HERE = Path(__file__).parent
OTHERS = """
## Other sizes

The compiled loops alone, in float32 and on one thread: milliseconds of CPU time; and the largest error beside float64, of
log Z relative to itself, of a gradient relative to its largest entry.

"""


def weights(B: int, T: int, K: int) -> list[torch.Tensor]:
    """node, edge, start, end."""
    g = torch.Generator().manual_seed(0)
    shapes = (B, T, K), (K, K), (K,), (K,)
    return [torch.randn(shape, generator=g).requires_grad_() for shape in shapes]


def peer(node: torch.Tensor, edge: torch.Tensor, start: torch.Tensor, end: torch.Tensor) -> CRF:
    crf = CRF(len(start), batch_first=True)
    with torch.no_grad():
        for mine, theirs in ((edge, crf.transitions), (start, crf.start_transitions), (end, crf.end_transitions)):
            theirs.copy_(mine)
    return crf


def struct(node: torch.Tensor, edge: torch.Tensor, start: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
    """torch-struct's potentials, (B, T - 1, label after, label before)."""
    first = torch.cat((node[:, :1] + start, node[:, 1:]), 1)
    first = torch.cat((first[:, :-1], first[:, -1:] + end), 1)
    pairs = edge.T + first[:, 1:, :, None]
    return torch.cat((pairs[:, :1] + first[:, 0, None, None, :], pairs[:, 1:]), 1)


def gradient(value: Callable[[], torch.Tensor], leaves: list[torch.Tensor]) -> Callable[[], Any]:
    return lambda: torch.autograd.grad(value().sum(), leaves)


def ways(B: int, T: int, K: int) -> dict[str, tuple[Callable[[], torch.Tensor], list[torch.Tensor]]]:
    """log Z of each contestant, and its leaves."""
    node, edge, start, end = given = weights(B, T, K)
    crf, lengths, mask = peer(*given), torch.full((B,), T), torch.ones(T, B, dtype=torch.bool)
    theirs = [node, crf.transitions, crf.start_transitions, crf.end_transitions]
    return {
        "gibbsite": (lambda: gb.exact.LinearChain(node, edge, start=start, end=end).log_partition(), given),
        "gibbsite, the loops alone": (lambda: log_partition(*given, lengths), given),
        "pytorch-crf": (lambda: crf._compute_normalizer(node.transpose(0, 1), mask), theirs),
        "torch-struct": (lambda: torch_struct.LinearChainCRF(struct(*given)).partition, given),
    }


def normaliser(B: int, T: int, K: int, least: float | None) -> Contest:
    """log Z with its gradient; torch-struct joins where there is no target."""
    every = ways(B, T, K)
    chosen = {name: way for name, way in every.items() if least is None or name != "torch-struct"}
    values = [value().double() for value, _ in chosen.values()]
    for value in values:
        torch.testing.assert_close(value, values[0], rtol=1e-5, atol=0)
    contestants = [Contestant(name, gradient(*way), 1) for name, way in chosen.items()]
    names = ("gibbsite", "gibbsite, the loops alone")
    targets = [] if least is None else [Target(name, "pytorch-crf", least) for name in names]
    return Contest(f"log Z and its gradient: {size(B, T, K)}", contestants, targets)


def likelihood(B: int, T: int, K: int) -> Contest:
    node, edge, start, end = given = weights(B, T, K)
    crf, y = peer(*given), torch.randint(K, (B, T), generator=torch.Generator().manual_seed(1))
    ours = lambda: gb.exact.LinearChain(node, edge, start=start, end=end)(y)  # noqa: E731
    theirs = lambda: crf(node, y, reduction="none")  # noqa: E731
    torch.testing.assert_close(ours(), theirs(), rtol=1e-4, atol=0)
    contestants = [
        Contestant("gibbsite", gradient(ours, given), 1),
        Contestant("pytorch-crf", gradient(theirs, [node, *crf.parameters()]), 1),
    ]
    return Contest(f"log p and its gradient: {size(B, T, K)}", contestants)


def best(B: int, T: int, K: int) -> Contest:
    node, edge, start, end = (w.detach() for w in weights(B, T, K))
    crf = peer(node, edge, start, end)
    ours = lambda: gb.exact.LinearChain(node, edge, start=start, end=end).mode()  # noqa: E731
    agreement = (ours() == torch.tensor(crf.decode(node))).double().mean()
    assert agreement > 0.999, "but for ties in float32 the labels are the same"
    contestants = [Contestant("gibbsite", ours, 1), Contestant("pytorch-crf", lambda: crf.decode(node), 1)]
    return Contest(f"best labels: {size(B, T, K)}", contestants, [Target("gibbsite", "pytorch-crf", BEST)])


def size(B: int, T: int, K: int) -> str:
    return f"{B} chains of {T}, {K} labels"


def contests() -> list[Contest]:
    found = [contest for *s, least in SIZES for contest in (normaliser(*s, least), likelihood(*s), best(*s))]
    return [*found, normaliser(*SMALL, None)]


def more(cpu: int) -> tuple[dict[str, Any], str]:
    """What happens at other sizes, in a process of its own. Memory has a script of its own, `linear_chain_memory.py`."""
    sizes = child(str(HERE / "linear_chain_sizes.py"), "one thread", cpu)
    columns = ["chains", "positions", "labels", "log Z", "with gradient", "best labels", "error of log Z", "of gradients"]
    return {"sizes": sizes}, OTHERS + table(columns, [_size_row(row) for row in sizes])


def _size_row(row: dict[str, Any]) -> list[str]:
    times = [number(1e3 * row[key]) for key in ("forward", "both", "best")]
    return [row["chains"], str(row["positions"]), row["labels"], *times, f"{row['error']:.1e}", f"{row['slope_error']:.1e}"]


if __name__ == "__main__":
    main(__file__, contests, more)
