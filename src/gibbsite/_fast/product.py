"""The float32 matrix product of the compiled loops: oneDNN, which torch ships, or torch's BLAS on the processors it knows.

oneDNN picks its kernels by the processor it runs on, while the BLAS of torch falls back to older instructions on one that
it does not know (half the speed, seen on a recent AMD). On Intel's it is the faster of the two, by a tenth.
"""

from functools import cache
from pathlib import Path

import numpy as np
import torch


def multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """out = a b, float32; a (rows, terms), b (terms, columns), out C-contiguous."""
    if _by_onednn():
        torch.from_numpy(out).copy_(_onednn(a, b))
    else:
        torch.mm(torch.from_numpy(a), torch.from_numpy(b), out=torch.from_numpy(out))


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a b, float32, in new memory: oneDNN writes there anyway, so that this saves `multiply` a copy."""
    return (_onednn(a, b) if _by_onednn() else torch.from_numpy(a) @ torch.from_numpy(b)).numpy()


def _onednn(a: np.ndarray, b: np.ndarray) -> torch.Tensor:
    return torch.ops.mkldnn._linear_pointwise(torch.from_numpy(a), torch.from_numpy(b).T, None, "none", [], "")


@cache
def _by_onednn() -> bool:
    """Whether oneDNN is there, and the processor is not one that torch's BLAS is made for."""
    processor = Path("/proc/cpuinfo")
    known = processor.exists() and "GenuineIntel" in processor.read_text(errors="replace")
    return has_onednn() and not (known and torch.backends.mkl.is_available())


@cache
def has_onednn() -> bool:
    """Whether this build's oneDNN product is there and right."""
    if not torch.backends.mkldnn.is_available():
        return False
    probe = torch.arange(6.0).view(2, 3)
    try:
        return torch.equal(torch.ops.mkldnn._linear_pointwise(probe, probe, None, "none", [], ""), probe @ probe.T)
    except (AttributeError, RuntimeError):
        return False
