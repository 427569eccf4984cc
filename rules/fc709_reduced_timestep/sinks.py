"""Where a value goes: into an embedding of timesteps, into a model as its timestep, out of the function."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.syntax.tree import last_name
from patcher.facts.tables.wording import words
from patcher.facts.values.callees import Callees
from patcher.facts.values.module_values import imported
from rules.fc709_reduced_timestep.origins import SAME, Origins

_TIME = frozenset({"timestep", "timesteps"})
_LIKE_TIME = frozenset({*_TIME, "time", "t", "sigma", "sigmas"})
_EMBEDDING = frozenset("embed embeds embedding embeddings embedder emb proj in".split())
#: Methods of schedulers, which take a timestep and embed none.
_SCHEDULING = frozenset(
    "step add_noise scale_noise scale_model_input get_velocity index_for_timestep add_noise_to_input get_sigmas".split()
)
_JOINING = ("cat", "stack", "concat")
_DEPTH = 6


class Goes(enum.IntEnum):
    """NOWHERE: that is seen. OUT: returned, or into a call of something. IN: into an embedding, or as a timestep."""

    NOWHERE = 0
    OUT = 1
    IN = 2


class Sinks(Analysis):
    """Values of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.callees = facts.ask(Callees)
        self.origins = facts.ask(Origins)

    def of(self, e: ast.expr) -> Goes:
        """The most telling place that what ``e`` gives goes to, in its function."""
        return max(self._of(e, _DEPTH, frozenset()), default=Goes.NOWHERE)

    def _of(self, e: ast.AST, depth: int, seen: frozenset[ast.AST]) -> Iterator[Goes]:
        parent = self.syntax.parents.get(e)
        while isinstance(parent, ast.expr) and self._goes_on(e, parent):
            e, parent = parent, self.syntax.parents.get(parent)
        if isinstance(parent, ast.keyword):
            call = self.syntax.parents.get(parent)
            if isinstance(call, ast.Call) and parent.arg is not None:
                yield self._given(call, parent.arg)
        elif isinstance(parent, ast.Call) and e in parent.args:
            yield self._given(parent, self._parameter(parent, parent.args.index(e)))
        elif isinstance(parent, (ast.Return, ast.Yield)):
            yield Goes.OUT
        elif isinstance(parent, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For)) and depth:
            for use in self._read_after(parent):
                if use not in seen:
                    yield from self._of(use, depth - 1, seen | {use})

    def _goes_on(self, e: ast.AST, parent: ast.AST) -> bool:
        """Whether the numbers of ``e`` are those of ``parent``, or computed into them."""
        match parent:
            case ast.BinOp():
                return self.origins.of(parent) is not None  # what mixes noise into latents is no timestep
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                joined = (
                    isinstance(call := self.syntax.parents.get(parent), ast.Call) and last_name(call.func) in _JOINING
                )
                return not joined or all(self.origins.of(other) is not None for other in elts)
            case ast.UnaryOp() | ast.IfExp() | ast.Starred():
                return not (isinstance(parent, ast.IfExp) and parent.test is e)
            case ast.Subscript(value=value):
                return value is e
            case ast.Attribute(attr=attr):
                return attr in SAME and isinstance(self.syntax.parents.get(parent), ast.Call)
            case ast.Call(func=func, args=args):
                same = isinstance(func, ast.Attribute) and func is e
                listed = last_name(func) in (*_JOINING, "enumerate", "zip", "tqdm", "clamp")
                return same or (listed and e in args)
        return False

    def _given(self, call: ast.Call, parameter: str) -> Goes:
        name = last_name(call.func)
        spoken = frozenset(words(name))
        if name in _SCHEDULING or (imported(self.syntax, call.func) or "").startswith(("torch.", "math.", "logging")):
            return Goes.NOWHERE
        if (spoken & _EMBEDDING and spoken & {*_LIKE_TIME, "sinusoidal"}) or parameter in _TIME:
            return Goes.IN
        return Goes.OUT if self._may_be_a_model(call) else Goes.NOWHERE

    def _may_be_a_model(self, call: ast.Call) -> bool:
        if self.syntax.builtin(call) or (imported(self.syntax, call.func) is not None):
            return False
        return isinstance(call.func, (ast.Name, ast.Attribute)) and not last_name(call.func).startswith(
            ("log", "print", "append", "save", "write", "get", "compute", "apply")
        )

    def _parameter(self, call: ast.Call, at: int) -> str:
        """The name of the parameter that gets the argument at that position, of a function of this file."""
        for name in self.callees.of(call):
            function = self.callees.here(name)
            if function is not None:
                names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
                names = names[1:] if self.syntax.method_of(function) is function else names
                return names[at] if at < len(names) else ""
        return ""

    def _read_after(self, statement: ast.stmt) -> Iterator[ast.Name]:
        """Reads of the names that ``statement`` binds, which it may have bound."""
        function = self.syntax.function_of(statement)
        if function is None:
            return
        targets = getattr(statement, "targets", None) or [statement.target]  # type: ignore[attr-defined]
        stores = [n for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
        flow = self.inference.flow_of(function)
        names = {n.id for n in stores}
        for d, uses in flow.uses.items():
            if d.name in names and (d.node in stores or d.node is statement):
                yield from uses
