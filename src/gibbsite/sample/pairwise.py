"""Ising models, and weighted sums of one with independent bits, as the compiled loops take them: rows of a sparse graph."""

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch

from .._fast import potential
from ..distributions.factorised import Bernoulli
from ..model import Model, NotFinite, evaluate, leaves
from ..models.couplings import Couplings
from ..models.graph import compressed_rows
from ..models.ising import Ising
from ..space import Uniform


class Rows(NamedTuple):
    """Row i holds the neighbours of site i and the couplings to them; then the field of each site.

    `plans` keeps what the loops prepare for this structure, as long as it is the same.
    """

    offsets: np.ndarray
    neighbours: np.ndarray
    weights: np.ndarray
    field: np.ndarray
    plans: dict[bytes, Any]

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Offsets, neighbours, weights, field."""
        return self.offsets, self.neighbours, self.weights, self.field


class _Structure(NamedTuple):
    version: int
    offsets: np.ndarray
    neighbours: np.ndarray
    number: np.ndarray
    plans: dict[bytes, Any]


_structures: WeakKeyDictionary[Couplings, _Structure] = WeakKeyDictionary()


def ising_of(model: Model) -> Ising | None:
    """The Ising model in `model`: itself, or the only one in a sum whose other terms are independent bits."""
    found = [term for _, term in leaves(model) if not isinstance(term, Uniform | Bernoulli)]
    return found[0] if len(found) == 1 and isinstance(found[0], Ising) else None


def rows(model: Model) -> Rows:
    """The rows of a model that `ising_of` knows: its numbers are read anew, for learning moves them."""
    ising = ising_of(model)
    assert ising is not None
    _, offsets, neighbours, number, plans = _structure(ising.pairs)
    field, weights = np.zeros(ising.pairs.sites, np.float32), np.zeros(len(number), np.float32)
    with torch.no_grad():
        for scale, term in leaves(model):
            if isinstance(term, Ising):
                weights = np.float32(scale) * term.pairs.structure_weights().numpy()[number]
                field = field + np.float32(scale) * term.field.numpy()
            elif isinstance(term, Bernoulli):  # x l = (1 + s) l / 2
                field = field + np.float32(scale / 2) * term.logits.flatten().numpy()
    if not (np.isfinite(weights).all() and np.isfinite(field).all()):
        raise NotFinite("U(x): the couplings or fields are not finite; check the model's weights")
    return Rows(offsets, neighbours, weights, field, plans)


def potentials(model: Model, graph: Rows, x: np.ndarray) -> np.ndarray:
    """U(x), by the rows when the model is an Ising model alone."""
    if isinstance(model, Ising):
        return potential.ising(x, *graph.rows)
    return evaluate(model, torch.from_numpy(x.view(np.int8))).numpy()


def _structure(pairs: Couplings) -> _Structure:
    """The graph row by row, made anew when another was loaded."""
    known = _structures.get(pairs)
    if known is None or known.version != pairs.structure_version:
        offsets, neighbours, number = (part.numpy() for part in compressed_rows(pairs.structure(), pairs.sites))
        known = _Structure(pairs.structure_version, offsets, neighbours.astype(np.int32), number, {})
        _structures[pairs] = known
    return known
