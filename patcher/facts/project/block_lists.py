"""Lists of modules of one class that a constructor makes: ``self.blocks = nn.ModuleList([Block() for _ in range(n)])``.

What is said of one holds for the class that makes it, as its own methods show it: what it is made of, how many there
are as the source has it, and what its methods do with an item.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from patcher.facts.syntax.classes import attribute_of
from patcher.facts.syntax.tree import Syntax, dotted, last_name

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LIST = "ModuleList"
_DICT = "ModuleDict"
_TORCH = ("torch.nn", "torch.nn.modules", "torch.nn.modules.container")


@dataclass(frozen=True)
class BlockList:
    """``path``: below the instance, "transformer.h" through an ``nn.ModuleDict``. ``cls``: the dotted class of all.

    That is "" where they are not of one class, or nobody sees of which.
    ``count``: how many, as the source says it ("12", "config.depth"); "" where it does not. ``called``: whether methods
    of the class call its items as modules, and none of them by a method's name. ``numbered``: each is made with a
    number of its own.
    """

    path: str
    cls: str
    count: str
    called: bool = False
    numbered: bool = False


def block_lists(
    cls: ast.ClassDef, syntax: Syntax, resolve: Callable[[str], str], built: Callable[[str | None], str]
) -> Iterator[BlockList]:
    """Those that the constructor of ``cls`` makes. ``built``: the dotted class that is called by a name, or ""."""
    init = next((s for s in cls.body if isinstance(s, _FUNCTIONS) and s.name == "__init__"), None)
    if init is None or not init.args.args:
        return
    making = _Making(init, syntax, resolve, built)
    for found in making.found():
        yield replace(found, called=_are_called(cls, syntax, f"{init.args.args[0].arg}.{found.path}"))


_Items = tuple[str, str, bool]  # the class of all items, how many there are, and whether each gets its number


class _Making:
    """What one constructor fills."""

    def __init__(
        self,
        init: ast.FunctionDef | ast.AsyncFunctionDef,
        syntax: Syntax,
        resolve: Callable[[str], str],
        built: Callable[[str | None], str],
    ) -> None:
        self.syntax, self.resolve, self.built = syntax, resolve, built
        self.me = init.args.args[0].arg
        self.nodes = [n for n in syntax.subtree(init) if n is not init]

    def found(self) -> Iterator[BlockList]:
        stores: dict[str, list[dict[str, _Items]]] = {}
        for n in sorted((n for n in self.nodes if isinstance(n, (ast.Assign, ast.AnnAssign))), key=lambda n: n.lineno):
            for t in n.targets if isinstance(n, ast.Assign) else [n.target]:
                name = attribute_of(t, self.me) if n.value is not None else None
                if name is not None and n.value is not None:
                    stores.setdefault(name, []).append(self._of(name, n.value))
        for made in stores.values():
            for path in sorted({path for one in made for path in one}):
                items = {one.get(path, ("", "", False)) for one in made}
                classes, counts = {cls for cls, _, _ in items}, {count for _, count, _ in items}
                one = len(classes) == 1 and "" not in classes
                count = counts.pop() if one and len(counts) == 1 else ""
                yield BlockList(path, classes.pop() if one else "", count, numbered=any(n for _, _, n in items))

    def _of(self, path: str, value: ast.expr) -> dict[str, _Items]:
        """The lists in ``value``, which is stored at ``path`` below the instance."""
        if not isinstance(value, ast.Call):
            return {}
        what = self._called(value)
        if what == _LIST and not value.keywords:
            first = value.args[0] if value.args else None
            return {path: self._grown(f"{self.me}.{path}", first) or ("", "", False)}
        if what != _DICT or len(value.args) != 1:
            return {}
        parts: list[tuple[str, ast.expr]] = []
        match value.args[0]:
            case ast.Dict(keys=keys, values=values):
                parts = [
                    (k.value, v)
                    for k, v in zip(keys, values, strict=True)
                    if isinstance(k, ast.Constant) and isinstance(k.value, str) and k.value.isidentifier()
                ]
            case ast.Call(args=[], keywords=keywords) as call if self.syntax.builtin(call) == "dict":
                parts = [(k.arg, k.value) for k in keywords if k.arg is not None]
        return {p: items for key, v in parts for p, items in self._of(f"{path}.{key}", v).items()}

    def _items(self, e: ast.expr) -> _Items | None:
        """The class and number of what a list holds; None where they are not of one class, or one is there twice."""
        match e:
            case ast.ListComp(elt=elt, generators=[loop]) | ast.GeneratorExp(elt=elt, generators=[loop]):
                return self._one(elt, self._turns(loop.iter) if not loop.ifs else "", loop.target)
            case ast.List(elts=elts) | ast.Tuple(elts=elts):
                classes = {self._class(item) for item in elts}
                one = classes.pop() if len(classes) == 1 else ""
                return (one, str(len(elts)), False) if one else None
            case ast.Name():
                return self._local(e.id)
        return None

    def _one(self, e: ast.expr, count: str, turn: ast.expr) -> _Items | None:
        cls = self._class(e)
        return (cls, count, _reads(e, turn)) if cls else None

    def _class(self, e: ast.expr) -> str:
        if isinstance(e, ast.IfExp):
            one, other = self._class(e.body), self._class(e.orelse)
            return one if one == other else ""
        made = self.built(dotted(e.func)) if isinstance(e, ast.Call) else ""
        return "" if made.rpartition(".")[2] in (_LIST, _DICT) else made

    def _turns(self, e: ast.expr) -> str:
        """How many turns a loop over ``e`` takes."""
        match e:
            case ast.Call(args=[count], keywords=[]) as call if self.syntax.builtin(call) == "range":
                return ast.unparse(count)
            case ast.List(elts=elts) | ast.Tuple(elts=elts) if not any(isinstance(x, ast.Starred) for x in elts):
                return str(len(elts))
        return ""

    def _local(self, name: str) -> _Items | None:
        """A local list that is made once, and filled."""
        assigned = [n.value for n in self.nodes if isinstance(n, ast.Assign) and name in map(dotted, n.targets)]
        return self._grown(name, assigned[0]) if len(assigned) == 1 else None

    def _called(self, call: ast.Call) -> str:
        """The name of PyTorch's own container that is called, or ""."""
        module, _, name = self.resolve(dotted(call.func) or "?").rpartition(".")
        return name if module in _TORCH else ""

    def _grown(self, text: str, first: ast.expr | None) -> _Items | None:
        """What the list ``text`` holds, that starts as ``first``, with what the constructor appends."""
        appended = []
        for n in self.nodes:
            if isinstance(n, ast.Attribute) and dotted(n.value) == text:
                call = self.syntax.parents[n]
                if n.attr in ("extend", "insert", "__setitem__"):
                    return None
                appended += call.args if n.attr == "append" and isinstance(call, ast.Call) else []
        if first is None or (isinstance(first, ast.List) and not first.elts):
            return self._filled(appended)
        return self._items(first) if not appended else None

    def _filled(self, appended: list[ast.expr]) -> _Items | None:
        classes = {self._class(item) for item in appended}
        one = classes.pop() if len(classes) == 1 else ""
        if not one:
            return None
        if len(appended) > 1:
            return one, "", False
        statement = self.syntax.statement_of(appended[0])
        loop = self.syntax.parents[statement]
        outer = self.syntax.parents.get(loop)
        if not isinstance(loop, ast.For):
            return one, "", False
        return one, self._turns(loop.iter) if isinstance(outer, _FUNCTIONS) else "", _reads(appended[0], loop.target)


