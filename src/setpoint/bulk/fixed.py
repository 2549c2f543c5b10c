"""Numbers of an array as a tuple or a table of fixed size, for compiled code.

A module of its own: closures that capture these functions are kept on disk under their names.
"""

from numba.extending import register_jitable
from numba.np.unsafe.ndarray import to_fixed_tuple

__all__ = ["tabled", "taken"]


@register_jitable  # type: ignore[untyped-decorator, unused-ignore]
def taken(z, s, at, size):  # type: ignore[no-untyped-def]
    """`size` numbers of row s, from place `at`, as a tuple."""
    return to_fixed_tuple(z[s, at : at + size], size)  # type: ignore[call-arg, unused-ignore]


@register_jitable  # type: ignore[untyped-decorator, unused-ignore]
def tabled(z, s, at, rows, width):  # type: ignore[no-untyped-def]
    """Numbers of row s, from place `at`, as a table that can be written to."""
    return z[s, at : at + rows * width].reshape((rows, width))
