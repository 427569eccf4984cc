"""Which expressions hold timesteps of a diffusion process, or its sigmas, by what they are computed from."""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.tree import last_name
from patcher.facts.syntax.written import defaults, integer
from patcher.facts.tables.wording import words
from patcher.facts.values.module_values import imported

_TIMES = frozenset({"timestep", "timesteps"})
_SIGMAS = frozenset({"sigma", "sigmas"})
#: What is made of a timestep by these is none any more.
_EMBEDDED = frozenset(
    "embed embeds embedding embeddings embedder emb proj projection cond mlp weight weights weighting loss index "
    "indices mask ratio ids dtype features feature fourier freqs encoding".split()
)
#: How many there are, and which is the first or last: numbers.
_BOUNDS = frozenset({"num", "min", "max", "n", "number", "start", "end", "total"})
#: Methods and functions that give the same numbers in another form.
SAME = frozenset(
    "to float double half bfloat16 type type_as long int round floor clamp clip view reshape expand expand_as repeat "
    "repeat_interleave unsqueeze squeeze flatten flip cuda cpu contiguous detach clone requires_grad_".split()
)
_WHOLE = frozenset({"long", "int", "round", "floor"})
_DEPTH = 8
#: Integers up to here are told apart in bfloat16.
EXACT = 256


class Kind(enum.IntEnum):
    """From what says least to what says most. NAMED: a parameter of that name. BOUND: how many timesteps there are."""

    NAMED = 1
    SIGMA = 2
    BOUND = 3
    TIMESTEP = 4


@dataclass(frozen=True)
class Origin:
    """``whole``: they are integers, also where their dtype is floating; ``few``: no more than bfloat16 tells apart."""

    kind: Kind
    whole: bool = False
    few: bool = False


