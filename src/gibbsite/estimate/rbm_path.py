"""The path to an RBM along which every model is an RBM, so that block Gibbs draws exactly at each temperature."""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from ..algebra import Path
from ..check import instance, number
from ..distributions.factorised import Bernoulli
from ..model import check_potential, tell
from ..models.rbm import RBM, softplus
from ..space import Uniform


@final
class RBMPath(Path):
    """At beta the RBM with weights beta W, hidden biases beta c and visible biases beta b + (1 - beta) a, a the base's.

    U_beta(x) = ((1 - beta) a + beta b).x + sum_j log(1 + exp(beta (c + W x)_j)): the bits of the base at beta = 0, with
    log Z_0 = hidden log 2 + sum_i log(1 + exp a_i), which estimators take into account; the RBM itself at beta = 1.
    The base is independent bits (None: uniform), best fitted to the data: `RBMPath(rbm, Bernoulli.fit(data))`.

    References: Salakhutdinov and Murray (2008), On the quantitative analysis of deep belief networks.

    Example:
        >>> import gibbsite as gb
        >>> rbm = gb.models.RBM.random(8, 4, seed=0)
        >>> z = gb.ais(gb.estimate.RBMPath(rbm), gb.sample.BlockGibbs(), gb.estimate.linear(100), chains=200, seed=1)
        >>> abs(z.value - rbm.log_z().item()) < 4 * z.stderr
        True
    """

    def __init__(self, model: RBM, base: Bernoulli | Uniform | None = None):
        self.model = instance(model, RBM, "model")
        if base is not None and base.space != model.space:
            raise ValueError(f"base: expected a distribution on {model.space}, got one on {base.space}")
        if base is None or isinstance(base, Uniform):
            base = Bernoulli(torch.zeros_like(model.visible_bias, requires_grad=False))
        logits = instance(base, Bernoulli, "base", hint="; its bits must be independent").logits
        self._logits = logits.detach().to(model.weight)
        self.start = Bernoulli(self._logits)

    def at(self, beta: float) -> RBM:
        beta, rbm, a = number(beta, "beta", least=0, most=1), self.model, self._logits
        with torch.no_grad():
            visible = (1 - beta) * a + beta * rbm.visible_bias
            return RBM.from_weights(beta * rbm.weight, visible, beta * rbm.hidden_bias)

    def increment(self, low: float, high: float, x: Tensor) -> Float[Tensor, " chains"]:
        """U_high(x) - U_low(x) from one product with the weights, in double precision where terms add up."""
        with torch.no_grad():
            rbm, z = self.model, self.model.space.embed(x, self.model.weight.dtype)
            inputs = rbm.hidden_logits(z)
            units = (softplus(high * inputs) - softplus(low * inputs)).sum(-1, dtype=torch.float64)
            bits = (high - low) * (z @ (rbm.visible_bias - self._logits)).double()
        tell(2 * len(x))
        return check_potential(units + bits, x, x.shape[:1])

    def slope(self, beta: float, x: Tensor) -> Float[Tensor, " chains"]:
        """dU_beta(x)/dbeta."""
        with torch.no_grad():
            rbm, z = self.model, self.model.space.embed(x, self.model.weight.dtype)
            inputs = rbm.hidden_logits(z)
            units = (inputs * (beta * inputs).sigmoid()).sum(-1, dtype=torch.float64)
            bits = (z @ (rbm.visible_bias - self._logits)).double()
        tell(len(x))
        return check_potential(units + bits, x, x.shape[:1])
