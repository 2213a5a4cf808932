"""Figures of samples and samplers: pure functions that return a matplotlib Figure, with no global state.

Colours tell themselves apart for colour-blind readers (after Okabe and Ito), and every line has a marker or a dash of its
own. INK, GRID, PAPER and SERIES are the light palette; the HTML report swaps them for the reader's.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from numpy.typing import ArrayLike

INK, GRID, PAPER = "#1c2430", "#e6e9ed", "#fefefe"
SERIES = ("#0072b2", "#d55e00", "#009e73", "#b0558a", "#b07d00", "#3a9bd9")
_MARKERS, _DASHES = "osD^vP", ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
_SPINS = LinearSegmentedColormap.from_list("spins", ["#f0e4cc", "#20567f"])
_SIGNED = LinearSegmentedColormap.from_list("signed", ["#b3541e", "#f0e4cc", "#20567f"])
_PROBABILITY = LinearSegmentedColormap.from_list("probability", ["#f0e4cc", "#7aa6a1", "#20567f", "#0c2038"])


@final
@dataclass(frozen=True)
class Line:
    """Points y(x) with their errors; nothing is drawn where y is not finite."""

    x: ArrayLike
    y: ArrayLike
    error: ArrayLike | None = None


@final
@dataclass(frozen=True)
class Panel:
    """One set of axes: `lines` of points with error bars, loose `points`, smooth `curves`, vertical `marks`."""

    x: str
    y: str
    lines: Mapping[str, Line] = field(default_factory=dict)
    title: str = ""
    points: Mapping[str, Line] = field(default_factory=dict)
    curves: Mapping[str, Line] = field(default_factory=dict)
    marks: Mapping[str, float] = field(default_factory=dict)
    log_x: bool = False
    log_y: bool = False


def panels(contents: Sequence[Panel], *, columns: int = 2, height: float = 3.1) -> Figure:
    """Panels in a grid, with one legend: a name has one colour, marker and dash in all of them."""
    columns = min(columns, len(contents))
    rows = -(-len(contents) // columns)
    figure, grid = _figure(rows, columns, (min(4.6 * columns, 10), height * rows + 0.35))
    names = list(dict.fromkeys(name for panel in contents for name in [*panel.lines, *panel.points]))
    curves = list(dict.fromkeys(name for panel in contents for name in panel.curves))
    handles: dict[str, Any] = {}
    for axes, panel in zip(grid, contents):
        _style(axes, panel.x, panel.y, panel.title)
        for name, curve in panel.curves.items():
            style = {"color": INK, "linestyle": ("--", ":", "-.")[curves.index(name) % 3], "linewidth": 1.3, "zorder": 1.5}
            handles[name] = axes.plot(np.asarray(curve.x), np.asarray(curve.y), **style)[0]
        for name, line in panel.lines.items():
            handles[name] = _points(axes, line, names.index(name), _DASHES[names.index(name) % len(_DASHES)])
        for name, line in panel.points.items():
            handles[name] = _points(axes, line, names.index(name), "none")
        for name, place in panel.marks.items():
            axes.axvline(place, color=INK, linewidth=0.8, linestyle=":", zorder=1)
            axes.annotate(name, (place, 0.98), (3, 0), va="top", fontsize=8.5, color=INK, textcoords="offset points",
                          xycoords=("data", "axes fraction"))  # fmt: skip
        _scales(axes, panel.log_x, panel.log_y)
        if panel.log_x:
            places = sorted({float(x) for line in panel.lines.values() for x in np.atleast_1d(np.asarray(line.x))})
            axes.set_xticks(places, [f"{place:g}" for place in places])
            axes.set_xticks([], minor=True)
    _finish(figure, grid[len(contents) :], {name: handles[name] for name in [*names, *curves]})
    return figure


def traces(
    series: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    x: str,
    y: str,
    levels: Mapping[str, float] | None = None,
    log_x: bool = False,
    y_limits: tuple[float, float] | None = None,
) -> Figure:
    """Each name's chains, y of shape (draws, chains), as the mean over chains in a band from the lowest to the highest."""
    figure, (axes,) = _figure(1, 1, (8.6, 4.0))
    _style(axes, x, y, "")
    handles: dict[str, Any] = {}
    for index, (name, (place, values)) in enumerate(series.items()):
        values, colour = np.atleast_2d(np.asarray(values, dtype=float)), SERIES[index % len(SERIES)]
        axes.fill_between(np.asarray(place), values.min(1), values.max(1), color=colour, alpha=0.15, linewidth=0)
        style = {"color": colour, "linestyle": _DASHES[index % len(_DASHES)], "linewidth": 1.8}
        handles[name] = axes.plot(place, values.mean(1), **style)[0]
    for name, level in (levels or {}).items():
        handles[name] = axes.axhline(level, color=INK, linewidth=1.0, linestyle="--")
    if y_limits:
        axes.set_ylim(*y_limits)
    _scales(axes, log_x, False)
    _finish(figure, [], handles)
    return figure


