"""Scikit-learn's handwritten digits: 1,797 real images of 8 x 8, which come inside that package."""

import torch

from .images import Images
from .source import DatasetError

_EVERY = 6


def digits() -> Images:
    """Handwritten digits of 8 x 8 pixels in 17 grey levels (UCI Optical Recognition of Handwritten Digits, CC BY 4.0).

    Every sixth image is for testing (299), the others for training (1,498).

    References: Alpaydin and Kaynak (1998), Cascading classifiers.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise DatasetError("digits: scikit-learn holds them; install it with: pip install 'gibbsite[digits]'") from error
    values, target = load_digits(return_X_y=True)
    images = torch.as_tensor(values).to(torch.uint8).view(-1, 8, 8)
    labels = torch.as_tensor(target).long()
    tested = torch.arange(len(images)) % _EVERY == _EVERY - 1
    return Images("digits", images[~tested], images[tested], 17, "CC BY 4.0", labels[~tested], labels[tested])
