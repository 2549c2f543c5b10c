"""Specialises a function to what never changes of its objects, by writing out the calls it makes.

A live step is a dozen small pure functions, and in plain Python calling them costs more than
what they compute. `specialise` takes the readable function, decides what is decided already, puts
the bodies of the small functions in place of their calls and compiles the result. The meaning is
that of the original, which also runs where no source is at hand.

A function is written out if it ends in its only `return` and its call is a whole statement:
`x = f(…)`, `x, y = f(…)`, `return f(…)` or `f(…)`; `if decided:` keeps one branch. Which functions
are called, and what is true or false, is decided once and remembered as facts; numbers are looked
up at every call, so that one text serves all objects of which the same facts hold.
"""

import ast
import inspect
import linecache
import re
from collections import deque
from collections.abc import Mapping
from functools import reduce
from itertools import count
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

__all__ = ["Specialised", "specialise"]

Path = tuple[str, ...]

_serial = count(1)
_written: deque[str] = deque()
_MOST_WRITTEN = 512


class Specialised(NamedTuple):
    """A function made to measure, and the facts it takes for granted: what is found where."""

    function: FunctionType
    facts: tuple[tuple[Path, Any], ...]

    def fits(self, known: Mapping[str, Any]) -> bool:
        """Whether the same facts hold of these objects."""
        return all(_fact(_found(known, path)) is fact for path, fact in self.facts)


def specialise(
    function: FunctionType, known: Mapping[str, Any], kinds: Mapping[str, type] | None = None
) -> Specialised:
    """`function` with some names taken as known objects.

    `known` maps names such as "self._law" to objects; `kinds` maps the name of a local variable to
    its class where that never changes, so that its methods can be written out. Without source at
    hand the function comes back as it is.
    """
    source = _source(function)
    if source is None:
        return Specialised(function, ())
    writer = _Writer(known, kinds or {})
    body = _statements(source)
    own: dict[str, ast.expr] = {name: ast.Name(name) for name in _stored(body) | _names(source)}
    source.body = writer.block(writer.rename(body, function.__globals__, own, known))
    while _Sweeper(source).swept:
        pass
    source.decorator_list = []
    source.returns = None
    for argument in source.args.args:
        argument.annotation = None
    text = ast.unparse(ast.fix_missing_locations(source))
    namespace: dict[str, Any] = dict(writer.constants)
    exec(compile(text, _remembered(text, function.__qualname__), "exec"), namespace)
    made: FunctionType = namespace[function.__name__]
    made.__defaults__ = function.__defaults__
    made.__doc__ = function.__doc__
    made.__qualname__ = function.__qualname__
    return Specialised(made, tuple(writer.facts.items()))


def _remembered(text: str, name: str) -> str:
    """A file name under which tracebacks find the text; the oldest texts are forgotten."""
    file = f"<setpoint {name} {next(_serial)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    _written.append(file)
    if len(_written) > _MOST_WRITTEN:
        linecache.cache.pop(_written.popleft(), None)
    return file


def _found(known: Mapping[str, Any], path: Path) -> Any:
    return reduce(getattr, path[1:], known[path[0]])


def _fact(value: Any) -> Any:
    """What is decided once: a function, a method's function, a word, true, false or nothing."""
    if isinstance(value, MethodType):
        return value.__func__
    return value if value is None or isinstance(value, bool | str | FunctionType | type) else ...


def _source(function: Any) -> ast.FunctionDef | None:
    """The text of a function that means by itself what it says: no closure, no decorator."""
    if function.__code__.co_freevars or hasattr(function, "__wrapped__"):
        return None
    try:
        text = inspect.getsource(function)
        # A method's text is indented; taking that away would change the strings within.
        tree = ast.parse(f"if True:\n{text}" if text[0].isspace() else text)
    except (OSError, TypeError, SyntaxError):
        return None
    found = tree.body[0]
    if isinstance(found, ast.If):
        found = found.body[0]
    if not isinstance(found, ast.FunctionDef) or found.name != function.__name__:
        return None
    kinds = [ast.unparse(decorator) for decorator in found.decorator_list]
    found.decorator_list = []
    return found if kinds in ([], ["staticmethod"]) and _same(tree, function) else None


