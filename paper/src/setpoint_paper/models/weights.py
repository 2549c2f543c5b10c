"""Weights in files of others: found by name whatever their prefix, or what does not fit."""

import os
from collections.abc import Mapping
from typing import Any

from torch import Tensor

__all__ = ["matched", "states", "unmatched"]


def states(content: Any, key: str | None) -> list[dict[str, Tensor]]:
    """Every table of named tensors in a file, at most two steps deep."""
    if not isinstance(content, Mapping):
        return []
    if key is not None:
        content = {key: content.get(key)}
    found = []
    for each in (content, *content.values()):
        if isinstance(each, Mapping):
            tensors = {
                name: value
                for name, value in each.items()
                if isinstance(name, str) and isinstance(value, Tensor)
            }
            found += [tensors] if tensors else []
    return found


def matched(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> dict[str, Tensor] | None:
    """The tensors under the names the module has for them, if some prefix makes all fit."""
    needed = [name for name in wanted if not name.endswith("num_batches_tracked")]
    if not needed:
        return None
    first = needed[0]
    ways: list[tuple[str, str]] = [
        (name.removesuffix(first), "") for name in found if name.endswith(first)
    ]
    parts = first.split(".")
    ways += [("", ".".join(parts[:count]) + ".") for count in range(1, len(parts))]
    ways += [("module.", added) for _, added in ways if added]
    for extra, lacking in ways:
        names = {name: extra + name.removeprefix(lacking) for name in wanted}
        if all(
            names[name] in found and found[names[name]].shape == wanted[name].shape
            for name in needed
        ):
            # Counts of batches are absent in old files, and nothing but momentum=None reads them.
            return {name: found.get(names[name], wanted[name]) for name in wanted}
    return None


def unmatched(
    path: str | os.PathLike[str], content: Any, key: str | None, wanted: dict[str, Tensor]
) -> str:
    """What does not fit, in a sentence."""
    found = states(content, key)
    if not found:
        where = "" if key is None else f" at {key!r}"
        held = list(content) if isinstance(content, Mapping) else type(content).__name__
        return f"{os.fspath(path)} has no named tensors{where}, it holds {held}"
    _, names = max((len(each), list(each)) for each in found)
    return (
        f"{os.fspath(path)} does not fit the module, which has {len(wanted)} tensors "
        f"({', '.join(list(wanted)[:3])}, …) where the file has {len(names)} "
        f"({', '.join(names[:3])}, …) or other shapes"
    )
