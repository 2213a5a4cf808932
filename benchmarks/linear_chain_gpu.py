"""# How fast are linear-chain CRFs on a GPU, beside pytorch-crf?

Random float32 weights, every chain whole. "log p" is the log-likelihood of labels and its gradient, as a training step
takes it; "log Z" the log-partition function and its gradient; "best" the best labels. Ours is `gibbsite.exact.LinearChain`
whole, with its checks and its masks; "by logarithms" is what it falls back on where products of matrices could lose a
number. Theirs is `CRF` of pytorch-crf, for log Z its normaliser (a private method). Times are of the clock, the device
waited for.

    python benchmarks/linear_chain_gpu.py [--device cuda]   writes results/linear_chain_gpu.md and .json
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from _harness import heading, machine, number, table, write
from torchcrf import CRF

import gibbsite as gb
from gibbsite.exact.chain_forward import log_partition

SIZES = (64, 100, 50), (32, 1000, 20), (512, 50, 10)  # chains, positions, labels
_ROUNDS, _CALLS = 7, 5


def contests(B: int, T: int, K: int, device: torch.device) -> dict[str, dict[str, Callable[[], Any]]]:
    """What each side does, checked to give the same numbers."""
    g = torch.Generator().manual_seed(0)
    node, edge, start, end = (torch.randn(shape, generator=g).to(device) for shape in ((B, T, K), (K, K), (K,), (K,)))
    y, lengths = torch.randint(K, (B, T), generator=g).to(device), torch.full((B,), T, device=device)
    crf, mask = CRF(K, batch_first=True).to(device), torch.ones(T, B, dtype=torch.bool, device=device)
    with torch.no_grad():
        for mine, theirs in ((edge, crf.transitions), (start, crf.start_transitions), (end, crf.end_transitions)):
            theirs.copy_(mine)
    ours = [x.requires_grad_() for x in (node, edge, start, end)]
    peers = [node, *crf.parameters()]

    def chain() -> gb.exact.LinearChain:
        return gb.exact.LinearChain(node, edge, start=start, end=end)

    log_z = {
        "gibbsite": lambda: chain().log_partition(),
        "gibbsite, by logarithms": lambda: log_partition(node, edge, start, end, lengths),
        "pytorch-crf": lambda: crf._compute_normalizer(node.transpose(0, 1), mask),
    }
    log_p = {"gibbsite": lambda: chain()(y), "pytorch-crf": lambda: crf(node, y, reduction="none")}
    for values in ([f() for f in log_z.values()], [f() for f in log_p.values()]):
        for value in values:
            torch.testing.assert_close(value, values[0], rtol=1e-4, atol=1e-2)
    assert chain().mode().tolist() == crf.decode(node)
    leaves = {name: peers if name == "pytorch-crf" else ours for name in log_z}
    with_slopes = [
        {name: lambda f=f, name=name: torch.autograd.grad(f().sum(), leaves[name]) for name, f in side.items()}
        for side in (log_p, log_z)
    ]
    best = {"gibbsite": lambda: chain().mode(), "pytorch-crf": lambda: crf.decode(node)}
    return {"log p, with its gradient": with_slopes[0], "log Z, with its gradient": with_slopes[1], "best labels": best}


def milliseconds(work: Callable[[], Any], device: torch.device) -> float:
    """Of one call, the device waited for before and after several."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    wait()
    began = time.perf_counter()
    for _ in range(_CALLS):
        work()
    wait()
    return 1000 * (time.perf_counter() - began) / _CALLS


def compete(sides: dict[str, Callable[[], Any]], device: torch.device) -> dict[str, list[float]]:
    """The milliseconds of each side in each round, in turns."""
    for work in sides.values():
        milliseconds(work, device)  # allocates, compiles
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(_ROUNDS):
        for name, work in sides.items():
            times[name].append(milliseconds(work, device))
    return times


def row(name: str, times: dict[str, list[float]]) -> list[str]:
    """The median time, and the median and extremes of the ratio to the peer's in the same round."""
    ratios = [theirs / mine for mine, theirs in zip(times[name], times["pytorch-crf"])]
    spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
    return [name, number(statistics.median(times[name])), "" if name == "pytorch-crf" else spread]


def main() -> None:
    """Runs all contests on one device."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--device", default="cuda", help="cuda, cuda:1, ...; cpu to try the script")
    device = torch.device(arguments.parse_args().device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    record: dict[str, Any] = {"question": sys.modules["__main__"].__doc__, "machine": machine(), "device": name, "times": {}}
    parts = [heading(record), f"Device: {name}. {_ROUNDS} rounds of {_CALLS} calls.\n"]
    for B, T, K in SIZES:
        for title, sides in contests(B, T, K, device).items():
            times = compete(sides, device)
            record["times"][f"{title}, {B} x {T} x {K}"] = times
            parts.append(f"## {title}: {B} chains of {T} positions, {K} labels\n")
            parts.append(table(["", "milliseconds", "times as fast as pytorch-crf"], [row(side, times) for side in times]))
    write("linear_chain_gpu", record, "\n".join(parts))


if __name__ == "__main__":
    main()
