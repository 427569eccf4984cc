"""Which expressions give tensors that nobody else has: new ones, lists of them, or nothing yet."""

from __future__ import annotations

import ast

from patcher.facts.analysis import Analysis
from patcher.facts.caching.origins import Origins, elements_of, parts_of
from patcher.facts.syntax.tree import last_name, own_nodes

#: Functions of torch that make a tensor which nobody else has.
_NEW = frozenset(
    f"torch.{n}"
    for n in "zeros ones empty full rand randn zeros_like ones_like empty_like full_like rand_like randn_like tensor "
    "arange".split()
)
_NEW_METHODS = frozenset({"new_zeros", "new_ones", "new_empty", "new_full"})
#: Methods that give a tensor on a tensor: a new one, the same one, or a view, each of which is an object to mark.
_KEEPING = frozenset(
    "to cuda cpu type half float double bfloat16 contiguous clone detach repeat view reshape expand permute transpose "
    "unsqueeze squeeze requires_grad_ zero_ fill_ normal_ uniform_ pin_memory share_memory_".split()
)
_JOINING = frozenset({"torch.stack", "torch.cat", "torch.concat"})
#: What an expression gives. STATIC: a parameter, whose address Dynamo knows.
TENSOR, LIST, EMPTY, EMPTY_LIST, STATIC = "tensor", "list", "empty", "empty list", "static"


class NewTensors(Analysis):
    """Asked about values in the class of ``origins``, which keeps ``buffers``; ``initial``: its initialisers."""

    def __init__(self, origins: Origins, initial: set[ast.FunctionDef], buffers: frozenset[str]) -> None:
        super().__init__(origins.facts)
        self.origins = origins
        self.initial = initial
        self.buffers = buffers

    def _buffer(self, e: ast.AST) -> str | None:
        name = self.origins.attribute(e)
        return name if name in self.buffers else None

    def kind(self, e: ast.expr | None, depth: int = 0) -> str:
        """What ``e`` gives: one of the kinds above, or "" when that is not known."""
        if e is None or depth > 5:
            return ""
        match e:
            case ast.Constant(value=None):
                return EMPTY
            case ast.IfExp(body=body, orelse=orelse):
                kinds = {self.kind(body, depth + 1), self.kind(orelse, depth + 1)}
                return kinds.pop() if len(kinds) == 1 else ""
            case ast.NamedExpr(value=value):
                return self.kind(value, depth + 1)
            case ast.Name():
                return self._of_name(e, depth)
            case ast.Dict(keys=[]):
                return EMPTY_LIST
            case ast.Dict() | ast.DictComp() | ast.GeneratorExp() | ast.Call(args=[ast.Dict() | ast.DictComp()]):
                return ""  # to go through it gives keys, or uses it up
        inner = elements_of(e)
        if inner is not None:
            kinds = {self.kind(i, depth + 1) for i in inner}
            return EMPTY_LIST if kinds <= {EMPTY} else LIST if kinds == {TENSOR} else ""
        return self._of_call(e, depth) if isinstance(e, ast.Call) else ""

    def is_given(self, e: ast.expr) -> bool:
        """Whether a parameter is among what ``e`` may be."""
        return isinstance(e, ast.Name) and any(d.how == "parameter" for d in self.inference.definitions(e))

    def _of_call(self, call: ast.Call, depth: int) -> str:
        if any(k.arg == "out" for k in call.keywords):
            return ""
        what = self.syntax.qualified(call.func)
        if what is not None and what.rpartition(".")[2] in self.project.foreign_stores:
            return ""  # somebody replaces PyTorch's own
        if what in _NEW:
            return TENSOR
        if what in _JOINING and self.syntax.method_of(call) in self.initial:
            return TENSOR  # elsewhere, what is joined is the cache itself
        if what in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
            return STATIC
        if not isinstance(call.func, ast.Attribute):
            return ""
        base = call.func.value
        if call.func.attr in _NEW_METHODS:
            return TENSOR if self._is_tensor(base) else ""
        own = self.origins.own.get(self.origins.attribute(call.func) or "", [])
        if len(own) == 1:
            return self._of_method(own[0], depth)
        if call.func.attr in _KEEPING and (self._is_tensor(base) or self.kind(base, depth + 1) == TENSOR):
            return TENSOR
        return ""

    def _is_tensor(self, e: ast.expr) -> bool:
        """Whether ``e`` is a tensor for sure: a parameter is not asked, a buffer is one that only this class stores."""
        if isinstance(e, ast.Subscript):
            return self._buffer(e.value) is not None and self._is_tensor(e.value)
        if (b := self._buffer(e)) is not None:
            return b not in self.project.foreign_stores
        if isinstance(e, ast.Name):
            found = self.inference.definitions(e)
            given = {d.how for d in found}
            own = [d for d in found if d.how == "iteration" and d.value is not None and self._buffer(d.value)]
            return len(own) == len(found) > 0 or ("parameter" in given and self.inference.of(e).is_tensor)
        return False

    def _of_method(self, f: ast.FunctionDef, depth: int) -> str:
        """What the own method ``f`` returns, when no class below overrides it."""
        returns = [n.value for n in own_nodes(f) if isinstance(n, ast.Return)]
        plain = all(last_name(d) == "staticmethod" for d in f.decorator_list)
        if not returns or not plain or len(self.project.methods(self.origins.name, f.name)) > 1:
            return ""
        kinds = {self.kind(r, depth + 1) for r in returns}
        return kinds.pop() if len(kinds) == 1 else ""

    def _of_name(self, name: ast.Name, depth: int) -> str:
        definitions = self.inference.definitions(name)
        if not definitions or any(d.how != "assign" for d in definitions):
            return ""
        parts = [p for d in definitions for p in parts_of(d)]
        kinds = {self.kind(p, depth + 1) if isinstance(p, ast.expr) else "" for p in parts}
        if kinds == {TENSOR}:
            return TENSOR
        if len(definitions) == 1 and kinds <= {LIST, EMPTY_LIST}:
            return self._filled(name, kinds.pop(), depth)
        return ""

    def _filled(self, name: ast.Name, kind: str, depth: int) -> str:
        """What the local list is where it is stored: nothing happens to it but that new tensors are appended before."""
        function = self.syntax.function_of(name)
        if function is None:
            return ""
        flow = self.inference.flow_of(function)
        if name.id in flow.captured:
            return ""
        for use in flow.uses.get(next(iter(self.inference.definitions(name))), []):
            parent = self.syntax.parents[use]
            call = self.syntax.parents[parent] if isinstance(parent, ast.Attribute) else parent
            match call:
                case ast.Call(func=ast.Attribute(attr="append"), args=[value]) if call is not parent:
                    if use.lineno >= name.lineno or self.kind(value, depth + 1) != TENSOR:
                        return ""
                    kind = LIST
                case ast.Call() if self.syntax.builtin(call) == "len":
                    pass
                case _ if use is not name:
                    return ""
        return kind
