"""What people are shown of results: numbers as they write them, text and tables as HTML."""

from collections.abc import Iterable
from html import escape
from typing import Any


def amount(value: float) -> str:
    """A number as people write it: four digits that count, all those before the point.

    >>> [amount(value) for value in (17412.6, -1234567.0, 12.3456, 0.0034072, 3e-7, 1e22)]
    ['17,413', '−1,234,567', '12.35', '0.003407', '3e−07', '1e+22']
    """
    text = f"{value:,.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:.4g}"
    return text.replace("-", "−")


def percent(share: float, digits: int = 2) -> str:
    """A share in percent, as in 89.98 %."""
    return f"{100.0 * share:.{digits}f} %"


def named(key: Any) -> str:
    """What a series is called: its id, with its horizon if it has one.

    >>> named(("north", 3)), named("north"), named(None)
    ('north/3', 'north', '')
    """
    parts = key if isinstance(key, tuple | list) else () if key is None else (key,)
    return "/".join(map(str, parts))


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
