"""The real data sets, and the formats that they come in."""

import io
import struct
import sys

import numpy as np
import pytest
import torch
from scipy.io import savemat

from gibbsite import datasets
from gibbsite.datasets.frey_faces import _of_matlab
from gibbsite.datasets.matlab import byte_matrix
from gibbsite.datasets.mnist import idx


def test_digits_are_real_images_with_every_class_in_both_parts():
    digits = datasets.digits()
    assert digits.train.shape == (1498, 8, 8) and digits.test.shape == (299, 8, 8) and int(digits.train.max()) == 16
    assert set(digits.train_labels.tolist()) == set(digits.test_labels.tolist()) == set(range(10))
    zeros = digits.grey(digits.train[digits.train_labels == 0]).mean(0).view(8, 8)
    assert zeros[3:5, 3:5].mean() < 0.3 < zeros[3:5, 1:3].mean()  # a nought is empty in the middle


def test_digits_without_scikit_learn_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(datasets.DatasetError, match=r"pip install 'gibbsite\[digits\]'"):
        datasets.digits()


def test_mnist(data):
    mnist = datasets.mnist()
    assert mnist.train.shape == (60_000, 28, 28) and mnist.test.shape == (10_000, 28, 28) and mnist.shape == (28, 28)
    assert mnist.train_labels[:5].tolist() == [5, 0, 4, 1, 9] and mnist.test_labels[:3].tolist() == [7, 2, 1]
    assert mnist.grey(mnist.train).mean().item() == pytest.approx(0.1307, abs=5e-5)  # the mean that everyone subtracts


def test_frey_faces(data):
    faces = datasets.frey_faces()
    assert faces.train.shape == (1769, 28, 20) and faces.test.shape == (196, 28, 20) and faces.train_labels is None


def test_binarised_bits_have_the_grey_values_as_means():
    """10,000 copies: every mean within 5.7 standard deviations, 1e-6 over 64 pixels, two-sided."""
    digits = datasets.digits()
    image, n = digits.test[:1], 10_000
    grey = digits.grey(image)[0].double()
    bits = digits.binarised(image.expand(n, -1, -1), seed=0).double().mean(0)
    deviation = (grey * (1 - grey) / n).sqrt()
    assert bool(((bits - grey).abs() <= 5.7 * deviation).all())
    assert not bool((((grey > 0.5).double() - grey).abs() <= 5.7 * deviation).all())  # mutant: thresholded instead


@pytest.mark.parametrize("compressed", [False, True])
def test_matlab_files_are_read_as_scipy_writes_them(compressed):
    faces = np.arange(560 * 3, dtype=np.uint32).astype(np.uint8).reshape(560, 3)
    file = io.BytesIO()
    savemat(file, {"other": np.zeros((2, 2)), "ff": faces}, do_compression=compressed)
    assert (byte_matrix(file.getvalue(), "ff") == faces).all()
    assert _of_matlab(file.getvalue()) == faces.T.tobytes()
    with pytest.raises(ValueError, match="expected a matrix called gg"):
        byte_matrix(file.getvalue(), "gg")
    with pytest.raises(ValueError, match="expected other as 2 x 2 bytes"):
        byte_matrix(file.getvalue(), "other")
    with pytest.raises(ValueError, match="MATLAB 5"):
        byte_matrix(b"words", "ff")
    if not compressed:
        with pytest.raises(ValueError, match="cut short"):
            byte_matrix(file.getvalue()[:-100], "ff")


def test_idx_files():
    assert idx(struct.pack(">HBB2I", 0, 8, 2, 2, 3) + bytes(range(6))).tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ValueError, match="got 5"):
        idx(struct.pack(">HBB2I", 0, 8, 2, 2, 3) + bytes(5))
    with pytest.raises(ValueError, match="unsigned bytes"):
        idx(struct.pack(">HBB1I", 0, 13, 1, 1) + bytes(4))


def test_images_check_what_they_are_made_of():
    x = torch.zeros(3, 2, 2, dtype=torch.uint8)
    with pytest.raises(ValueError, match="train: expected uint8 images"):
        datasets.Images("a", x.float(), x, 2, "none")
    with pytest.raises(ValueError, match="test_labels: expected 3"):
        datasets.Images("a", x, x, 2, "none", None, torch.zeros(4))
    with pytest.raises(ValueError, match=r"test: expected images of \(2, 2\)"):
        datasets.Images("a", x, x[:, :1], 2, "none")
    with pytest.raises(ValueError, match="levels"):
        datasets.Images("a", x, x, 1, "none")
