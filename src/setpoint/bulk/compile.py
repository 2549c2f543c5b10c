"""From a bulk loop and a layout to a function: machine code with numba, plain Python without.

The loops of `bulk.loops` and the recursion they run are ordinary functions. Here their text is
specialised to one layout (`ast`): what `rules` and `places` say is worked out, loops over them are
unrolled, tests on them decided. numba compiles the rest and keeps the machine code in a cache
folder, beside the text it was made from, under a name that changes whenever a rule does.
"""

import ast
import hashlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from math import inf, nan
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, cast

import numpy as np

from setpoint import combine, losses, recursion, stretches
from setpoint.bulk import loops, moves
from setpoint.bulk.vectors import Layout, functions
from setpoint.metrics import tally
from setpoint.sets import corrected, correction, intervals
from setpoint.steps import control, experts, paper, shrinking

__all__ = ["cache_folder", "compiled", "kernel", "specialised"]

_RULES = (
    *(combine, losses, corrected, correction, intervals, stretches, tally),
    *(control, experts, paper, shrinking),
)
"""The modules whose functions compiled loops may call."""

_SHARED = (
    *(recursion.aim, recursion.heed, recursion.show, recursion.judge, recursion.learn),
    recursion.turn,
    *(moves.numbers_at, moves.position_at, moves.put_position, moves.prepared, moves.shown),
    *(moves.known, moves.taught, loops.note, loops.risky, loops.beyond),
    *(moves.due, moves.heeded, moves.keep, moves.answered),
)
"""What loops call, specialised with them."""


def compiled() -> bool:
    """Whether numba is at hand, and not turned off by SETPOINT_PLAIN=1."""
    return os.environ.get("SETPOINT_PLAIN", "") != "1" and (
        importlib.util.find_spec("numba") is not None
    )


def kernel(
    layout: Layout, name: str, *, narrow: bool = False, late: bool = False
) -> Callable[..., None]:
    """A loop for controllers of this layout: machine code with numba, else plain Python.

    `narrow` says that the data, and so the ends that are shown, are float32; `late` that labels
    are not always known before the next row.
    """
    return _kernel(layout, name, narrow, late, compiled())


@lru_cache(maxsize=256)
def _kernel(layout: Layout, name: str, narrow: bool, late: bool, fast: bool) -> Callable[..., None]:
    known = {"rules": layout.rules, "places": layout, "narrow": narrow, "late": late}
    loop: FunctionType = getattr(loops, name)
    text, rules = specialised((*_SHARED, loop), known)
    return _compile(layout, text, rules, name) if fast else _quiet(_plain(text, rules)[name])


# Specialising.