def autocorrelation(series: Mapping[str, ArrayLike], *, x: str = "lag", y: str = "autocorrelation") -> Figure:
    """The autocorrelation of each name at lags 0, 1, ..."""
    figure, (axes,) = _figure(1, 1, (6.6, 3.4))
    _style(axes, x, y, "")
    handles = {}
    for index, (name, values) in enumerate(series.items()):
        style = {"color": SERIES[index % len(SERIES)], "linestyle": _DASHES[index % len(_DASHES)], "linewidth": 1.8}
        handles[name] = axes.plot(np.asarray(values), **style)[0]
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.margins(x=0)
    _finish(figure, [], handles)
    return figure


def lattices(spins: ArrayLike, titles: Sequence[str], *, columns: int = 4) -> Figure:
    """Spin configurations (n, rows, columns) in {0, 1} as squares of two colours."""
    spins = np.asarray(spins)
    columns = min(columns, len(spins))
    rows = -(-len(spins) // columns)
    figure, grid = _figure(rows, columns, (8.6, (8.6 / columns + 0.3) * rows))
    for axes, spin, title in zip(grid, spins, titles):
        axes.imshow(spin, cmap=_SPINS, vmin=0, vmax=1, interpolation="none")
        _bare(axes, title)
    _finish(figure, grid[len(spins) :], {})
    return figure


def images(groups: Mapping[str, ArrayLike], *, signed: bool = False, width: float = 8.6) -> Figure:
    """Each name's images (n, rows, columns) in a square, the squares beside one another.

    Grey levels from 0 to 1; signed ones from minus to plus the largest of all.
    """
    arrays = {name: np.asarray(values, dtype=float) for name, values in groups.items()}
    most = max(1e-12, *(float(np.abs(values).max()) for values in arrays.values())) if signed else 1.0
    style = {"cmap": _SIGNED if signed else _SPINS, "vmin": -most if signed else 0, "vmax": most, "interpolation": "none"}
    squares = {name: _mosaic(values) for name, values in arrays.items()}
    tallest = max(square.shape[0] / square.shape[1] for square in squares.values())
    figure, grid = _figure(1, len(squares), (width, tallest * width / len(squares) + 0.3))
    for axes, (name, square) in zip(grid, squares.items()):
        axes.imshow(square, **style)
        _bare(axes, name)
        axes.set_facecolor("none")
    return figure


def _mosaic(values: np.ndarray) -> np.ndarray:
    """Images in a square with a gap, where nothing is drawn, after each."""
    count, rows, columns = values.shape
    across = math.ceil(math.sqrt(count))
    down = -(-count // across)
    square = np.full((down * across, rows + 1, columns + 1), np.nan)
    square[:count, :-1, :-1] = values
    square = square.reshape(down, across, rows + 1, columns + 1).swapaxes(1, 2)
    return square.reshape(down * (rows + 1), across * (columns + 1))[:-1, :-1]


def marginals(rows: Mapping[str, ArrayLike], *, x: str, y: str) -> Figure:
    """Probabilities (sites, times) as images under one another, one a name, on one scale from 0 to 1."""
    figure, grid = _figure(len(rows), 1, (8.6, 1.35 * len(rows) + 0.6))
    image = None
    for axes, (name, values) in zip(grid, rows.items()):
        image = axes.imshow(np.asarray(values), cmap=_PROBABILITY, vmin=0, vmax=1, aspect="auto", interpolation="none")
        _bare(axes, name)
        axes.set_ylabel(y, color=INK, fontsize=9)
    grid[-1].set_xlabel(x, color=INK, fontsize=9)
    bar = figure.colorbar(image, ax=grid, fraction=0.025, pad=0.015)  # pyright: ignore[reportArgumentType]
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    bar.ax.tick_params(colors=INK, labelsize=8.5, length=0)
    return figure


def spectrogram(features: ArrayLike, spans: Sequence[tuple[float, float, str]], *, hop: float, y: str, title: str) -> Figure:
    """Features (frames, size), one frame each `hop` seconds, as an image; above it, what is said from when to when."""
    values = np.asarray(features, dtype=float)
    low, high = np.quantile(values, (0.02, 0.98)) if values.size else (0.0, 1.0)
    figure, (axes,) = _figure(1, 1, (8.6, 2.7))
    extent = (0, len(values) * hop, 0, values.shape[1])
    axes.imshow(values.T, cmap=_PROBABILITY, vmin=low, vmax=high, aspect="auto", origin="lower", extent=extent,
                interpolation="none")  # fmt: skip
    _style(axes, "seconds", y, title)
    axes.set_title(title, color=INK, fontsize=9.5, loc="left", pad=26)
    axes.grid(visible=False)
    before, raised = -math.inf, False
    for begin, end, name in spans:
        middle = (begin + end) / 2
        raised = middle - before < 0.025 * extent[1] and not raised
        axes.axvline(begin, color=SERIES[1], linewidth=1)
        height = values.shape[1] * (1.1 if raised else 1.02)
        axes.text(middle, height, name, ha="center", va="bottom", color=INK, fontsize=7.5)
        before = middle
    return figure


def densities(values: Mapping[str, ArrayLike], limits: tuple[float, float], *, columns: int = 3) -> Figure:
    """Densities in the plane, values (n, n) at a grid with the first coordinate along the first index, on one scale."""
    figure, grid = _figure(-(-len(values) // columns), min(columns, len(values)), _squares(len(values), columns))
    arrays = {name: np.asarray(value, dtype=float) for name, value in values.items()}
    top = max((float(array.max()) for array in arrays.values()), default=1.0)
    for axes, (name, array) in zip(grid, arrays.items()):
        extent = (*limits, *limits)
        axes.imshow(array.T, cmap=_PROBABILITY, vmin=0, vmax=top, origin="lower", extent=extent, interpolation="bilinear")
        _bare(axes, name)
    _finish(figure, grid[len(values) :], {})
    return figure


def clouds(points: Mapping[str, ArrayLike], limits: tuple[float, float], *, columns: int = 3) -> Figure:
    """Points (n, 2) in the plane, a name a square."""
    figure, grid = _figure(-(-len(points) // columns), min(columns, len(points)), _squares(len(points), columns))
    for axes, (name, places) in zip(grid, points.items()):
        x, y = np.asarray(places, dtype=float).T
        axes.scatter(x, y, s=1.5, color=SERIES[0], alpha=0.5, linewidths=0, rasterized=True)
        axes.set(xlim=limits, ylim=limits, aspect="equal")
        axes.set_facecolor("none")
        _bare(axes, name)
    _finish(figure, grid[len(points) :], {})
    return figure


def confusion(counts: ArrayLike, names: Sequence[str], *, x: str, y: str) -> Figure:
    """Counts (n, n) as a square of shares of each row, in per cent: row i, column j is how often i was taken for j."""
    counts = np.asarray(counts, dtype=float)
    shares = 100 * counts / np.maximum(counts.sum(1, keepdims=True), 1)
    side = min(8.6, 1.6 + 0.42 * len(names))
    figure, (axes,) = _figure(1, 1, (side, side))
    axes.imshow(shares / 100, cmap=_PROBABILITY, vmin=0, vmax=1, interpolation="none")
    for row, column in zip(*np.nonzero(shares >= 0.5)):
        colour = "#ffffff" if shares[row, column] > 40 else "#101820"  # on the scale's own colours, in light and dark
        axes.text(column, row, f"{shares[row, column]:.0f}", ha="center", va="center", fontsize=7.5, color=colour)
    _bare(axes, "")
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=8.5, color=INK)
    axes.set_yticks(range(len(names)), names, fontsize=8.5, color=INK)
    axes.tick_params(length=0)
    axes.set_xlabel(x, color=INK, fontsize=10)
    axes.set_ylabel(y, color=INK, fontsize=10)
    return figure


def _squares(count: int, columns: int) -> tuple[float, float]:
    side = 8.6 / min(columns, count)
    return 8.6, (side + 0.3) * -(-count // columns)


def _points(axes: Axes, line: Line, index: int, dash: Any) -> Any:
    x, y = np.asarray(line.x, dtype=float), np.asarray(line.y, dtype=float)
    error = np.zeros_like(y) if line.error is None else np.asarray(line.error, dtype=float)
    kept = np.isfinite(y)
    return axes.errorbar(
        x[kept],
        y[kept],
        yerr=np.nan_to_num(error[kept], posinf=0),
        color=SERIES[index % len(SERIES)],
        marker=_MARKERS[index % len(_MARKERS)],
        markersize=5,
        markeredgecolor=PAPER,
        markeredgewidth=0.7,
        linestyle=dash,
        linewidth=1.5,
        elinewidth=1.2,
        capsize=2.5,
    )


def _figure(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=size, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)  # pyright: ignore
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def _style(axes: Axes, x: str, y: str, title: str) -> None:
    axes.set_facecolor("none")
    axes.set_xlabel(x, color=INK, fontsize=10)
    axes.set_ylabel(y, color=INK, fontsize=10)
    axes.set_title(title, color=INK, fontsize=10.5, loc="left", fontweight="bold")
    axes.tick_params(colors=INK, labelsize=9, length=3, which="both")
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)
        spine.set_linewidth(0.8)


def _scales(axes: Axes, log_x: bool, log_y: bool) -> None:
    if log_x:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
    if log_y:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        if math.floor(math.log10(high)) > math.ceil(math.log10(low)):  # two powers of ten are shown: enough labels
            axes.yaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(colors=INK, labelsize=9, which="both")


def _bare(axes: Axes, title: str) -> None:
    axes.set_title(title, color=INK, fontsize=9.5, loc="left")
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)


def _finish(figure: Figure, empty: Sequence[Axes], handles: Mapping[str, Any]) -> None:
    for axes in empty:
        axes.set_visible(False)
    if len(handles) > 1:
        figure.legend(
            list(handles.values()),
            list(handles),
            loc="outside upper left",
            ncols=min(len(handles), 4),
            frameon=False,
            fontsize=9.5,
            labelcolor=INK,
            handlelength=2.6,
        )
