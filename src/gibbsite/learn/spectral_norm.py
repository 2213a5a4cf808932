"""The spectral norms of a network's layers, by power iteration that goes on from step to step."""

from collections.abc import Iterator
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from .. import random
from ..check import instance
from ..random import Seed
from ..space import whole


@final
class SpectralNorm(nn.Module):
    """sum over weights W of at least two dimensions of their largest singular value, W as a matrix (outputs, the rest).

    Each call makes `iterations` steps of u <- W v / |W v|, v <- W^T u / |W^T u| and returns u.W v, whose gradient is u v^T.
    v is a buffer: it goes on from the last call, and after a restart from where it was. In evaluation it rests. Of a layer
    with a parametrisation (`weight_normalised`) W is the weight that acts, not the parts that it is made of.

    References: Miyato et al. (2018), Spectral normalization for generative adversarial networks; Yoshida and Miyato
    (2017) for the penalty; Vahdat and Kautz (2020) and Xiao et al. (2021), VAEBM, where it is used.

    Example:
        >>> import torch, gibbsite as gb
        >>> model = gb.models.MLP(gb.Real(2), (8,), seed=0)
        >>> norm = gb.learn.SpectralNorm(model, iterations=50, seed=0)
        >>> exact = sum(torch.linalg.matrix_norm(w, 2) for w in model.parameters() if w.ndim > 1)
        >>> bool(torch.isclose(norm(), exact))
        True
    """

    def __init__(self, module: nn.Module, *, iterations: int = 1, seed: Seed):
        super().__init__()
        source = random.generator(seed)
        instance(module, nn.Module, "module")
        self.iterations = whole(iterations, "iterations")
        self._places = list(_places(module))  # in a list: no modules of this
        if not self._places:
            raise ValueError(f"module: expected weights of at least two dimensions, got none in {type(module).__name__}")
        for place, weight in enumerate(self._weights()):
            start = random.normal((weight[0].numel(),), source, weight.dtype).to(weight.device)
            self.register_buffer(f"v{place}", start / start.norm())

    def forward(self) -> Float[Tensor, ""]:
        return torch.stack([self._norm(place, weight.flatten(1)) for place, weight in enumerate(self._weights())]).sum()

    def _weights(self) -> list[Tensor]:
        return [getattr(part, name) for part, name in self._places]

    def _norm(self, place: int, weight: Float[Tensor, "outputs rest"]) -> Float[Tensor, ""]:
        v = self.get_buffer(f"v{place}")
        with torch.no_grad():
            u = nn.functional.normalize(weight @ v, dim=0)
            for _ in range(self.iterations if self.training else 0):
                v = nn.functional.normalize(weight.T @ u, dim=0)
                u = nn.functional.normalize(weight @ v, dim=0)
            setattr(self, f"v{place}", v)
        return u @ (weight @ v)


def _places(module: nn.Module) -> Iterator[tuple[nn.Module, str]]:
    """The modules and names of all weights of at least two dimensions, a parametrised one as what its parts make."""
    for part in module.modules():
        if isinstance(part, parametrize.ParametrizationList):
            continue
        names = [name for name, _ in part.named_parameters(recurse=False)]
        if parametrize.is_parametrized(part):
            names += list(part.parametrizations)  # pyright: ignore[reportArgumentType]
        yield from ((part, name) for name in names if getattr(part, name).ndim > 1)
