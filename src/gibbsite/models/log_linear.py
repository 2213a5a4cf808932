"""Log-linear models: a weight a feature."""

from collections.abc import Callable
from typing import final

from jaxtyping import Float, Int
from torch import Tensor, nn

from ..check import floats, function, instance
from ..model import Model
from ..space import Space


@final
class LogLinear(Model):
    """U(x) = sum_k w_k f_k(x), f a function from states to (*batch, features).

    Of all laws with its own means of f it has the largest entropy. `gb.learn.improved_scaling` finds the weights that give
    means of f that are wanted.

    References: Jaynes (1957); Della Pietra et al. (1997); EBM-SLP, appendix B.1.

    Example:
        >>> import torch, gibbsite as gb
        >>> space = gb.Binary(2)
        >>> both = gb.models.LogLinear(space, lambda x: space.embed(x).prod(-1, keepdim=True), torch.tensor([1.5]))
        >>> both(torch.tensor([[1, 1], [1, 0]])).tolist()
        [1.5, 0.0]
    """

    def __init__(self, space: Space, features: Callable[[Tensor], Tensor], weights: Float[Tensor, " features"]):
        super().__init__()
        self.space = instance(space, Space, "space")
        self.features = function(features, "features", "lambda x: space.embed(x)")
        self.weights = nn.Parameter(floats(weights, "weights", ("features",)).clone())

    def described(self, x: Int[Tensor, "*batch event"]) -> Float[Tensor, "*batch features"]:
        """f(x), in the weights' type."""
        f = self.features(x).to(self.weights.dtype)
        if f.shape[-1:] != self.weights.shape:
            raise ValueError(f"features(x): expected (*batch, {len(self.weights)}), one a weight, got {tuple(f.shape)}")
        return f

    def forward(self, x: Int[Tensor, "*batch event"]) -> Float[Tensor, "*batch"]:
        return self.described(x) @ self.weights
