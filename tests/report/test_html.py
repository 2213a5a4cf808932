"""The report as HTML: everything is in it, escaped, and nothing points outside."""

import re
from html.parser import HTMLParser

import pytest

from gibbsite.report import Page, Picture, Section, Table, Text, plots, render
from gibbsite.report.html import inline_svg
from gibbsite.report.record import surroundings

NASTY = "<script>alert('x')</script> & \"quoted\""


def record():
    config = {"recipe": "none", "preset": "smoke", "command": f"gibbsite run {NASTY}"}
    return config | {"parameters": {"thetas": [0.1, 0.2], "name": NASTY}} | surroundings("cpu")


def page(figure):
    blocks = [Text(NASTY), Table(("a", NASTY), [("1", NASTY)], NASTY), Picture(figure, NASTY, NASTY)]
    return Page(f"Title {NASTY}", NASTY, [Section(NASTY, blocks), Section("Again", [Picture(figure, "other", "other")])])


@pytest.fixture
def html():
    line = plots.Line([1, 2], [1.0, 2.0], [0.1, 0.1])
    return render(page(plots.panels([plots.Panel("x", "y", {"<b>": line, "other": line})])), record())


class Balance(HTMLParser):
    """Checks that tags close in order."""

    VOID = frozenset({"meta", "br", "img", "hr", "link", "input"})

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_it_is_well_formed(html):
    parser = Balance()
    parser.feed(html)
    assert parser.open == []


def test_all_text_is_escaped(html):
    assert "<script" not in html
    assert "alert(" in html  # it is shown, not dropped
    assert "<b>" not in html


def test_nothing_points_outside(html):
    assert not re.search(r"https?:|//[a-z]", html)
    assert "src=" not in html
    assert "url(#" in html or "href" not in html


def test_ids_are_not_shared_between_pictures_and_references_resolve():
    line = plots.Line([1, 2], [1.0, 2.0])
    pictures = [plots.panels([plots.Panel("x", label, {"a": line})]) for label in ("one", "two")]
    svgs = [inline_svg(figure, "alt") for figure in pictures]
    ids = [re.findall(r'\bid="([^"]+)"', svg) for svg in svgs]
    assert not set(ids[0]) & set(ids[1])
    for svg, own in zip(svgs, ids):
        assert {*re.findall(r'(?:url\(|href=")#([^)"]+)', svg)} <= set(own)


def test_pictures_follow_the_readers_colours():
    svg = inline_svg(plots.autocorrelation({"a": [1.0, 0.5, 0.2]}), "alt").lower()
    assert "var(--series-0)" in svg and "currentcolor" in svg and "var(--grid)" in svg
    assert plots.INK not in svg and plots.SERIES[0] not in svg


def test_both_schemes_define_every_variable(html):
    light, dark = html.split("prefers-color-scheme: dark")
    for name in {*re.findall(r"var\((--[\w-]+)\)", html)}:
        assert f"{name}:" in light and f"{name}:" in dark


def test_it_says_what_was_run(html):
    for words in ("gibbsite run", "recipe", "thetas", "0.1, 0.2", "hardware", "torch", "started"):
        assert words in html


def test_an_interrupted_run_says_so(html):
    figure = plots.autocorrelation({"a": [1.0, 0.5]})
    assert "interrupted" in render(page(figure), record(), interrupted=True)
    assert "was interrupted" not in html


def test_the_same_figure_gives_the_same_svg():
    one, two = (inline_svg(plots.autocorrelation({"a": [1.0, 0.5]}), "alt") for _ in range(2))
    assert one == two
