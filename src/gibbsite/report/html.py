"""A page as one HTML file that needs nothing else: no scripts, no links outward, pictures inline, light and dark."""

import hashlib
import io
import re
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.figure import Figure

from .page import MINUS, MISSING, Block, Page, Picture, Table
from .plots import GRID, INK, PAPER, SERIES

_VARIABLES = {INK: "currentColor", GRID: "var(--grid)", PAPER: "var(--paper)"} | {
    colour: f"var(--series-{index})" for index, colour in enumerate(SERIES)
}


def render(page: Page, record: Mapping[str, Any], *, interrupted: bool = False) -> str:
    """The page with what was run (`record` is config.json) as HTML; all text is escaped."""
    environment = Environment(
        loader=PackageLoader("gibbsite", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["picture"] = lambda block: isinstance(block, Picture)
    environment.tests["table"] = lambda block: isinstance(block, Table)
    environment.filters["svg"] = _picture
    environment.filters["numeric"] = _numeric
    return environment.get_template("page.html.j2").render(page=page, record=record, interrupted=interrupted)


def inline_svg(figure: Figure, alt: str) -> str:
    """The figure as an <svg> element whose ink and colours follow the page's, light or dark.

    Text stays text. Ids get a prefix of the picture's own, because several pictures share one document.
    """
    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "gibbsite"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
    prefix = "p" + hashlib.sha256(svg.encode()).hexdigest()[:8]
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'(url\(|href=")#', rf"\1#{prefix}-", svg)
    for colour, variable in _VARIABLES.items():
        svg = re.sub(colour + r"\b", variable, svg, flags=re.IGNORECASE)
    # matplotlib leaves the default ink out: text without a fill is black
    svg = re.sub(r'<text style="(?![^"]*fill)', '<text style="fill: currentColor; ', svg)
    width, height = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups()  # pyright: ignore[reportOptionalMemberAccess]
    opening = (
        f'<svg role="img" aria-label="{Markup.escape(alt)}" viewBox="0 0 {width} {height}" style="max-width: {width}pt">'
    )
    return opening + svg[svg.index(">") + 1 :].rstrip()


def _picture(block: Block) -> Markup:
    assert isinstance(block, Picture)
    return Markup(inline_svg(block.figure, block.alt))


def _numeric(cell: str) -> bool:
    return cell.removeprefix(MINUS)[:1].isdigit() or cell == MISSING
