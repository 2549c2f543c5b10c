"""Specialises a function to values that never change, by writing out the calls it makes.

A live step is a dozen small pure functions, and in plain Python calling them costs more than
what they compute. `specialise` takes the readable function, evaluates what is constant, puts the
bodies of the small functions in place of their calls and compiles the result. The meaning is
that of the original, which also runs where no source is at hand.

A function is written out if it ends in its only `return` and its call is a whole statement:
`x = f(…)`, `x, y = f(…)`, `return f(…)` or `f(…)`; `if constant:` keeps one branch.
"""

import ast
import inspect
import linecache
import textwrap
from itertools import count
from types import FunctionType, MethodType
from typing import Any

__all__ = ["specialise"]

_serial = count(1)


def specialise(
    function: FunctionType, known: dict[str, Any], kinds: dict[str, type] | None = None
) -> FunctionType:
    """`function` with some names taken as constants.

    `known` maps names such as "self._law" to their values; `kinds` maps the name of a local
    variable to its class where that never changes, so that its methods can be written out.
    Without source at hand the function comes back as it is.
    """
    source = _source(function)
    if source is None:
        return function
    writer = _Writer(known, kinds or {})
    body = _statements(source)
    own: dict[str, ast.expr] = {
        name: ast.Name(name) for name in _stored(body) | _parameters(source)
    }
    source.body = writer.block(writer.rename(body, function.__globals__, own))
    source.decorator_list = []
    source.returns = None
    for argument in source.args.args:
        argument.annotation = None
    text = ast.unparse(ast.fix_missing_locations(source))
    name = f"<setpoint {function.__qualname__} {next(_serial)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = dict(writer.constants)
    exec(compile(text, name, "exec"), namespace)
    made: FunctionType = namespace[function.__name__]
    made.__defaults__ = function.__defaults__
    made.__doc__ = function.__doc__
    made.__qualname__ = function.__qualname__
    return made


def _source(function: Any) -> ast.FunctionDef | None:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None
    found = tree.body[0]
    return found if isinstance(found, ast.FunctionDef) else None


def _statements(function: ast.FunctionDef) -> list[ast.stmt]:
    """The body without its docstring."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return function.body[1:] if documented else function.body


def _writable(value: Any) -> bool:
    if type(value) is tuple:
        return all(_writable(each) for each in value)
    return value is None or type(value) in (bool, int, float, str)


def _parameters(function: ast.FunctionDef) -> set[str]:
    return {argument.arg for argument in function.args.args}


def _stored(body: list[ast.stmt]) -> set[str]:
    """The names a body assigns."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


_ODD = (ast.FunctionDef, ast.Lambda, ast.Yield, ast.Global, ast.Nonlocal, ast.comprehension)


def _plain(function: ast.FunctionDef) -> bool:
    """Whether a body can stand in the place of its call."""
    body = _statements(function)
    nodes = [node for statement in body for node in ast.walk(statement)]
    return (
        bool(body)
        and isinstance(body[-1], ast.Return)
        and body[-1].value is not None
        and sum(isinstance(node, ast.Return) for node in nodes) == 1
        and not any(isinstance(node, _ODD) for node in nodes)
        and not (function.args.vararg or function.args.kwarg or function.args.kwonlyargs)
    )


