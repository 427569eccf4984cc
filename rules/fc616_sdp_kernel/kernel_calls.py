"""Calls of ``torch.backends.cuda.sdp_kernel`` in compiled code: what they enable, and what stands in the way."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property

from patcher.facts.analysis import Analysis
from patcher.facts.syntax.imports import bindings_of_import
from patcher.facts.syntax.tree import own_nodes
from patcher.rule import Code, Insert
from rules.fc616_sdp_kernel.kernel_text import FLAGS

_CALLED = "torch.backends.cuda.sdp_kernel"
_KERNEL = ("torch.nn.attention.sdpa_kernel",)
_BACKEND = ("torch.nn.attention.SDPBackend", "torch.backends.cuda.SDPBackend")
#: From here on ``sdp_kernel`` has the flag for cuDNN.
_SINCE = (2, 4)
#: Something in a test that asks which PyTorch this is.
_VERSION = re.compile(r"version|hasattr|torch_?\d|find_spec", re.IGNORECASE)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class KernelCall:
    """``flags``: what each is, where all are written out. ``reason``: why the call is left as it is."""

    node: ast.Call
    flags: dict[str, bool] | None
    reason: str = ""


def _asks_version(node: ast.AST) -> bool:
    return isinstance(node, (ast.If, ast.IfExp)) and _VERSION.search(ast.unparse(node.test)) is not None


class KernelCalls(Analysis):
    """Those of one module."""

    @cached_property
    def found(self) -> tuple[KernelCall, ...]:
        """In the order of the source."""
        calls = [n for n in self.syntax.by_type[ast.Call] if isinstance(n, ast.Call) and self._is_one(n)]
        return tuple(self._of(n) for n in sorted(calls, key=lambda n: (n.lineno, n.col_offset)))

    def _is_one(self, call: ast.Call) -> bool:
        if self.syntax.qualified(call.func) != _CALLED:
            return False
        around = self.syntax.parents[call]
        runs = around.body[0] if isinstance(around, _FUNCTIONS) and call in around.decorator_list else call
        return self.facts.compiled(runs) and not self.facts.eager_only(runs)

    def _of(self, call: ast.Call) -> KernelCall:
        reason = self._why_not_here or self._why_not(call)
        given = dict(zip(FLAGS, call.args, strict=False)) | {k.arg: k.value for k in call.keywords if k.arg}
        spread = any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
        if spread or any(not isinstance(v, ast.Constant) for v in given.values()):
            return KernelCall(call, None, reason)
        if len(call.args) > len(FLAGS) or given.keys() - set(FLAGS) or len(given) < len(call.args) + len(call.keywords):
            return KernelCall(call, None, reason or "it takes no such flags")
        flags = {f: bool(v.value) for f, v in given.items() if isinstance(v, ast.Constant)}
        return KernelCall(call, dict.fromkeys(FLAGS, True) | flags, reason)

    @cached_property
    def _why_not_here(self) -> str:
        if self.facts.settings.target_torch < _SINCE:
            return "before PyTorch 2.4 it has other flags"
        if self.facts.scripted:
            return "this file is for TorchScript"
        if self.project.replaces("sdp_kernel"):
            return "the project puts something else in the place of `sdp_kernel`"
        for statement in self.syntax.by_type[ast.ImportFrom]:
            assert isinstance(statement, ast.ImportFrom)
            tried = any(isinstance(p, ast.Try) or _asks_version(p) for p in self.syntax.ancestors(statement))
            brought = {what for _, what in bindings_of_import(statement, self.syntax.package)}
            if tried and not brought.isdisjoint((*_KERNEL, *_BACKEND, _CALLED)):
                return "this file imports by what this PyTorch has"
        texts = {n.value for n in self.syntax.by_type[ast.Constant] if isinstance(n, ast.Constant)}
        return "this file asks what this PyTorch has" if not texts.isdisjoint({"sdpa_kernel", "sdp_kernel"}) else ""

    def _why_not(self, call: ast.Call) -> str:
        for around in self.syntax.ancestors(call):
            if _asks_version(around):
                return "it is chosen by the version of PyTorch"
            if isinstance(around, ast.Try):
                return "an error of it may be taken"
        child: ast.AST = call
        while isinstance(parent := self.syntax.parents[child], ast.IfExp) and child is not parent.test:
            child = parent
        if isinstance(parent, ast.withitem):
            return "its result is given a name" if parent.optional_vars is not None else ""
        if isinstance(parent, _FUNCTIONS):
            return ""
        if isinstance(parent, ast.Assign) and parent.value is child and len(parent.targets) == 1:
            return "" if self._is_entered(parent.targets[0], parent) else "it is more than the name of a `with`"
        return "it stands in no `with`"

    def _is_entered(self, target: ast.expr, statement: ast.Assign) -> bool:
        """Whether ``target`` is a local name that is there to be entered, and nothing else."""
        function = self.syntax.function_of(statement)
        if not isinstance(target, ast.Name) or function is None:
            return False
        flow = self.facts.flow(function)
        if target.id in flow.captured | flow.shared:
            return False
        reads = [n for n in own_nodes(function) if isinstance(n, ast.Name) and n.id == target.id]
        entered = [self.syntax.parents[n] for n in reads if isinstance(n.ctx, ast.Load)]
        return all(isinstance(w, ast.withitem) and w.optional_vars is None for w in entered)

    def imports(self) -> tuple[tuple[Insert, ...], tuple[str, str] | tuple[()]]:
        """What imports ``sdpa_kernel`` and ``SDPBackend``, where they are not, and what they are called then."""
        known = [self._known(_KERNEL), self._known(_BACKEND)]
        missing = [n for n, own in zip(("sdpa_kernel", "SDPBackend"), known, strict=True) if own is None]
        names = (known[0] or "sdpa_kernel", known[1] or "SDPBackend")
        if not missing:
            return (), names
        beside = self._beside()
        new = {_KERNEL[0], _BACKEND[0]}
        hidden = any(self.facts.writing.hides_elsewhere(n) for n in new if n.rpartition(".")[2] in missing)
        if self.taken.isdisjoint(missing) and beside is not None and not hidden:
            line = Code(f"from torch.nn.attention import {', '.join(sorted(missing))}")
            return (Insert(beside, (line,), after=True),), names
        if any(what == "torch" for what in self.syntax.runtime_imports.values()):
            spelled = [known[0] or self._spelled(_KERNEL[0]), known[1] or self._spelled(_BACKEND[0])]
            if spelled[0] is not None and spelled[1] is not None:
                return (), (spelled[0], spelled[1])
        return (), ()

    def _spelled(self, what: str) -> str | None:
        """How ``what`` is written at all calls; None where that is not one way."""
        ways = {self.facts.writing.spelled(what, call.node) for call in self.found}
        return ways.pop() if len(ways) == 1 else None

    @cached_property
    def taken(self) -> set[str]:
        """All names of the file, wherever they stand."""
        scopes = (self.syntax.tree, *self.syntax.functions, *self.syntax.by_type[ast.ClassDef])
        bound = {name for scope in scopes for name in self.syntax.bound_in(scope)}
        return bound | self.syntax.names_in(self.syntax.tree) | self.syntax.imports_anywhere.keys()

    def _beside(self) -> ast.stmt | None:
        """The last import of something of PyTorch above all that is found, in a block around it and no function."""
        near = []
        for statement in (*self.syntax.by_type[ast.Import], *self.syntax.by_type[ast.ImportFrom]):
            assert isinstance(statement, (ast.Import, ast.ImportFrom))
            bound = bindings_of_import(statement, self.syntax.package)
            if not any(what.partition(".")[0] == "torch" for _, what in bound) or not self.syntax.alone(statement):
                continue
            block = self.syntax.block_of(statement)
            around = all(any(a in block for a in self.syntax.ancestors(c.node)) for c in self.found)
            if around and self.syntax.function_of(statement) is None and self.syntax.class_of(statement) is None:
                near.append(statement)
        above = [s for s in near if s.lineno < min(c.node.lineno for c in self.found)]
        return max(above, key=lambda s: s.lineno, default=None)

    def _known(self, wanted: tuple[str, ...]) -> str | None:
        """What an import at the top of the file calls one of these, where it is there at all calls and means that."""
        at_hand = [{n for n, what in self.facts.writing.at_hand(c.node) if what in wanted} for c in self.found]
        return min(set.intersection(*at_hand), default=None)
