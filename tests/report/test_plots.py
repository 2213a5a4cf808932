"""Figures: what is asked for is on them, without pyplot and whatever the numbers."""

import sys

import numpy as np
import torch
from matplotlib.colors import to_rgb

from gibbsite.report import plots


def texts(figure):
    return " ".join(text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text")))


def test_no_global_figure_state():
    plots.autocorrelation({"a": [1.0, 0.3]})
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()


def test_panels_share_one_legend_and_skip_what_is_not_finite():
    lines = {"a": plots.Line([1, 2, 3], [1.0, np.nan, 3.0], [0.1, 0.1, np.inf]), "b": plots.Line([1], [2.0])}
    curves = {"exact": plots.Line([1, 2], [1.0, 2.0])}
    contents = [
        plots.Panel("x", "y", lines, "left", log_y=True),
        plots.Panel("x", "y", title="right", points=lines, curves=curves),
    ]
    figure = plots.panels(contents)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "exact"]
    drawn = figure.axes[0].containers[0].lines[0]
    assert list(drawn.get_xdata()) == [1, 3]
    figure.canvas.draw()
    assert {"left", "right"} <= set(texts(figure).split())


def test_an_empty_panel_can_be_drawn():
    plots.panels([plots.Panel("x", "y", log_x=True, log_y=True)]).canvas.draw()


def test_traces_show_mean_band_and_level():
    figure = plots.traces({"a": ([1, 2], [[0.0, 2.0], [4.0, 6.0]])}, x="step", y="U", levels={"exact": 3.0}, log_x=True)
    mean, level = figure.axes[0].lines
    assert list(mean.get_ydata()) == [1.0, 5.0] and list(level.get_ydata()) == [3.0, 3.0]


def test_lattices_and_marginals_take_any_number():
    spins = torch.zeros(5, 4, 4, dtype=torch.int8)
    figure = plots.lattices(spins, [f"K{i}" for i in range(5)], columns=3)
    assert sum(axes.get_visible() for axes in figure.axes) == 5
    plots.lattices(spins[:1], ["one"]).canvas.draw()
    plots.marginals({"a": np.zeros((2, 3)), "b": np.ones((2, 3))}, x="time", y="chain").canvas.draw()
    plots.marginals({"a": np.zeros((2, 3))}, x="time", y="chain").canvas.draw()


def test_images_stand_in_a_square_with_gaps_where_nothing_is_drawn():
    values = np.arange(5.0).reshape(5, 1, 1) * np.ones((5, 2, 3))
    figure = plots.images({"a": values, "b": values[:1]})
    square = figure.axes[0].images[0].get_array()
    assert square.shape == (2 * 3 - 1, 3 * 4 - 1)  # three across, two down, a gap after each but the last
    for number, (row, column) in enumerate(((0, 0), (0, 4), (0, 8), (3, 0), (3, 4))):
        assert (square[row : row + 2, column : column + 3] == number).all()
    assert np.ma.getmaskarray(square).sum() == 11 + 5 * 2 - 2 + 2 * 3
    assert figure.axes[1].images[0].get_array().shape == (2, 3)
    signed = plots.images({"w": np.array([[[-3.0, 1.0]]])}, signed=True).axes[0].images[0]
    assert signed.get_clim() == (-3.0, 3.0)


def luminance(colour):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def test_series_stand_out_from_white_paper():
    for colour in plots.SERIES:
        assert 1.05 / (luminance(colour) + 0.05) >= 3.0  # the contrast that graphics need (WCAG 1.4.11)


def test_densities_and_clouds_take_any_number():
    figure = plots.densities({f"d{i}": np.eye(5) * i for i in range(4)}, (-1, 2), columns=3)
    assert sum(axes.get_visible() for axes in figure.axes) == 4 and {f"d{i}" for i in range(4)} <= set(texts(figure).split())
    assert [image.get_clim() for axes in figure.axes for image in axes.images] == [(0, 3)] * 4, "one scale"
    figure = plots.clouds({"a": torch.zeros(3, 2), "b": np.ones((1, 2))}, (-1, 2))
    assert [len(axes.collections[0].get_offsets()) for axes in figure.axes] == [3, 1]
    figure.canvas.draw()


def test_a_density_lies_with_its_first_coordinate_to_the_right():
    """One bright point at (x, y) = (2, 0): the last column of the first row from below. The mutant is not transposed."""
    values = np.zeros((4, 4))
    values[3, 0] = 1
    (image,) = plots.densities({"a": values}, (-1, 2)).axes[0].images
    assert image.get_array()[0, 3] == 1 and image.get_array()[3, 0] == 0 and image.origin == "lower"


def test_a_spectrogram_names_what_is_said():
    figure = plots.spectrogram(
        np.arange(12.0).reshape(4, 3), [(0.0, 0.02, "AH"), (0.02, 0.04, "B")], hop=0.01, y="band", title="one"
    )
    figure.canvas.draw()
    assert {"AH", "B", "band", "one", "seconds"} <= set(texts(figure).split())
    assert list(figure.axes[0].images[0].get_extent()) == [0, 0.04, 0, 3]