def _same(tree: ast.Module, function: FunctionType) -> bool:
    """Whether a text is still that of the function: a file may change while its code runs."""
    compiled = compile(tree, "<text>", "exec")
    codes = [each for each in compiled.co_consts if isinstance(each, CodeType)]
    return any(_essence(code) == _essence(function.__code__) for code in codes)


def _essence(code: CodeType) -> tuple[Any, ...]:
    inner = [
        _essence(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts
    ]
    return code.co_code, inner, code.co_names, code.co_varnames


def _steady(function: FunctionType) -> bool:
    """Whether all a function refers to stays as it is: a user's may look up numbers that change."""
    if (function.__module__ or "").split(".")[0] == __name__.split(".")[0]:
        return True
    found = [function.__globals__.get(name) for name in function.__code__.co_names]
    fixed = FunctionType | BuiltinFunctionType | ModuleType | type
    return all(each is None or isinstance(each, fixed) for each in found)


def _statements(function: ast.FunctionDef) -> list[ast.stmt]:
    """The body without its docstring."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return function.body[1:] if documented else function.body


def _names(function: ast.FunctionDef) -> set[str]:
    """The names of a function's parameters."""
    return {argument.arg for argument in function.args.args}


def _stored(body: list[ast.stmt]) -> set[str]:
    """The names a body assigns."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


# What a body may not hold: scopes of its own, and statements that bind names which are not Names.
_ODD = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.comprehension, ast.Yield,
    ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.Match,
    ast.Delete,
)  # fmt: skip


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
        and not any(isinstance(node, ast.ExceptHandler) and node.name for node in nodes)
        and not (function.args.vararg or function.args.kwarg or function.args.kwonlyargs)
    )


def _path(node: ast.AST) -> Path | None:
    """Where the object is found that this text stands for, if that is known."""
    return getattr(node, "path", None)


def _with_path(node: ast.expr, path: Path | None) -> ast.expr:
    node.path = path  # type: ignore[attr-defined]
    return node


class _Writer:
    """Writes out calls, and collects the constants and the facts the text relies on."""

    def __init__(self, known: Mapping[str, Any], kinds: Mapping[str, type]) -> None:
        self.known = known
        self.kinds = kinds
        self.constants: dict[str, Any] = {}
        self.facts: dict[Path, Any] = {}
        self._within: list[Any] = []
        self._fresh = count(1)

    def constant(self, value: Any) -> ast.expr:
        """The value itself where it can be written down, else a name under which it is found."""
        if value is None or type(value) in (bool, int, float, str):
            return ast.Constant(value)
        for name, held in self.constants.items():
            if held is value:
                return ast.Name(name, ast.Load())
        word = re.sub(r"\W", "_", getattr(value, "__name__", type(value).__name__))
        name = f"k{len(self.constants)}_{word}"
        self.constants[name] = value
        return ast.Name(name, ast.Load())

    def rename(
        self,
        body: list[ast.stmt],
        found: Mapping[str, Any],
        names: Mapping[str, ast.expr],
        known: Mapping[str, Any],
    ) -> list[ast.stmt]:
        """The text of one function in the names of the function it becomes part of."""
        return [_Renamer(self, found, names, known).visit(statement) for statement in body]

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
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            node = ast.Assign([node.target], node.value)
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
        if not isinstance(function, FunctionType) or function in self._within:
            return None
        source = _source(function) if _steady(function) else None
        if source is None or call.keywords or not _plain(source):
            return None
        parameters = [argument.arg for argument in source.args.args]
        if len(parameters) != len(call.args):
            return None
        body = _statements(source)
        stored = _stored(body)
        mark = next(self._fresh)
        names: dict[str, ast.expr] = {name: ast.Name(f"{name}_{mark}") for name in stored}
        out: list[ast.stmt] = []
        for parameter, value in zip(parameters, call.args, strict=True):
            if parameter not in stored and isinstance(value, ast.Name | ast.Constant):
                names[parameter] = value
            else:
                names[parameter] = _with_path(ast.Name(f"{parameter}_{mark}"), _path(value))
                out.append(ast.Assign([ast.Name(f"{parameter}_{mark}", ast.Store())], value))
        *first, last = self.rename(body, function.__globals__, names, {})
        node.value = last.value  # type: ignore[attr-defined]
        self._within.append(function)
        out += self.block([*first, node])
        self._within.pop()
        return out


def _decided(test: ast.expr) -> ast.expr:
    """`decided and x` without what is decided."""
    if not (isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)):
        return test
    undecided = [part for part in test.values if not isinstance(part, ast.Constant)]
    if not all(part.value for part in test.values if isinstance(part, ast.Constant)):
        return ast.Constant(False)
    return ast.BoolOp(test.op, undecided) if len(undecided) > 1 else undecided[0]


class _Sweeper(ast.NodeTransformer):
    """Takes out what is looked up and never used."""

    def __init__(self, function: ast.FunctionDef) -> None:
        nodes = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        self.used = {node.id for node in nodes if isinstance(node.ctx, ast.Load)}
        self.swept = False
        self.visit(function)

    def visit_Assign(self, node: ast.Assign) -> ast.Assign | None:
        target, value = node.targets[0], node.value
        while isinstance(value, ast.Attribute):
            value = value.value
        idle = isinstance(target, ast.Name) and target.id not in self.used
        if idle and len(node.targets) == 1 and isinstance(value, ast.Name | ast.Constant):
            self.swept = True
            return None
        return node


class _Renamer(ast.NodeTransformer):
    """Gives local names their new ones, and puts in what is decided."""

    def __init__(
        self,
        writer: _Writer,
        found: Mapping[str, Any],
        names: Mapping[str, ast.expr],
        known: Mapping[str, Any],
    ) -> None:
        self.writer = writer
        self.found = found
        self.names = names
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        new = self.names.get(node.id)
        if isinstance(new, ast.Name):
            return _with_path(ast.Name(new.id, node.ctx), _path(new))
        if new is not None:
            return new
        if isinstance(node.ctx, ast.Load) and node.id in self.found:
            return self.writer.constant(self.found[node.id])
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        dotted = f"{node.value.id}.{node.attr}" if isinstance(node.value, ast.Name) else ""
        node.value = self.visit(node.value)
        base = _path(node.value)
        path = (dotted,) if dotted in self.known else (*base, node.attr) if base else None
        if path is None or not isinstance(node.ctx, ast.Load):
            return node
        try:
            value = _found(self.writer.known, path)
        except AttributeError:  # in a branch that does not concern these objects
            return node
        fact = _fact(value)
        if fact is ... or isinstance(value, MethodType):
            return _with_path(node, path)
        self.writer.facts[path] = fact
        return self.writer.constant(fact)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        func = node.func
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
            method = getattr(self.writer.kinds.get(func.value.id), func.attr, None)
            if isinstance(method, FunctionType):
                node.func = self.writer.constant(method)
                node.args = [self.visit(each) for each in [func.value, *node.args]]
                return node
        self.generic_visit(node)
        path = _path(node.func)
        if path is None or not isinstance(node.func, ast.Attribute):
            return node
        method = _found(self.writer.known, path)
        if isinstance(method, MethodType) and len(path) > 1:
            holder = _found(self.writer.known, path[:-1])
            if method.__self__ is holder:
                self.writer.facts[path] = method.__func__
                node.args = [node.func.value, *node.args]
                node.func = self.writer.constant(method.__func__)
        return node
