"""The compiled way along an `RBMPath` by block Gibbs: two matrix products a temperature, for weights and moves together."""

import numpy as np
import torch
from torch import Tensor

from .._fast import rbm_walk
from .._fast.product import multiply
from .._fast.random import substream
from ..algebra import Path
from ..model import dtype_of
from ..random import Source
from ..sample.gibbs import BlockGibbs
from ..sample.kernel import Cost
from .rbm_path import RBMPath


def covers(path: Path, kernel: object, x: Tensor) -> bool:
    """Whether the compiled way has the law that is asked for: float32 on the CPU, block Gibbs with no site clamped."""
    plain = isinstance(kernel, BlockGibbs) and kernel.clamp is None and kernel.blocks is None
    return isinstance(path, RBMPath) and plain and x.device.type == "cpu" and dtype_of(path.model) == torch.float32


class RBMWalk:
    """Chains on the path: `weigh` also draws the hidden units at the beta it leads to, `move` then the visible ones."""

    def __init__(self, path: RBMPath, kernel: BlockGibbs, x: Tensor, generator: Source):
        assert isinstance(generator, torch.Generator)
        parts = (path.model.weight, path.model.visible_bias, path.model.hidden_bias, path.start.get_parameter("logits"))
        self._weight, b, self._hidden_bias, a = (part.detach().contiguous().numpy() for part in parts)
        self._start, self._slope = a, b - a
        self._v = x.to(torch.float32).contiguous().numpy().copy()
        self._h = np.empty((len(x), len(self._hidden_bias)), np.float32)
        self._dots = self._v.astype(np.float64) @ self._slope.astype(np.float64)
        self._seed, self._draws = np.uint64(int(torch.randint(2**63 - 1, (), generator=generator))), 0
        self._cost = kernel.cost(path.model)

    @property
    def x(self) -> Tensor:
        """Where the chains stand."""
        return torch.from_numpy(self._v.astype(np.int8))

    def weigh(self, low: float, high: float) -> Tensor:
        """U_high(x) - U_low(x); the hidden units are then drawn given x at `high`."""
        log_w = (high - low) * self._dots
        multiply(self._v, self._weight.T, out=self._h)
        ends = np.float32(low), np.float32(high)
        rbm_walk.weigh_and_draw_hidden(self._h, self._hidden_bias, *ends, log_w, self._next())
        if not np.isfinite(log_w).all():
            raise ValueError("U(x): a compiled loop met a value that is not finite; check the model's weights")
        return torch.from_numpy(log_w)

    def move(self, beta: float, log_w: Tensor) -> Cost:
        """One step of block Gibbs at beta, the last one that was weighed for."""
        multiply(self._h, self._weight, out=self._v)
        bias = np.float32(beta) * (self._slope + self._start) + np.float32(1 - beta) * self._start
        rbm_walk.draw_visible(self._v, np.float32(beta), bias, self._slope, self._dots, self._next())
        return self._cost

    def _next(self) -> np.uint64:
        self._draws += 1
        return np.uint64(substream(self._seed, np.uint64(self._draws)))
