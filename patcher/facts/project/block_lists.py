"""Lists of modules of one class that a constructor makes: ``self.blocks = nn.ModuleList([Block() for _ in range(n)])``.

What is said of one holds for the class that makes it, as its own methods show it: what it is made of, how many there
are as the source has it, and what its methods do with an item.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from patcher.facts.syntax.tree import Syntax, dotted, last_name

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LIST = "ModuleList"
_DICT = "ModuleDict"
_TORCH = ("torch.nn", "torch.nn.modules", "torch.nn.modules.container")

Use = Literal[
    "called",  # block(x), self.blocks[0](x)
    "handed on",  # checkpoint(block, x): somebody else calls it
    "forward",  # block.forward(x), block.__call__: by the name of a method
    "attribute",  # block.width
    "replaced",  # self.blocks[0] = ...
    "other",  # whatever else is done with an item, or with the list
]


@dataclass(frozen=True)
class BlockList:
    """``path``: below the instance, "transformer.h" through an ``nn.ModuleDict``. ``cls``: the dotted class of all.

    That is "" where they are not of one class, or nobody sees of which.
    ``count``: how many, as the source says it ("12", "config.depth"); "" where it does not. ``uses``: what the methods
    of the class do with it, besides asking how many there are. ``numbered``: each is made with a number of its own.
    """

    path: str
    cls: str
    count: str
    uses: frozenset[Use]
    numbered: bool = False

    @property
    def called(self) -> bool:
        """Whether its items are called as modules, and none of them in another way."""
        return not {"called", "handed on"}.isdisjoint(self.uses) and self.uses.isdisjoint({"forward", "replaced"})


def block_lists(
    cls: ast.ClassDef, syntax: Syntax, resolve: Callable[[str], str], built: Callable[[str | None], str]
) -> Iterator[BlockList]:
    """Those that the constructor of ``cls`` makes. ``built``: the dotted class that is called by a name, or ""."""
    init = next((s for s in cls.body if isinstance(s, _FUNCTIONS) and s.name == "__init__"), None)
    if init is None or not init.args.args:
        return
    making = _Making(init, syntax, resolve, built)
    for found in making.found():
        yield replace(found, uses=frozenset(_Uses(cls, syntax, found.path).found()))


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
        self.named: dict[str, list[ast.Name]] = {}
        for n in self.nodes:
            if isinstance(n, ast.Name):
                self.named.setdefault(n.id, []).append(n)

    def found(self) -> Iterator[BlockList]:
        stores: dict[str, list[ast.expr]] = {}
        for n in self.nodes:
            if isinstance(n, (ast.Assign, ast.AnnAssign)) and n.value is not None:
                for t in n.targets if isinstance(n, ast.Assign) else [n.target]:
                    if isinstance(t, ast.Attribute) and isinstance(t.value, ast.Name) and t.value.id == self.me:
                        stores.setdefault(t.attr, []).append(n.value)
        for name, values in sorted(stores.items(), key=lambda item: min(v.lineno for v in item[1])):
            for path, items in sorted(self._lists(name, values).items()):
                yield BlockList(path, items[0], items[1], frozenset(), items[2])

    def _lists(self, name: str, values: list[ast.expr]) -> dict[str, _Items]:
        made = [self._of(name, value) for value in values]
        paths = {path for one in made for path in one}
        found: dict[str, _Items] = {}
        for path in paths:
            items = {one.get(path, ("", "", False)) for one in made}
            classes, counts = {cls for cls, _, _ in items}, {count for _, count, _ in items}
            one = len(classes) == 1 and "" not in classes
            count = counts.pop() if one and len(counts) == 1 else ""
            found[path] = (classes.pop() if one else "", count, any(numbered for _, _, numbered in items))
        return found

    def _of(self, path: str, value: ast.expr) -> dict[str, _Items]:
        """The lists in ``value``, which is stored at ``path`` below the instance."""
        if not isinstance(value, ast.Call):
            return {}
        what = self._called(value)
        if what == _LIST and not value.keywords:
            given = self._items(value.args[0]) if len(value.args) == 1 else None
            items = self._with_more(path, given, empty=not value.args)
            return {path: items or ("", "", False)}
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
        return self.built(dotted(e.func)) if isinstance(e, ast.Call) else ""

    def _turns(self, e: ast.expr) -> str:
        """How many turns a loop over ``e`` takes."""
        match e:
            case ast.Call(args=[count], keywords=[]) as call if self.syntax.builtin(call) == "range":
                return ast.unparse(count)
            case ast.List(elts=elts) | ast.Tuple(elts=elts) if not any(isinstance(x, ast.Starred) for x in elts):
                return str(len(elts))
        return ""

    def _local(self, name: str) -> _Items | None:
        """A local list that is filled, and used for nothing else."""
        uses = self.named.get(name, [])
        first: ast.expr | None = None
        appended: list[ast.expr] = []
        for n in uses:
            parent = self.syntax.parents[n]
            up = self.syntax.parents.get(parent)
            call = self.syntax.parents.get(up) if up is not None else None
            match parent:
                case ast.Assign(targets=[ast.Name()], value=value) | ast.AnnAssign(value=ast.expr() as value) if (
                    n is not value
                ):
                    if first is not None:
                        return None
                    first = value
                case ast.Attribute(attr="append") if isinstance(up, ast.Call) and isinstance(call, ast.Expr):
                    appended += up.args
                case ast.Call(func=func) if n is not func and self._reads(parent):
                    pass
                case _:
                    return None
        if first is None:
            return None
        if isinstance(first, ast.List) and not first.elts:
            return self._filled(appended)
        return self._items(first) if not appended and not isinstance(first, ast.Name) else None

    def _reads(self, call: ast.Call) -> bool:
        """Whether ``call`` only reads a list that it is given."""
        return self.syntax.builtin(call) == "len" or self._called(call) == _LIST

    def _called(self, call: ast.Call) -> str:
        """The name of PyTorch's own container that is called, or ""."""
        module, _, name = self.resolve(dotted(call.func) or "?").rpartition(".")
        return name if module in _TORCH else ""

    def _with_more(self, path: str, given: _Items | None, *, empty: bool) -> _Items | None:
        """With what the constructor appends afterwards."""
        appended = []
        for n in self.nodes:
            if isinstance(n, ast.Attribute) and n.attr in ("append", "extend", "insert", "__setitem__"):
                call = self.syntax.parents[n]
                if dotted(n.value) == f"{self.me}.{path}" and isinstance(call, ast.Call):
                    if n.attr != "append":
                        return None
                    appended += call.args
        if empty:
            return self._filled(appended)
        return given if not appended else None

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


