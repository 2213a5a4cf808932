"""Run directories, plots and the HTML report."""

from . import plots
from .directory import RunDirectory, RunDirectoryError, next_directory
from .html import render
from .page import Page, Picture, Section, Table, Text, number
from .record import surroundings

__all__ = [
    "Page",
    "Picture",
    "RunDirectory",
    "RunDirectoryError",
    "Section",
    "Table",
    "Text",
    "next_directory",
    "number",
    "plots",
    "render",
    "surroundings",
]
