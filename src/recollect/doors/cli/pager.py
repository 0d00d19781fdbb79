"""Shows texts in the pager of a terminal that are too long for it."""

from __future__ import annotations

from typing import Final

_LEAST_ROWS: Final = 5


def needs_pager(text: str, rows: int) -> bool:
    """Say whether a text does not fit on a terminal of so many rows; a terminal with too few rows gets no pager."""
    return rows >= _LEAST_ROWS and text.count("\n") >= rows


def page(text: str) -> None:
    """Show a text in the pager, with its colours where the pager can show them."""
    import click

    click.echo_via_pager(text)
