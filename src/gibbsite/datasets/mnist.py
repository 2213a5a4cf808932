"""MNIST: 70,000 handwritten digits of 28 x 28, in the IDX format."""

import gzip
import struct

import numpy as np
import torch
from torch import Tensor

from .images import Images
from .source import Source

_URL = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_DIGESTS = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
_UNSIGNED_BYTES = 8


def mnist() -> Images:
    """Handwritten digits of 28 x 28 pixels in 256 grey levels: 60,000 for training, 10,000 for testing.

    References: LeCun et al. (1998), Gradient-based learning applied to document recognition.
    """
    parts = {
        name: Source("mnist", f"{_URL}{name}.gz", digest, {f"{name}.gz": gzip.decompress, name: bytes}).read()
        for name, digest in _DIGESTS.items()
    }
    train, train_labels, test, test_labels = (idx(content) for content in parts.values())
    return Images("mnist", train, test, 256, "none stated", train_labels.long(), test_labels.long())


def idx(content: bytes) -> Tensor:
    """The uint8 array that an IDX file holds: two zeros, the type, how many sizes; the sizes; then the bytes."""
    zeros, kind, dimensions = struct.unpack_from(">HBB", content)
    if zeros or kind != _UNSIGNED_BYTES:
        raise ValueError(f"idx: expected unsigned bytes (0, 8), got {(zeros, kind)}")
    sizes = struct.unpack_from(f">{dimensions}I", content, 4)
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions)
    if len(values) != np.prod(sizes):
        raise ValueError(f"idx: expected {sizes} bytes, got {len(values)}")
    return torch.from_numpy(values.reshape(sizes).copy())
