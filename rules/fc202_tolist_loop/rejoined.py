"""Lists of chunks that are put together again: then the number of chunks makes no difference."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.chunked.chunks import Chunks, Split
from patcher.facts.syntax.tree import FunctionNode, dotted, last_name
from patcher.facts.syntax.written import integer

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp)
_JOINS = frozenset({"torch.cat", "torch.concat", "torch.concatenate"})
#: What keeps the type of the list, and looks no further.
_KIND = frozenset({"isinstance", "type"})
_LIST_METHODS = frozenset(dir(list)) | frozenset(dir(tuple))
#: Methods that treat each element by itself and need nothing but it.
_ELEMENTWISE = frozenset(
    "to float half bfloat16 double contiguous clone detach relu tanh sigmoid exp neg abs type".split()
)
_DEEPEST = 12
#: Methods that are called by other names: what they return goes to the user.
_PUBLIC = frozenset({"forward", "__call__"})


@dataclass(frozen=True)
class Rejoined:
    """A ``tolist`` whose numbers are sizes of ``splits`` alone, and what becomes of the chunks.

    ``crosses``: how chunks leave the function for others that put them together. ``doubts``: what is not known of the
    lengths. ``obstacle``: why the number of chunks may make a difference.
    """

    read: ast.Call
    splits: tuple[Split, ...]
    crosses: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    obstacle: str = ""

    @property
    def lengths(self) -> ast.expr:
        """The tensor of lengths."""
        assert isinstance(self.read.func, ast.Attribute)
        return self.read.func.value


@dataclass
class _Trail:
    dim: int
    crosses: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    seen: set[ast.AST] = field(default_factory=set)


class Rejoining(Analysis):
    """Follows chunks from where they are split to every place that reads them."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.chunks = facts.ask(Chunks)

    def of(self, read: ast.Call) -> Rejoined | None:
        """What ``read`` (``x.tolist()``) is for, or None when its numbers are not sizes of splits alone."""
        splits = self._splits(read)
        if not splits:
            return None
        crosses: list[str] = []
        assert isinstance(read.func, ast.Attribute)
        lengths = read.func.value
        written = " ".join(ast.unparse(lengths).split())
        doubts = [] if self.chunks.is_row(lengths) else [f"`{written}` is one row of integers"]
        for split in splits:
            if split.dim is None:
                return Rejoined(read, splits, obstacle="the dimension of the split is not written down")
            trail = _Trail(split.dim)
            obstacle = self._follow(split.call, 0, trail)
            if obstacle:
                return Rejoined(read, splits, obstacle=obstacle)
            crosses += trail.crosses
            doubts += trail.doubts
        return Rejoined(read, splits, tuple(dict.fromkeys(crosses)), tuple(dict.fromkeys(doubts)))

    def _splits(self, read: ast.Call) -> tuple[Split, ...]:
        parent = self.syntax.parents[read]
        split = self.chunks.split_of(parent)
        if split is not None and split.sizes is read:
            return (split,)
        if not isinstance(parent, ast.Assign) or len(parent.targets) != 1 or parent.value is not read:
            return ()
        definition = self.readers(parent.targets[0])
        if definition is None:
            return ()
        found = [self.chunks.split_of(self.syntax.parents[use]) for use in definition]
        if any(s is None or s.sizes is not use for s, use in zip(found, definition, strict=True)):
            return ()
        return tuple(s for s in found if s is not None)

    # --- where chunks go --------------------------------------------------------------------------------------------

    def _follow(self, e: ast.expr, depth: int, trail: _Trail) -> str:
        """Why the number of chunks in the list ``e`` may make a difference, or "".

        ``depth``: how many lists there are around the list of chunks.
        """
        if e in trail.seen:
            return ""
        trail.seen.add(e)
        if len(trail.seen) > _DEEPEST * 4:
            return "the chunks go too far to be followed"
        parent = self.syntax.parents[e]
        match parent:
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=value) if value is e:
                return self._stored(target, depth, trail)
            case ast.ListComp(elt=element) if element is e:
                return self._follow(parent, depth + 1, trail)
            case ast.comprehension() if parent.iter is e and not parent.ifs:
                return self._iterated_by_comprehension(parent, depth, trail)
            case ast.For() if parent.iter is e and depth:
                return self._names(parent.target, depth - 1, trail)
            case ast.Call() if e in parent.args:
                return self._handed(parent, e, depth, trail)
            case ast.Starred() if isinstance(listed := self.syntax.parents[parent], (ast.List, ast.Tuple)):
                if listed.elts == [parent]:
                    return self._follow(listed, depth, trail)
            case ast.keyword(arg="tensors") if isinstance(call := self.syntax.parents[parent], ast.Call) and not depth:
                return self._joined(call, call.args[:1], e, trail)
            case ast.keyword(arg=str(name)) if self._makes_record(self.syntax.parents[parent]):
                return self._kept(name, None, depth, trail, parent)
            case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
                return ""
            case ast.Attribute(attr=attr) if attr not in _LIST_METHODS:
                return ""  # a list has no such thing: this is not where it goes
            case ast.Return():
                function = self.syntax.function_of(parent)
                return self._returned(function, depth, trail) if function is not None else "the chunks are returned"
        return f"the chunks are used one by one, in line {e.lineno}"

    def _stored(self, target: ast.expr, depth: int, trail: _Trail) -> str:
        if isinstance(target, ast.Attribute):
            return self._kept(target.attr, target.value, depth, trail, target)
        return self._names(target, depth, trail)

    def _names(self, target: ast.expr, depth: int, trail: _Trail) -> str:
        uses = self.readers(target)
        if uses is None:
            return f"where the chunks go from line {target.lineno} is not known"
        return _first(self._follow(use, depth, trail) for use in uses if not self._none_there(use, target))

    def _none_there(self, use: ast.Name, target: ast.expr) -> bool:
        """Whether what ``target`` binds gets to ``use`` only when it is None: ``if x is not None`` has rebound it."""
        for statement in (p for p in (use, *self.syntax.ancestors(use)) if isinstance(p, ast.stmt)):
            if isinstance(statement, _FUNCTIONS):
                return False
            block = self.syntax.block_of(statement)
            for s in block[: block.index(statement)]:
                if (
                    isinstance(s, ast.If)
                    and s.lineno > target.lineno
                    and ast.unparse(s.test) == f"{use.id} is not None"
                ):
                    assigned = [t for b in s.body if isinstance(b, ast.Assign) for t in b.targets]
                    if any(isinstance(t, ast.Name) and t.id == use.id for t in assigned):
                        return True
        return False

    def _handed(self, call: ast.Call, e: ast.expr, depth: int, trail: _Trail) -> str:
        name = self.syntax.builtin(call)
        if name in _KIND and call.args[0] is e:
            return ""
        if depth and name in ("zip", "enumerate"):
            return self._zipped(call, e, depth, trail)
        if name in ("list", "tuple") and not call.keywords:
            return self._follow(call, depth, trail)
        if depth == 0 and call.args[0] is e:
            return self._joined(call, call.args[1:2], e, trail)
        return f"the chunks are used one by one, in line {e.lineno}"

    def _joined(self, call: ast.Call, written: list[ast.expr], e: ast.expr, trail: _Trail) -> str:
        if self.syntax.qualified(call.func) not in _JOINS:
            return f"the chunks are used one by one, in line {e.lineno}"
        written = [*written, *(k.value for k in call.keywords if k.arg in ("dim", "axis"))]
        joined = integer(written[0]) if written else 0
        return "" if joined == trail.dim else "the chunks are put together along another dimension"

    def _zipped(self, call: ast.Call, e: ast.expr, depth: int, trail: _Trail) -> str:
        loop = self.syntax.parents[call]
        target = loop.target if isinstance(loop, (ast.For, ast.comprehension)) and loop.iter is call else None
        position = call.args.index(e) + (self.syntax.builtin(call) == "enumerate")
        if not isinstance(target, ast.Tuple) or position >= len(target.elts):
            return f"the chunks are used one by one, in line {e.lineno}"
        return self._names(target.elts[position], depth - 1, trail)

    def _iterated_by_comprehension(self, generator: ast.comprehension, depth: int, trail: _Trail) -> str:
        if depth:
            return self._names(generator.target, depth - 1, trail)
        around = self.syntax.parents[generator]
        target = generator.target.id if isinstance(generator.target, ast.Name) else None
        single = isinstance(around, _COMPREHENSIONS) and len(around.generators) == 1
        if target is not None and single and self._by_rows(around.elt, target, trail):  # type: ignore[attr-defined]
            return self._follow(around, depth, trail)  # type: ignore[arg-type]
        return f"the chunks are used one by one, in line {generator.target.lineno}"

    def _by_rows(self, e: ast.expr, chunk: str, trail: _Trail) -> bool:
        """Whether ``e`` makes of a chunk what it would make of these rows of the whole, and nothing else."""
        if isinstance(e, ast.Name):
            return e.id == chunk
        if not isinstance(e, ast.Call) or not isinstance(e.func, ast.Attribute):
            return False
        base, name = e.func.value, e.func.attr
        if not self._by_rows(base, chunk, trail):
            return False
        others = [*e.args, *(k.value for k in e.keywords)]
        if name in ("reshape", "view") and len(e.args) == 2 and not e.keywords and trail.dim == 0:
            last = ast.dump(ast.parse(f"{ast.unparse(base)}.shape[-1]", mode="eval").body)
            trail.doubts.append("each chunk has more than one dimension")
            return integer(e.args[0]) == -1 and ast.dump(e.args[1]) == last
        if name in _ELEMENTWISE:
            return not any(isinstance(n, ast.Name) and n.id == chunk for o in others for n in ast.walk(o))
        return False

    # --- beyond the function ----------------------------------------------------------------------------------------

    def _makes_record(self, call: ast.AST) -> bool:
        """Whether ``call`` makes an object of its keywords: a class is called."""
        name = (dotted(call.func) or "").rpartition(".")[2] if isinstance(call, ast.Call) else ""
        return name[:1].isupper()

    def _kept(self, attr: str, base: ast.expr | None, depth: int, trail: _Trail, at: ast.AST) -> str:
        """Chunks in the attribute ``attr`` of ``base``, which the function returns: who reads it?"""
        function = self.syntax.function_of(at)
        if function is None or attr.startswith("__"):
            return "where the chunks go is not known"
        if base is not None and not self._is_result(base, function):
            return f"`{ast.unparse(base)}.{attr}` outlives the call"
        reads, end = self._reads(attr), self.syntax.statement_of(at).end_lineno or 0
        later = [r for r in reads if self.syntax.function_of(r) is function and r.lineno > end]
        later = [r for r in later if base is not None and ast.dump(r.value) == ast.dump(base)]
        makers = self._makers(function.name)
        readers = [r for r in reads if self._may_come_from(r.value, makers)]
        if (obstacle := self._why_not_crossed(function, makers)) is not None:
            return obstacle
        trail.crosses.append(f"`{function.name}(...).{attr}`")
        if not readers:
            return f"who reads `{attr}` of what `{function.name}` returns is not known"
        for call in self._calls(makers):
            if self._hands_on(call, makers):
                return f"what `{function.name}` returns goes on from line {call.lineno}"
        return _first(self._follow(r, depth, trail) for r in (*later, *readers))

    def _why_not_crossed(self, function: FunctionNode, makers: set[str]) -> str | None:
        """Why not all who read what ``function`` returns can be found in this file."""
        method = isinstance(self.syntax.parents[function], ast.ClassDef)
        if function.name in _PUBLIC or not (method or function.name.startswith("_")):
            return f"who reads what `{function.name}` returns is not known"
        for n in (*self.syntax.by_type[ast.Attribute], *self.syntax.by_type[ast.Name]):
            name = n.attr if isinstance(n, ast.Attribute) else n.id if isinstance(n, ast.Name) else ""
            parent = self.syntax.parents[n]
            if name in makers and not (isinstance(parent, ast.Call) and parent.func is n) and self.facts.reached(n):
                return f"`{name}` is handed on in line {n.lineno}"
        named = [n for n in self.syntax.by_type[ast.Constant] if n.value in makers]
        if named:
            return f"`{named[0].value!s}` is looked up by its name in line {named[0].lineno}"
        return None

    def _is_result(self, base: ast.expr, function: FunctionNode) -> bool:
        """Whether ``base`` is a local name that ``function`` made by a call and returns."""
        if not isinstance(base, ast.Name):
            return False
        found = self.inference.definitions(base)
        made = all(d.how == "assign" and isinstance(d.value, ast.Call) and not d.path for d in found)
        returned = [n.value for n in ast.walk(function) if isinstance(n, ast.Return) and n.value is not None]
        return bool(found) and made and all(isinstance(r, ast.Name) and r.id == base.id for r in returned)

    def _reads(self, attr: str) -> list[ast.Attribute]:
        found = [n for n in self.syntax.by_type[ast.Attribute] if n.attr == attr]
        return [n for n in found if isinstance(n.ctx, ast.Load) and self.facts.reached(n)]

    def _makers(self, name: str) -> set[str]:
        """``name``, and the functions of this file that return what it returns."""
        makers, grown = {name}, True
        while grown:
            grown = False
            for r in self.syntax.by_type[ast.Return]:
                function = self.syntax.function_of(r)
                if function is None or function.name in makers | _PUBLIC or not isinstance(r, ast.Return):
                    continue
                if self._called(r.value) in makers:
                    makers.add(function.name)
                    grown = True
        return makers

    def _calls(self, names: set[str]) -> list[ast.Call]:
        return [c for c in self.syntax.by_type[ast.Call] if self._called(c) in names and self.facts.reached(c)]

    def _hands_on(self, record: ast.expr, makers: set[str]) -> bool:
        """Whether ``record``, an object with chunks in it, goes anywhere but to where its attributes are read."""
        parent = self.syntax.parents[record]
        match parent:
            case ast.Attribute():
                around = self.syntax.parents[parent]
                return isinstance(around, ast.Call) and around.func is parent
            case ast.Compare():
                return not all(isinstance(op, (ast.Is, ast.IsNot)) for op in parent.ops)
            case ast.BoolOp() | ast.UnaryOp() | ast.If() | ast.IfExp():
                return not self.syntax.only_truth(record)
            case ast.Return():
                function = self.syntax.function_of(parent)
                return function is None or function.name not in makers
            case ast.Call(func=ast.Name(id=name)) if name in _KIND:
                return False
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                    return self._collects(target.value, makers)
                uses = self.readers(target)
                return uses is None or any(self._hands_on(use, makers) for use in uses)
        return True

    def _collects(self, name: ast.Name, makers: set[str]) -> bool:
        """Whether the dict ``name`` goes anywhere: it is asked for items, and bound to its own name again, no more."""
        function = self.syntax.function_of(name)
        if function is None:
            return True
        for n in ast.walk(function):
            if isinstance(n, ast.Name) and n.id == name.id and isinstance(n.ctx, ast.Load):
                if self._where_a_tensor(n):
                    continue
                parent, statement = self.syntax.parents[n], self.syntax.statement_of(n)
                if isinstance(statement, ast.Assign) and [ast.unparse(t) for t in statement.targets] == [n.id]:
                    continue
                item: ast.AST = parent
                if isinstance(parent, ast.Attribute) and parent.attr == "get":
                    item = self.syntax.parents[parent]
                if isinstance(item, ast.Subscript) and not isinstance(item.ctx, ast.Load):
                    continue
                asked = isinstance(item, ast.Subscript) or (isinstance(item, ast.Call) and item.func is parent)
                if asked and isinstance(item, ast.expr) and not self._hands_on(item, makers):
                    continue
                if asked or self._hands_on(n, makers) or isinstance(parent, ast.Attribute):
                    return True
        return False

    def _where_a_tensor(self, name: ast.Name) -> bool:
        """Whether ``name`` stands where it has just been found to be a tensor, hence no dict."""
        child: ast.AST = name
        for parent in self.syntax.ancestors(name):
            if isinstance(parent, ast.If) and child in parent.body:
                match parent.test:
                    case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=tested), kind]):
                        if tested == name.id and self.syntax.qualified(kind) == "torch.Tensor":
                            return True
            child = parent
        return False

    def _called(self, e: ast.expr | None) -> str:
        """The last name of what ``e`` calls."""
        return last_name(e.func) if isinstance(e, ast.Call) else ""

    def _may_come_from(self, base: ast.expr, makers: set[str]) -> bool:
        """Whether ``base`` may be what one of ``makers`` returned: not when it is known to be of another origin."""
        if isinstance(base, ast.Call):
            return self._called(base) in makers
        function = self.syntax.function_of(base)
        if isinstance(base, ast.Name):
            found = self.inference.definitions(base)
            return not found or any(d.value is None or self._possible(d.value, makers) for d in found)
        if function is None:
            return True
        sources = [
            n.value
            for n in ast.walk(function)
            if isinstance(n, (ast.Assign, ast.AnnAssign)) and n.value is not None
            for t in (n.targets if isinstance(n, ast.Assign) else [n.target])
            if ast.unparse(t) == ast.unparse(base)
        ]
        return not sources or any(self._possible(s, makers) for s in sources)

    def _possible(self, value: ast.expr, makers: set[str]) -> bool:
        return not isinstance(value, ast.Call) or self._called(value) in makers

    def _returned(self, function: FunctionNode, depth: int, trail: _Trail) -> str:
        """The list is what ``function`` returns: who calls it?"""
        if (obstacle := self._why_not_crossed(function, {function.name})) is not None:
            return obstacle
        calls = self._calls({function.name})
        trail.crosses.append(f"`{function.name}(...)`")
        if not calls:
            return f"who reads what `{function.name}` returns is not known"
        return _first(self._follow(c, depth, trail) for c in calls)


def _first(reasons: Iterable[str]) -> str:
    return next(filter(None, reasons), "")