def specialised(
    wanted: Iterable[Callable[..., Any]], known: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """The text of functions with what is known worked out, and the rules it calls by name."""
    rules: dict[str, Any] = {}
    body: list[ast.stmt] = []
    for function in wanted:
        tree = ast.parse(inspect.getsource(function)).body[0]
        assert isinstance(tree, ast.FunctionDef)
        body.append(_Specialiser(known, rules).function(tree))
    module = ast.fix_missing_locations(ast.Module(body, []))
    return ast.unparse(module), rules


class _Unknown(Exception):
    """An expression that is not known before the loop runs."""


class _Specialiser(ast.NodeTransformer):
    """Works out what is known of one function.

    `known` maps parameters to their values, which are then no parameters any more. Functions found
    in them are called by a name, which `rules` remembers.
    """

    def __init__(
        self, known: Mapping[str, Any], rules: dict[str, Any], roots: frozenset[str] | None = None
    ) -> None:
        self.known, self.rules = known, rules
        self.roots = frozenset(known) if roots is None else roots

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        arguments = [a for a in node.args.args if a.arg not in self.known]
        for argument in arguments:
            argument.annotation = None
        body = [s for s in node.body if not _is_docstring(s)]
        empty = ast.arguments([], arguments, None, [], [], None, [])
        return ast.FunctionDef(node.name, empty, self.block(body), [], None, None)

    def block(self, statements: Iterable[ast.stmt]) -> list[ast.stmt]:
        """Statements one after the other, up to one that ends the block."""
        done: list[ast.stmt] = []
        for statement in statements:
            visited = self.visit(statement)
            done += visited if isinstance(visited, list) else [] if visited is None else [visited]
            if done and isinstance(done[-1], ast.Return | ast.Continue):
                break
        return done

    def value(self, node: ast.expr) -> Any:
        """What an expression is, if everything in it is known."""
        match node:
            case ast.Constant(value):
                return value
            case ast.Name(name) if name in self.known:
                return self.known[name]
            case ast.Attribute(inner, name):
                return getattr(self.value(inner), name)
            case ast.Subscript(inner, index):
                return self.value(inner)[self.value(index)]
            case ast.Compare(left, [ast.Is()], [right]):
                return self.value(left) is self.value(right)
            case ast.Compare(left, [ast.IsNot()], [right]):
                return self.value(left) is not self.value(right)
            case ast.Call(ast.Name("len"), [inner]):
                return len(self.value(inner))
            case ast.Call(ast.Name("range"), [inner]):
                return range(self.value(inner))
        raise _Unknown

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and not isinstance(node, ast.Constant):
            try:
                value = self.value(node)
            except _Unknown:
                return super().visit(node)
            if isinstance(value, FunctionType):
                return ast.Name(self._named(value), ast.Load())
            if value is None or isinstance(value, bool | int | float | str):
                return ast.Constant(value)
        return super().visit(node)

    def _named(self, rule: FunctionType) -> str:
        """The name a rule is called by."""
        for name, other in self.rules.items():
            if other is rule:
                return name
        word = rule.__name__ if rule.__name__.isidentifier() else "of_a_user"  # a lambda has none
        name = "_".join(("rule", str(len(self.rules)), word))
        self.rules[name] = rule
        return name

    def visit_Assert(self, node: ast.Assert) -> None:
        return None

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        assert node.value is not None
        return self.visit(ast.Assign([node.target], node.value))

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "tuple":
            (inner,) = node.args
            if isinstance(inner, ast.ListComp):
                return ast.Tuple(self._unrolled(inner), ast.Load())
        roots = [a for a in node.args if isinstance(a, ast.Name) and a.id in self.roots]
        node.args = [argument for argument in node.args if argument not in roots]
        return self.generic_visit(node)

    def _unrolled(self, node: ast.ListComp) -> list[ast.expr]:
        (loop,) = node.generators
        assert isinstance(loop.target, ast.Name)
        return [self._with(loop.target.id, value, node.elt) for value in self.value(loop.iter)]

    def _with(self, name: str, value: Any, node: ast.AST) -> Any:
        """A copy of a node in which one name is known."""
        return self._knowing(name, value).visit(_copy(node))

    def _knowing(self, name: str, value: Any) -> "_Specialiser":
        return _Specialiser({**self.known, name: value}, self.rules, self.roots)

    def visit_For(self, node: ast.For) -> Any:
        try:
            values = self.value(node.iter)
        except _Unknown:
            node.iter, node.body = self.visit(node.iter), self.block(node.body)
            return node
        assert isinstance(node.target, ast.Name)
        return [
            statement
            for value in values
            for statement in self._knowing(node.target.id, value).block(_copy(node.body))
        ]

    def visit_If(self, node: ast.If) -> Any:
        try:
            return self.block(node.body if self.value(node.test) else node.orelse)
        except _Unknown:
            test = self.visit(node.test)
            body = self.block(node.body) or [ast.Pass()]
            return ast.If(test, body, self.block(node.orelse))

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        try:
            return self.visit(node.body if self.value(node.test) else node.orelse)
        except _Unknown:
            return self.generic_visit(node)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _copy(node: Any) -> Any:
    """A copy of a node, whose visitor may change it."""
    if isinstance(node, ast.AST):
        return type(node)(**{name: _copy(value) for name, value in ast.iter_fields(node)})
    return [_copy(inner) for inner in node] if isinstance(node, list) else node


# Running.


def _namespace(rules: Mapping[str, Any], float64: type) -> dict[str, Any]:
    """What the text of a loop may name."""
    return {
        "inf": inf,
        "nan": nan,
        "float32": np.float32,
        "float64": float64,
        "TORN": recursion.TORN,
        "Numbers": recursion.Numbers,
        "Position": recursion.Position,
        "NOTHING": tally.NOTHING,
        "count": tally.count,
        "measure": tally.measure,
        "restarted": tally.restarted,
        **rules,
    }


def _plain(text: str, rules: Mapping[str, Any], float64: type = float) -> dict[str, Any]:
    """The functions of a text, in Python.

    There float64 is Python's own float, which is faster than numpy's; compiled it must be
    numpy's, because a float of a float32 is a float32 to numba.
    """
    namespace = _namespace(rules, float64)
    exec(compile(text, "<setpoint loop>", "exec"), namespace)
    return namespace


def _quiet(loop: Callable[..., None]) -> Callable[..., None]:
    """The loop without warnings, on Python's own numbers, which are faster than numpy's."""

    def run(*arguments: Any) -> None:
        with np.errstate(all="ignore"):
            loop(*map(_floats, arguments))

    return run


class _Table:
    """An array of several dimensions whose entries are Python's own numbers."""

    def __init__(self, array: np.ndarray) -> None:
        self.shape = array.shape
        self._rows: list[Any] = [_floats(row) for row in array]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, tuple):
            row, *rest = place
            return self._rows[row][rest[0] if len(rest) == 1 else tuple(rest)]
        return self._rows[place]

    def __setitem__(self, place: tuple[Any, ...], value: float) -> None:
        row, *rest = place
        self._rows[row][rest[0] if len(rest) == 1 else tuple(rest)] = value


