"""Which expressions hold timesteps of a diffusion process, by their names, and whether a model gets them."""

from __future__ import annotations

import ast

from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.tree import last_name
from patcher.facts.tables.wording import words
from patcher.facts.values.module_values import imported

_TIMES = frozenset({"timestep", "timesteps"})
#: What is made of a timestep by these is none any more; how many there are, and which is the first, are numbers.
_OTHERS = frozenset(
    "embed embeds embedded embedding embeddings embedder emb proj projection cond mlp weight weights weighting loss "
    "index indices mask ratio ids dtype features feature fourier freqs encoding num min max n number start end "
    "total token tokens projected".split()
)
#: Methods and functions that give the same numbers in another form.
_SAME = frozenset(
    "to float double half bfloat16 type type_as long int round floor clamp clip view reshape unflatten expand "
    "expand_as repeat repeat_interleave unsqueeze squeeze flatten flip cuda cpu contiguous detach clone "
    "requires_grad_".split()
)
_LISTING = frozenset("tqdm progress_bar enumerate zip list reversed sorted cat stack concat tensor".split())
#: Methods of schedulers, which take a timestep and embed none, and functions that are no models.
_SCHEDULING = frozenset(
    "step add_noise scale_noise scale_model_input get_velocity index_for_timestep add_noise_to_input get_sigmas".split()
)
_NO_MODELS = ("log", "print", "append", "save", "write", "get", "compute", "apply")
_DEPTH = 6


class Timesteps(Analysis):
    """Expressions of one module."""

    def holds(self, e: ast.expr, depth: int = _DEPTH) -> bool:
        """Whether ``e`` holds timesteps, by its name or by what it is computed from."""
        match e:
            case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
                return _is_named(name)
            case ast.Subscript(value=value) | ast.UnaryOp(operand=value) | ast.NamedExpr(value=value):
                return self.holds(value, depth)
            case ast.BinOp(left=ast.List(elts=[value])):
                return self.holds(value, depth)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="t"), attr="expand")):
                return True
            case ast.BinOp(left=left, right=right):
                sides = [s for s in (left, right) if not isinstance(s, (ast.Constant, ast.Attribute))]
                return any(self.holds(s, depth) for s in (left, right)) and all(self.holds(s, depth) for s in sides)
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _SAME:
                return self.holds(owner, depth)
            case ast.Call(func=func, args=args):
                listed = last_name(func) in _LISTING and any(self.holds(a, depth) for a in args)
                return listed or (_is_named(last_name(func)) and imported(self.syntax, func) is None)
            case ast.Name(id=name):
                return (
                    any(self._is_bound(d, depth - 1) for d in self.inference.definitions(e))
                    if depth
                    else _is_named(name)
                )
        return False

    def _is_bound(self, d: Definition, depth: int) -> bool:
        value, path = d.part
        if value is None or d.how not in ("assign", "iteration"):
            return _is_named(d.name)
        if isinstance(value, ast.Call) and last_name(value.func) == "enumerate" and path[:1] == (1,):
            value, path = value.args[0], path[1:]
        if isinstance(value, ast.Call) and last_name(value.func) == "zip" and path and path[0] < len(value.args):
            value, path = value.args[path[0]], path[1:]
        embedded = isinstance(value, ast.Call) and not _OTHERS.isdisjoint(words(last_name(value.func)))
        return (not path and self.holds(value, depth)) or (_is_named(d.name) and not embedded)

    def goes_to_a_model(self, e: ast.AST, depth: int = _DEPTH) -> bool:
        """Whether what ``e`` gives is returned, or is an argument of what may be a model."""
        parent = self.syntax.parents.get(e)
        while isinstance(parent, ast.expr) and self._goes_on(e, parent):
            e, parent = parent, self.syntax.parents.get(parent)
        match parent:
            case ast.Return() | ast.Yield():
                return True
            case ast.keyword(arg=str(name)):
                call = self.syntax.parents.get(parent)
                return isinstance(call, ast.Call) and (name in _TIMES or self._may_be_a_model(call))
            case ast.Call(args=args):
                return e in args and self._may_be_a_model(parent)
            case ast.Assign() | ast.AnnAssign() | ast.For() if depth:
                return any(self.goes_to_a_model(use, depth - 1) for use in self._read_after(parent))
        return False

    def _goes_on(self, e: ast.AST, parent: ast.expr) -> bool:
        match parent:
            case ast.BinOp():
                return self.holds(parent)  # what mixes noise into latents is no timestep
            case ast.Subscript(value=value):
                return value is e
            case ast.Attribute(attr=attr):
                return attr in _SAME
            case ast.Call(func=func, args=args):
                return func is e or (last_name(func) in _LISTING and e in args)
        return isinstance(parent, (ast.Tuple, ast.List, ast.UnaryOp, ast.IfExp, ast.Starred))

    def _may_be_a_model(self, call: ast.Call) -> bool:
        name = last_name(call.func)
        known = self.syntax.builtin(call) or imported(self.syntax, call.func) is not None or name in _SCHEDULING
        embeds = "embedding" in name or "proj" in name
        return embeds or (not known and not name.startswith(_NO_MODELS))

    def _read_after(self, statement: ast.Assign | ast.AnnAssign | ast.For) -> list[ast.expr]:
        function = self.syntax.function_of(statement)
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        stores = {n for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        uses = self.flow_of(function).uses if function is not None else {}
        return [u for d, found in uses.items() if d.node in stores or d.node is statement for u in found]


def _is_named(name: str) -> bool:
    spoken = frozenset(words(name))
    return bool(spoken & _TIMES) and not spoken & _OTHERS
