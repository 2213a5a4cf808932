"""ArviZ, imported when first needed and without its announcement of a coming version."""

import warnings
from typing import Any

import numpy as np


def load_arviz() -> Any:
    """The arviz module."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        import arviz
    return arviz


def inference_data(**groups: dict[str, np.ndarray]) -> Any:
    """ArviZ's InferenceData of arrays (chains, draws, ...), without its guess that more chains than draws are a mistake."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="More chains", category=UserWarning)
        return load_arviz().from_dict(**groups)


def each(name: str, values: np.ndarray) -> list[float]:
    """ArviZ's `name` of every column of values (draws, chains, columns); NaN where a column never moves."""
    function = getattr(load_arviz(), name)
    still = np.all(values == values[:1, :1], axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return [
            float("nan") if still[k] else float(np.asarray(function(values[..., k].T)).item())
            for k in range(values.shape[2])
        ]