class _Writer:
    """Writes out calls, and collects the constants the text refers to."""

    def __init__(self, known: dict[str, Any], kinds: dict[str, type]) -> None:
        self.known = known
        self.kinds = kinds
        self.constants: dict[str, Any] = {}
        self._fresh = count(1)

    def constant(self, value: Any) -> ast.expr:
        """The value itself where it can be written down, else a name under which it is found."""
        if _writable(value):
            return ast.Constant(value)
        for name, held in self.constants.items():
            if held is value:
                return ast.Name(name, ast.Load())
        name = f"k{len(self.constants)}_{getattr(value, '__name__', type(value).__name__)}"
        self.constants[name] = value
        return ast.Name(name, ast.Load())

    def rename(
        self, body: list[ast.stmt], found: dict[str, Any], names: dict[str, ast.expr]
    ) -> list[ast.stmt]:
        """The text of one function in the names of the function it becomes part of."""
        return [_Renamer(self, found, names).visit(statement) for statement in body]

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """The statements with every known call written out."""
        return [new for old in statements for new in self._statement(old)]

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.If):
            node.test = _decided(node.test)
            if isinstance(node.test, ast.Constant):
                return self.block(node.body if node.test.value else node.orelse)
        if isinstance(node, ast.Pass) or (isinstance(node, ast.AnnAssign) and not node.value):
            return []
        if isinstance(node, ast.Assign | ast.Return | ast.Expr):
            return self._written(node) or [node]
        for field in ("body", "orelse", "finalbody"):
            if getattr(node, field, None):
                setattr(node, field, self.block(getattr(node, field)) or [ast.Pass()])
        for handler in getattr(node, "handlers", []):
            handler.body = self.block(handler.body)
        return [node]

    def _written(self, node: ast.Assign | ast.Return | ast.Expr) -> list[ast.stmt] | None:
        """The body of the function that `node` calls, ending in what `node` does."""
        call = node.value
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
            return None
        function: Any = self.constants.get(call.func.id)
        given = call.args
        if isinstance(function, MethodType):
            given = [self.constant(function.__self__), *given]
            function = function.__func__
        source = _source(function) if isinstance(function, FunctionType) else None
        if source is None or call.keywords or not _plain(source):
            return None
        parameters = [argument.arg for argument in source.args.args]
        if len(parameters) != len(given):
            return None
        body = _statements(source)
        stored = _stored(body)
        mark = next(self._fresh)
        names: dict[str, ast.expr] = {name: ast.Name(f"{name}_{mark}") for name in stored}
        out: list[ast.stmt] = []
        for parameter, value in zip(parameters, given, strict=True):
            if parameter not in stored and isinstance(value, ast.Name | ast.Constant):
                names[parameter] = value
            else:
                names[parameter] = ast.Name(f"{parameter}_{mark}")
                out.append(ast.Assign([ast.Name(f"{parameter}_{mark}", ast.Store())], value))
        body = _unpack(body, names)
        *first, last = self.rename(body, function.__globals__, names)
        node.value = last.value  # type: ignore[attr-defined]
        return [*out, *self.block([*first, node])]


def _decided(test: ast.expr) -> ast.expr:
    """`constant and x` without its constant."""
    if not (isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)):
        return test
    open_ = [part for part in test.values if not isinstance(part, ast.Constant)]
    if not all(part.value for part in test.values if isinstance(part, ast.Constant)):
        return ast.Constant(False)
    return ast.BoolOp(test.op, open_) if len(open_) > 1 else open_[0]


def _unpack(body: list[ast.stmt], names: dict[str, ast.expr]) -> list[ast.stmt]:
    """The body without `a, b = params` where params is constant: a and b are, too."""
    kept = []
    for statement in body:
        match statement:
            case ast.Assign([ast.Tuple(targets)], ast.Name(source)) if isinstance(
                names.get(source), ast.Constant
            ):
                values = names[source].value  # type: ignore[attr-defined]
                for target, value in zip(targets, values, strict=True):
                    names[target.id] = ast.Constant(value)  # type: ignore[attr-defined]
            case _:
                kept.append(statement)
    return kept


class _Renamer(ast.NodeTransformer):
    """Gives local names their new ones, and evaluates what is constant."""

    def __init__(self, writer: _Writer, found: dict[str, Any], names: dict[str, ast.expr]) -> None:
        self.writer = writer
        self.found = found
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        new = self.names.get(node.id)
        if isinstance(new, ast.Name):
            return ast.Name(new.id, node.ctx)
        if new is not None:
            return new
        if isinstance(node.ctx, ast.Load) and node.id in self.found:
            return self.writer.constant(self.found[node.id])
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name):
            dotted = f"{node.value.id}.{node.attr}"
            if dotted in self.writer.known:
                return self.writer.constant(self.writer.known[dotted])
            kind = self.writer.kinds.get(node.value.id)
            if kind is not None and isinstance(getattr(kind, node.attr, None), FunctionType):
                return node
        node.value = self.visit(node.value)
        held = node.value.id if isinstance(node.value, ast.Name) else ""
        if held in self.writer.constants and isinstance(node.ctx, ast.Load):
            return self.writer.constant(getattr(self.writer.constants[held], node.attr))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        held, index = node.value, node.slice
        if isinstance(held, ast.Constant) and isinstance(index, ast.Constant):
            return self.writer.constant(held.value[index.value])  # type: ignore[index]
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        func = node.func
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
            method = getattr(self.writer.kinds.get(func.value.id), func.attr, None)
            if isinstance(method, FunctionType):
                node.func = self.writer.constant(method)
                node.args = [self.visit(each) for each in [func.value, *node.args]]
                return node
        self.generic_visit(node)
        return node
