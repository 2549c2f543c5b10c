"""What notebooks show of results: text and small tables, as HTML."""

from collections.abc import Iterable
from html import escape

__all__ = ["preformatted", "table"]


def preformatted(text: object) -> str:
    """A text as it is printed.

    >>> preformatted("a < b")
    '<pre>a &lt; b</pre>'
    """
    return f"<pre>{escape(str(text))}</pre>"


def table(lines: Iterable[tuple[str, object]]) -> str:
    """Names and what there is to say of them."""
    left = 'style="text-align:left"'
    rows = (
        f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(str(text))}</td></tr>"
        for name, text in lines
    )
    return f"<table>{''.join(rows)}</table>"