def _reads(e: ast.expr, turn: ast.expr) -> bool:
    """Whether ``e`` reads a name that each turn of a loop gives anew."""
    given = {n.id for n in ast.walk(turn) if isinstance(n, ast.Name)}
    return any(isinstance(n, ast.Name) and n.id in given for n in ast.walk(e))


def _are_called(cls: ast.ClassDef, syntax: Syntax, text: str) -> bool:
    """Whether methods of ``cls`` call items of the list ``text`` as modules, and none of them in another way."""
    inside = syntax.subtree(cls)
    loops = (n for n in inside if isinstance(n, (ast.For, ast.comprehension)))
    items = [n for n in inside if isinstance(n, ast.Subscript) and dotted(n.value) == text]
    read: list[ast.expr] = [*items]
    for loop in (n for n in loops if any(dotted(part) == text for part in ast.walk(n.iter))):
        names = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
        within = syntax.subtree(loop if isinstance(loop, ast.For) else syntax.parents[loop])
        read += [n for n in within if isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load)]
    called = False
    for item in read:
        match syntax.parents[item]:
            case ast.Attribute(attr="forward" | "__call__"):
                return False
            case ast.Call(func=func, args=args):
                called |= func is item or (item in args and "checkpoint" in last_name(func))
    return called and all(isinstance(item.ctx, ast.Load) for item in items)
