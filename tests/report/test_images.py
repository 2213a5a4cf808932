"""Images in squares beside one another."""

import numpy as np

from gibbsite.report import plots


def test_images_stand_in_squares_with_gaps_and_signs_are_kept():
    values = np.arange(5 * 2 * 3).reshape(5, 2, 3) / 30 - 0.5
    figure = plots.images({"filters": values}, signed=True)
    (picture,) = figure.axes[0].images
    shown = np.asarray(picture.get_array().filled(np.nan))
    assert shown.shape == (2 * 3 - 1, 3 * 4 - 1) and picture.get_clim() == (-0.5, 0.5)
    assert np.array_equal(shown[:2, :3], values[0]) and np.array_equal(shown[3:5, 4:7], values[4])
    assert np.isnan(shown[2]).all() and np.isnan(shown[:, 3]).all() and np.isnan(shown[3:, 8:]).all()
    assert len(plots.images({"a": np.zeros((1, 2, 2)), "b": np.ones((4, 2, 2))}).axes) == 2