class Origins(Analysis):
    """Expressions of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._known: dict[ast.expr, Origin | None] = {}

    def of(self, e: ast.expr, depth: int = _DEPTH) -> Origin | None:
        """What ``e`` holds, or None where nothing says that it has to do with timesteps."""
        if not depth:
            return None
        if e not in self._known:
            self._known[e] = None  # what leads back to itself says nothing more
            self._known[e] = self._of(e, depth - 1)
        return self._known[e]

    def _of(self, e: ast.expr, depth: int) -> Origin | None:
        match e:
            case ast.Attribute(attr=attr):
                return _named(attr)
            case ast.Subscript(value=value, slice=key):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    return _named(key.value)
                return self.of(value, depth)
            case ast.UnaryOp(operand=operand) | ast.NamedExpr(value=operand):
                return self.of(operand, depth)
            case ast.IfExp(body=a, orelse=b):
                return _either([self.of(a, depth), self.of(b, depth)])
            case ast.BinOp():
                return self._computed(e, depth)
            case ast.Call():
                return self._call(e, depth)
            case ast.Name():
                return self._name(e, depth)
        return None

    def _computed(self, e: ast.BinOp, depth: int) -> Origin | None:
        a, b = self.of(e.left, depth), self.of(e.right, depth)
        numbers = self._is_number(e.left, depth), self._is_number(e.right, depth)
        if a is not None and b is not None:
            if max(a.kind, b.kind) is Kind.BOUND and min(a.kind, b.kind) is not Kind.BOUND:
                return Origin(Kind.TIMESTEP)  # sigmas * num_train_timesteps
            return Origin(max(a.kind, b.kind), a.whole and b.whole)
        found, number = (a, numbers[1]) if a is not None else (b, numbers[0])
        if found is None:
            return None
        if number:
            return Origin(found.kind, found.whole and not isinstance(e.op, ast.Div))
        if found.kind is Kind.BOUND and isinstance(e.op, (ast.Mult, ast.Add)):
            return Origin(Kind.TIMESTEP)  # a random number between 0 and 1, times how many there are
        return None

    def _call(self, call: ast.Call, depth: int) -> Origin | None:
        what, name = imported(self.syntax, call.func) or "", last_name(call.func)
        torchs = what.removeprefix("torch.") if what.startswith("torch.") else ""
        if torchs in ("randint", "arange", "linspace"):
            found = [o for a in call.args if (o := self.of(a, depth)) is not None and o.kind >= Kind.BOUND]
            limit = integer(call.args[1 if len(call.args) > 2 else 0]) if call.args else None
            return (
                Origin(Kind.TIMESTEP, torchs != "linspace", limit is not None and limit <= EXACT + 1) if found else None
            )
        if torchs in ("full", "tensor", "as_tensor", "cat", "stack", "clamp", "round", "floor", "full_like"):
            given = call.args[1] if torchs.startswith("full") and len(call.args) > 1 else next(iter(call.args), None)
            while isinstance(given, ast.BinOp) and isinstance(given.left, ast.List):
                given = given.left
            if isinstance(given, (ast.List, ast.Tuple)):
                given = next(iter(given.elts), None)
            found_in = self.of(given, depth) if given is not None else None
            return found_in if found_in is None or found_in.kind is not Kind.BOUND else None
        if torchs:
            return None
        if name in ("tqdm", "list", "reversed", "sorted", "progress_bar") and call.args:
            return self.of(call.args[0], depth)
        if isinstance(call.func, ast.Attribute) and name in SAME:
            found_in = self.of(call.func.value, depth)
            whole = name in _WHOLE and found_in is not None
            return Origin(found_in.kind, True, found_in.few) if whole and found_in is not None else found_in
        named = _named(name)
        return named if named is not None and named.kind is Kind.TIMESTEP else None

    def _name(self, e: ast.Name, depth: int) -> Origin | None:
        definitions = self.inference.definitions(e)
        function = self.syntax.function_of(e)
        if any(d.how == "augmented" for d in definitions) and function is not None:
            every = self.inference.flow_of(function).by_node.values()
            definitions = frozenset({*definitions, *(d for d in every if d.name == e.id)})
        return _either([self._defined(d, depth) for d in definitions])

    def _defined(self, d: Definition, depth: int) -> Origin | None:
        if d.how == "parameter":
            named = _named(d.name)
            is_one = {d.name} <= {*_TIMES, *_SIGMAS, "t"}
            return Origin(Kind.NAMED) if is_one or (named is not None and named.kind is Kind.TIMESTEP) else None
        value, path = d.part
        if value is None or d.how not in ("assign", "iteration"):
            return None
        if d.how == "iteration":
            while (
                isinstance(value, ast.Call)
                and last_name(value.func) in ("enumerate", "tqdm", "progress_bar")
                and value.args
            ):
                path = path[1:] if last_name(value.func) == "enumerate" and path[:1] == (1,) else path
                value = value.args[0]
            if isinstance(value, ast.Call) and last_name(value.func) == "zip" and path and path[0] < len(value.args):
                value, path = value.args[path[0]], path[1:]
            return self.of(value, depth) if not path else None
        if not path:
            return self.of(value, depth)
        named = _named(d.name)
        called = _named(last_name(value.func), several=True) if isinstance(value, ast.Call) else None
        return named if called is not None and called.kind is Kind.TIMESTEP else None

    def _is_number(self, e: ast.expr, depth: int) -> bool:
        """Whether ``e`` is one number: written, or of the settings, or computed from such."""
        match e:
            case ast.Constant():
                return True
            case ast.Attribute(value=owner):
                return not depth or last_name(owner) in ("args", "config", "cfg", "opt", "math")
            case ast.UnaryOp(operand=operand):
                return self._is_number(operand, depth)
            case ast.BinOp(left=a, right=b):
                return self._is_number(a, depth) and self._is_number(b, depth)
            case ast.IfExp(body=a, orelse=b):
                return self._is_number(a, depth) and self._is_number(b, depth)
            case ast.Call(func=ast.Name(id="len" | "int" | "float" | "max" | "min")):
                return True
            case ast.Name() if depth:
                definitions = self.inference.definitions(e)
                return bool(definitions) and all(self._binds_number(d, depth - 1) for d in definitions)
        return False

    def _binds_number(self, d: Definition, depth: int) -> bool:
        function = self.syntax.parents.get(self.syntax.parents.get(d.node, d.node))
        if d.how == "parameter" and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            value = defaults(function.args).get(d.name)
            return isinstance(value, ast.Constant) and isinstance(value.value, (int, float))
        return d.how == "assign" and not d.path and d.value is not None and self._is_number(d.value, depth)


def _named(name: str, several: bool = False) -> Origin | None:
    """What a name of an attribute or function says. ``several``: it may speak of other things as well."""
    spoken = frozenset(words(name))
    if (spoken & _EMBEDDED and not several) or not spoken & (_TIMES | _SIGMAS):
        return None
    if not spoken & _TIMES:
        return Origin(Kind.SIGMA)
    return Origin(Kind.BOUND, whole=True) if spoken & _BOUNDS else Origin(Kind.TIMESTEP)


def _either(found: list[Origin | None]) -> Origin | None:
    """Of several values that one thing may have."""
    known = [o for o in found if o is not None]
    if not known:
        return None
    return Origin(max(o.kind for o in known), all(o.whole for o in known), all(o.few for o in known))
