"""Time and error of the compiled loops of linear chains by size: `linear_chain` runs this in a process of its own."""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from gibbsite.exact.chain_loops import best_path, log_partition

LABELS = [(8, 100, K) for K in (5, 10, 20, 50, 100, 200, 500, 1000)]
POSITIONS = [(8, T, 20) for T in (100, 1000, 5000, 20_000)]
CHAINS = [(B, 100, 50) for B in (1, 16, 64, 256)]
WIDE = ((64, 100, 50, 10.0, ", weights x 10"), (64, 100, 50, 100.0, ", weights x 100"))
_TURNS = 3


def draw(B: int, T: int, K: int, scale: float, dtype: torch.dtype, *, positions: bool = False) -> list[torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    shapes = (B, T, K), (B, T - 1, K, K) if positions else (K, K), (K,), (K,)
    return [(scale * torch.randn(shape, generator=g)).to(dtype).requires_grad_() for shape in shapes]


def seconds(work: Callable[[], Any]) -> float:
    """CPU time of one call, the least of a few turns."""
    work()
    turns = []
    for _ in range(_TURNS):
        began = time.process_time()
        work()
        turns.append(time.process_time() - began)
    return min(turns)


def row(given: list[torch.Tensor], chains: str, labels: str) -> dict[str, Any]:
    """One line of the table."""
    B, T, _ = given[0].shape
    lengths = torch.full((B,), T)
    detached = [w.detach() for w in given]

    def both(weights: list[torch.Tensor]) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        z = log_partition(*weights, lengths)
        return z.detach(), torch.autograd.grad(z.sum(), weights)

    z, slopes = both(given)
    exact, expected = both([w.double().requires_grad_() for w in detached])
    found = {
        "chains": chains,
        "positions": T,
        "labels": labels,
        "forward": seconds(lambda: log_partition(*detached, lengths)),
        "both": seconds(lambda: both(given)),
        "best": seconds(lambda: best_path(*detached, lengths)),
        "error": float(((z - exact) / exact).abs().max()),
        "slope_error": max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(slopes, expected)),
    }
    print(found, flush=True)
    return found


def rows() -> list[dict[str, Any]]:
    found = [row(draw(B, T, K, 1.0, torch.float32), str(B), str(K)) for B, T, K in (*LABELS, *POSITIONS, *CHAINS)]
    found += [row(draw(B, T, K, scale, torch.float32), str(B), f"{K}{name}") for B, T, K, scale, name in WIDE]
    forbidden = draw(64, 100, 50, 1.0, torch.float32)
    with torch.no_grad():
        forbidden[1][torch.rand(50, 50, generator=torch.Generator().manual_seed(1)) < 0.5] = -torch.inf
    found.append(row(forbidden, "64", "50, half of the edges forbidden"))
    found.append(row(draw(64, 100, 50, 1.0, torch.float32, positions=True), "64", "50, a table a position"))
    return found


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--child", metavar="OUT", help="used by linear_chain")
    Path(arguments.parse_args().child).write_text(json.dumps(rows()))
