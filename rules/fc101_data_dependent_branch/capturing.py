"""Whether statements can be an arm of ``torch.cond``, which is in the graph whole: nothing there changes or ends it."""

from __future__ import annotations

import ast
from collections.abc import Collection

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.aliasing import Aliasing
from patcher.facts.effects.conditions import Conditions
from patcher.facts.effects.writes import How, Write, Writes
from patcher.facts.flow.definitions import Definition
from patcher.facts.masks.masked_reads import MaskedReads
from patcher.facts.syntax.written import short
from patcher.facts.values.types import Kind
from patcher.facts.zones.host_reads import HostReads
from rules.fc101_data_dependent_branch.following import Following
from rules.fc101_data_dependent_branch.refusal import Refused

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
#: What may be a method of an object, for all that is known.
_OPERATORS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript)
#: What a function of its own cannot do for the one around it, or the graph does not hold.
_ODD = (
    ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom,
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Delete, ast.Try, ast.Match, ast.AsyncFor,
    ast.AsyncWith, ast.NamedExpr, ast.Assert,
)  # fmt: skip
#: Methods that copy data to the host, or whose result has as many elements as data says.
_ON_HOST = frozenset("item tolist numpy nonzero argwhere unique unique_consecutive masked_select".split())
#: What means another thing in a function of its own.
_OF_FUNCTIONS = frozenset("super __class__ locals vars eval exec globals".split())


class Capturing(Analysis):
    """Arms of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.aliasing = facts.ask(Aliasing)
        self.conditions = facts.ask(Conditions)
        self.following = facts.ask(Following)
        self.host_reads = facts.ask(HostReads)
        self.presumed = facts.ask(MaskedReads).presumed
        self.writes = facts.ask(Writes)

    def doubts(self, body: list[ast.stmt], asked: Collection[ast.AST]) -> list[str]:
        """What has to be granted for ``body`` to be an arm. Raises Refused where it is none.

        ``asked``: the nodes of tests of branches on data in it, which are captured as well.
        """
        nodes = [n for s in body for n in self.syntax.subtree(s)]
        inside = set(nodes)
        for n in nodes:
            self._fits(n, inside)
        found = [d for n in nodes for w in self._changes(n) for d in self._written(w, inside)]
        for n in nodes:
            if n not in asked and isinstance(n, ast.expr):
                self._stays_on_device(n)
            found += self.following.doubts(n)
        return list(dict.fromkeys(found))

    def _fits(self, n: ast.AST, inside: set[ast.AST]) -> None:
        if isinstance(n, _ODD) or (isinstance(n, ast.Expr) and not isinstance(n.value, ast.Constant)):
            raise Refused(f"the arm holds more than assignments (`{_line(n)}`)")
        if isinstance(n, ast.AnnAssign) and n.value is None:
            raise Refused(f"the arm only says what a name is (`{_line(n)}`)")
        if isinstance(n, (ast.Break, ast.Continue)):
            loop = next(p for p in self.syntax.ancestors(n) if isinstance(p, _LOOPS))
            if loop not in inside:
                raise Refused(f"the arm ends a turn of the loop around it (`{_line(n)}`)")
        if isinstance(n, ast.With) and not all(self.writes.is_quiet(i.context_expr) for i in n.items):
            raise Refused(f"what `{_line(n)}` does is not known")
        if isinstance(n, ast.With) and "autocast" in ast.unparse(n.items[0].context_expr):
            raise Refused(f"`{_line(n)}` gives results of another dtype")
        if isinstance(n, ast.Name) and n.id in _OF_FUNCTIONS:
            raise Refused(f"`{n.id}` means another thing in a function of its own")

    # --- what is changed --------------------------------------------------------------------------------------------

    def _changes(self, n: ast.AST) -> tuple[Write, ...]:
        """What ``n`` changes, the nodes in it left out; of a loop what its turns take."""
        return self.writes.in_step(n) if isinstance(n, ast.For) else tuple(self.writes.of(n))

    def _written(self, w: Write, inside: set[ast.AST]) -> list[str]:
        """What has to be granted for a change to be seen in the arm alone."""
        if w.how is How.BINDS:
            return []
        if w.how is How.SETS:
            raise Refused(f"an attribute is set in the arm ({w.told})")
        if isinstance(w.node, _OPERATORS) and not isinstance(getattr(w.node, "ctx", None), (ast.Store, ast.Del)):
            return [f"`{short(w.node)}` computes with tensors"]
        if w.how is How.RUNS:
            if isinstance(w.node, ast.Call) and self.following.is_ours(w.node):
                return []  # as is said of all that it calls
            raise Refused(f"what {w.told} does is not known")
        if w.afar or not all(self._is_made_here(e, inside, frozenset()) for e in w.objects):
            raise Refused(f"the arm changes what was there before ({w.told})")
        return []

    def _is_made_here(self, e: ast.expr, inside: set[ast.AST], seen: frozenset[Definition]) -> bool:
        """Whether ``e`` is, or is a part of, something that was made in the arm; ``seen``: what is asked already."""
        root = e
        while isinstance(root, ast.Subscript):
            root = root.value
        if not isinstance(root, ast.Name):
            return not self.aliasing.aliases(root)
        definitions = self.inference.definitions(root)
        return bool(definitions) and all(self._is_made_by(d, inside, seen | definitions) for d in definitions - seen)

    def _is_made_by(self, d: Definition, inside: set[ast.AST], seen: frozenset[Definition]) -> bool:
        if d.node not in inside:
            return False
        if isinstance(d.node, ast.AugAssign) and isinstance(d.node.target, ast.Name):
            return self._is_made_here(d.node.target, inside, seen)
        value, path = d.part
        return d.how == "assign" and not path and value is not None and self._is_new(value)

    def _is_new(self, value: ast.expr) -> bool:
        return self.inference.of(value).is_number or not self.aliasing.aliases(value)

    # --- what ends a graph ------------------------------------------------------------------------------------------

    def _stays_on_device(self, e: ast.expr) -> None:
        """Refuse what needs data on the host, or is of a size that data says, for all that is known."""
        parent = self.syntax.parents.get(e)
        tested = isinstance(parent, (ast.If, ast.IfExp, ast.While)) and parent.test is e
        reads = self.host_reads.is_read(e) or (tested and self.conditions.reads_data(e)) or self._may_need_data(e)
        if reads and not self.facts.eager_only(e):
            raise Refused(f"the arm reads data on the host as well (`{short(e)}`)")

    def _may_need_data(self, e: ast.expr) -> bool:
        match e:
            case ast.Call(func=ast.Attribute(value=held, attr=name)) if name in _ON_HOST:
                return self.inference.of(held).kind is not Kind.PYTHON
            case ast.Call(func=ast.Attribute(attr="where"), args=[_], keywords=[]):
                return True
            case ast.Call(args=args) if self.syntax.builtin(e) in ("int", "float", "bool", "range"):
                return any(held.is_tensor or held.data for held in map(self.inference.of, args))
            case ast.Subscript(ctx=ast.Load(), slice=at):
                parts = at.elts if isinstance(at, ast.Tuple) else [at]
                return any(not isinstance(p, (ast.Constant, ast.Slice)) and self.presumed.boolean(p) for p in parts)
        return False


def _line(n: ast.AST) -> str:
    return ast.unparse(n).splitlines()[0][:50]
