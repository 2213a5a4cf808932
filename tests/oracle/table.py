"""Prints |pi K - pi|_1 of every discrete kernel and of its mutant: `python -m tests.oracle.table`."""

import torch

import gibbsite as gb

from .cases import CASES


def mistake(kernel: object) -> str:
    """What the mutant inside `kernel` does: the first line of its docstring."""
    if not type(kernel).__module__.startswith("gibbsite"):
        return (type(kernel).__doc__ or "").split(":")[0].rstrip(".")
    parts = vars(kernel)
    if "propose" in parts:
        return mistake(parts["propose"](torch.zeros(8, dtype=torch.bool)))
    inner = parts.get("kernel") or parts.get("proposal") or parts.get("kernels", [None])[-1]
    return "takes every proposal" if isinstance(kernel, gb.sample.Unadjusted) else mistake(inner)


def main() -> None:
    torch.set_default_dtype(torch.float64)
    print(f"{'kernel':26} {'states':>6} {'|pi K - pi|_1':>14} {'mutant':>9}  what the mutant does")
    for case in CASES:
        model = case.model()
        p = gb.exact.probabilities(model)
        kernel, mutant = (
            float((p @ gb.exact.transition_matrix(k(), model) - p).abs().sum()) for k in (case.kernel, case.mutant)
        )
        print(f"{case.name:26} {len(p):6} {kernel:14.1e} {mutant:9.1e}  {mistake(case.mutant())}")


if __name__ == "__main__":
    main()
