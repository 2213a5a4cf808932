"""The Frey faces: 1,965 frames of one face, 28 x 20, from a video."""

import io

import numpy as np
import torch

from .images import Images
from .matlab import byte_matrix
from .source import Source

_EVERY = 10
_ROWS, _COLUMNS = 28, 20


def _of_numpy(raw: bytes) -> bytes:
    with np.load(io.BytesIO(raw), allow_pickle=False) as file:
        return file["x"].astype(np.uint8).tobytes()


def _of_matlab(raw: bytes) -> bytes:
    return np.ascontiguousarray(byte_matrix(raw, "ff").T).tobytes()


_FACES = Source(
    folder="freyfaces",
    url="https://cs.nyu.edu/~roweis/data/frey_rawface.mat",
    sha256="2438ba4f0d2a6bd8bac43de756141eaa33c8d248dd613d464bdb1210d9b7af78",
    forms={"freyfaces.npz": _of_numpy, "frey_rawface.mat": _of_matlab},
)


def frey_faces() -> Images:
    """Faces of 28 x 20 pixels in 256 grey levels; every tenth is for testing (196), the others for training (1,769).

    They are frames of one video, so that test faces have near twins among the training faces.

    References: Roweis and Saul (2000), Nonlinear dimensionality reduction by locally linear embedding.
    """
    values = np.frombuffer(_FACES.read(), np.uint8).reshape(-1, _ROWS, _COLUMNS)
    images = torch.from_numpy(values.copy())
    tested = torch.arange(len(images)) % _EVERY == _EVERY - 1
    return Images("frey_faces", images[~tested], images[tested], 256, "none stated")