class _Uses:
    """What the methods of one class do with the list at ``path`` below the instance."""

    def __init__(self, cls: ast.ClassDef, syntax: Syntax, path: str) -> None:
        self.cls, self.syntax, self.path = cls, syntax, path

    def found(self) -> Iterator[Use]:
        root = self.path.partition(".")[0]
        for n in self.syntax.by_type[ast.Attribute]:
            if n.attr != root or not isinstance(n.value, ast.Name) or self.syntax.class_of(n) is not self.cls:
                continue
            method = self.syntax.method_of(n)
            if method is None or not method.args.args or method.args.args[0].arg != n.value.id:
                continue
            whole: ast.expr | None = n
            for part in self.path.split(".")[1:]:
                parent = self.syntax.parents[whole] if whole is not None else None
                if not isinstance(parent, ast.Attribute) and isinstance(n.ctx, ast.Load):
                    yield "other"  # the dictionary around it is used as a whole
                whole = parent if isinstance(parent, ast.Attribute) and parent.attr == part else None
                if whole is None:
                    break
            if whole is not None:
                yield from self._list(whole, method.name == "__init__")

    def _list(self, e: ast.expr, making: bool) -> Iterator[Use]:
        p = self.syntax.parents[e]
        match p:
            case ast.Assign() | ast.AnnAssign() if making and not isinstance(e.ctx, ast.Load):  # type: ignore[attr-defined]
                return
            case ast.Attribute(attr="append") if making:
                return
            case ast.Subscript(value=value, slice=key) if value is e:
                if not isinstance(p.ctx, ast.Load):
                    yield "replaced"
                elif isinstance(key, ast.Slice):
                    yield from self._run_through(p)
                else:
                    yield self._item(p)
                return
        yield from self._run_through(e)

    def _run_through(self, e: ast.expr) -> Iterator[Use]:
        """A loop over it, also with numbers beside its items, from behind or along with something else."""
        p = self.syntax.parents[e]
        at: int | None = None
        if isinstance(p, ast.Call) and e in p.args:
            what = self.syntax.builtin(p)
            if what == "len":
                return
            if what in ("enumerate", "zip", "reversed"):
                at = {"enumerate": 1, "zip": p.args.index(e)}.get(what)
                e, p = p, self.syntax.parents[p]
                if isinstance(p, ast.Call) and self.syntax.builtin(p) == "enumerate" and at is None:
                    at, e, p = 1, p, self.syntax.parents[p]
        if not isinstance(p, (ast.For, ast.comprehension)) or p.iter is not e:
            yield "other"
            return
        target = p.target
        if at is not None:
            if not isinstance(target, (ast.Tuple, ast.List)) or at >= len(target.elts):
                yield "other"
                return
            target = target.elts[at]
        if not isinstance(target, ast.Name):
            yield "other"
            return
        within = p if isinstance(p, ast.For) else self.syntax.parents[p]
        for n in self.syntax.subtree(within):
            if isinstance(n, ast.Name) and n.id == target.id and n is not target:
                yield self._item(n)

    def _item(self, e: ast.expr) -> Use:
        match self.syntax.parents[e]:
            case ast.Call(func=func, args=args) as call:
                if func is e:
                    return "called"
                return "handed on" if e in args and "checkpoint" in last_name(call.func) else "other"
            case ast.Attribute(attr="forward" | "__call__"):
                return "forward"
            case ast.Attribute(ctx=ast.Load()):
                return "attribute"
        return "replaced" if not isinstance(getattr(e, "ctx", None), ast.Load) else "other"
