"""What a part can do, asked by the names it has."""

from typing import Any, _ProtocolMeta
from weakref import WeakKeyDictionary


class Capability(_ProtocolMeta):
    """The kind of protocols that say what a part can do.

    A part can do it if it has the names of the protocol. Each class is looked at once, without
    running any of its properties: Python itself takes longer than a hundred steps for it, and asks
    for values that a part may not have yet. A class in place of a part can do nothing.
    """

    def __instancecheck__(cls, part: Any) -> bool:  # noqa: N805
        if isinstance(part, type):
            return False
        known = _MISSING.setdefault(type(part), {})
        missing = known.get(cls)
        if missing is None:  # what the class itself does not have; an instance still may
            asked = {n for base in cls.__mro__ for n in _names(base) if n[0] != "_"} or {"__call__"}
            bases = type(part).__mro__
            missing = {n for n in asked if not any(n in vars(base) for base in bases)}
            known[cls] = missing
        return not missing or all(hasattr(part, name) for name in missing)


_MISSING: WeakKeyDictionary[type, dict[type, set[str]]] = WeakKeyDictionary()


def _names(base: type) -> set[str]:
    return {*vars(base), *vars(base).get("__annotations__", ())}