def _floats(argument: Any) -> Any:
    """The argument of a loop, with Python's own numbers instead of numpy's if it is an array."""
    if isinstance(argument, tuple):
        return tuple(map(_floats, argument))
    if not isinstance(argument, np.ndarray):
        return argument
    return _Table(argument) if argument.ndim > 1 else memoryview(argument)  # type: ignore[arg-type]


def _compile(layout: Layout, text: str, rules: Mapping[str, Any], name: str) -> Callable[..., None]:
    import numba

    _register()
    module = _module(text, rules)
    namespace = _plain(text, rules, np.float64) if module is None else vars(module)
    # Only compiled code calls them: without wrappers they take a third less time to compile.
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    inline: Any = numba.njit(forceinline=True, **options)
    for function in _SHARED:
        namespace[function.__name__] = inline(namespace[function.__name__])
    loop = namespace[name]
    if module is not None:
        try:
            return cast(Callable[..., None], numba.njit(cache=True)(loop))
        except RuntimeError:  # the text can be read there, but no machine code written beside it
            return cast(Callable[..., None], numba.njit(loop))
    for rule in functions(layout.rules):
        numba.extending.register_jitable(rule)
    fast = numba.njit(loop)
    slow = _quiet(_plain(text, rules)[name])

    def run(*arguments: Any) -> None:
        nonlocal fast
        try:
            fast(*arguments)
        except numba.core.errors.NumbaError:  # a user's rule that cannot be compiled
            fast = slow
            fast(*arguments)

    return run


@lru_cache(maxsize=1)
def _register() -> None:
    """Lets compiled code call the library's rules."""
    from numba.extending import register_jitable

    for module in _RULES:
        for value in vars(module).values():
            if isinstance(value, FunctionType) and value.__module__ == module.__name__:
                register_jitable(value)


def _module(text: str, rules: Mapping[str, Any]) -> ModuleType | None:
    """The text as a module in the cache folder, where numba can keep its machine code beside it.

    None where a rule is a user's own, the folder cannot be written, or the source of the rules,
    by which machine code is told from that of other versions, is not at hand.
    """
    if not all(_is_known(rule) for rule in rules.values()):
        return None
    try:
        names = sorted((name, rule.__module__, rule.__name__) for name, rule in rules.items())
        digest = hashlib.sha256(repr((_fingerprint(), names, text)).encode()).hexdigest()[:24]
        path = cache_folder() / f"kernel_{digest}.py"
        if not path.exists() or path.read_bytes() != text.encode():
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_suffix(f".{os.urandom(6).hex()}")
            beside.write_bytes(text.encode())
            os.replace(beside, path)
    except (OSError, RuntimeError):  # RuntimeError: there is no home folder
        return None
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module  # where numba looks for it
    vars(module).update(_namespace(rules, np.float64))
    exec(compile(text, path, "exec"), vars(module))
    return module


def _is_known(rule: Any) -> bool:
    """Whether a rule is a function of the library's own modules."""
    return any(vars(module).get(rule.__name__) is rule for module in _RULES)


@lru_cache(maxsize=1)
def _fingerprint() -> str:
    """Changes whenever a rule does: machine code is kept by the text of the loop alone."""
    return "".join(inspect.getsource(module) for module in _RULES)


def cache_folder() -> Path:
    """Where compiled loops are kept: SETPOINT_CACHE, or the user's cache folder."""
    chosen = os.environ.get("SETPOINT_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "setpoint" / "kernels"
