"""Random numbers that the host draws (``random``, ``numpy.random``): where they go, and when they matter."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from patcher.facts.analysis import Analysis
from patcher.facts.tables import host_api
from patcher.facts.values.types import Category

#: Those of ``random`` that Dynamo does not trace; it does ``uniform``, ``randint`` and ``randrange``.
_PYTHON = frozenset(
    "random choice choices sample shuffle gauss normalvariate betavariate expovariate triangular getrandbits "
    "lognormvariate gammavariate vonmisesvariate paretovariate weibullvariate".split()
)
#: Those of ``numpy.random`` that give a number when no shape is asked for: name -> arguments before the shape.
_NUMPY_NUMBERS = {
    "rand": 0, "randn": 0, "random": 0, "random_sample": 0, "ranf": 0, "sample": 0, "standard_normal": 0,
    "uniform": 2, "normal": 2, "randint": 2, "binomial": 2, "beta": 2, "laplace": 2, "gamma": 2,
    "exponential": 1, "poisson": 1,
}  # fmt: skip
#: Those that Dynamo does not trace with a shape either.
_NUMPY_PLACES = frozenset("choice permutation shuffle multinomial".split())
#: Functions of Python that ask for the number itself.
_OF_THE_HOST = frozenset("int float round bool str".split())


@dataclass(frozen=True)
class Draw:
    """One draw. ``flag``: the expression that says whether what was drawn matters (``self.training``), or None.

    ``one``: it is ``random.random()``, for which ``random.uniform(0, 1)`` does as well, also in compiled code. ``why``:
    what keeps all of this from being known.
    """

    call: ast.Call
    flag: ast.expr | None = None
    one: bool = False
    why: str = ""


class HostRandom(Analysis):
    """Finds draws and follows what was drawn."""

    def of(self, call: ast.Call) -> Draw | None:
        """What becomes of the random number that ``call`` draws; None when it draws none."""
        what = self.syntax.qualified(call.func) or ""
        if not self._draws(call) or self._is_taken_in(call, what):
            return None
        for parent, child in self._around(call):
            if self._matters(parent, child) is not None:
                return Draw(call, why="in training, a branch depends on a random number of the host")
        uses = self._uses(call)
        if uses is None:
            return Draw(call, why="where the random numbers go is not known")
        flags = [self._flag(use) for use in uses]
        first = flags[0] if flags else None
        found = Draw(call, why="what is computed depends on random numbers of the host, not in training alone")
        if first is not None and all(f is not None and ast.dump(f) == ast.dump(first) for f in flags):
            found = Draw(call, flag=first)
        elif what == "random.random" and uses and all(map(self._meets_a_tensor, uses)):
            found = Draw(call)
        if found.why:
            return found
        if _does_something(*call.args, *(k.value for k in call.keywords)):
            return Draw(call, why="what the draw is asked for does something by itself")
        if what == "random.random" and not call.args and not call.keywords:
            # compiled, a tensor of integers becomes one of float64 by it
            found = replace(found, one=all(_compares(self.syntax.parents[u], u) or self._meets_floats(u) for u in uses))
            if found.one and self._is_traced:  # nothing is gained by the other function
                if not any(self._is_asked(u) and not self._is_below_flag(u) for u in uses):
                    return None
                found = replace(found, one=False)
        if self._seeded(call):
            return Draw(call, why="the host's generator is set up here, so that the number is not by chance")
        return found

    @property
    def _is_traced(self) -> bool:
        return self.facts.settings.target_torch >= host_api.RANDOM_SINCE

    def is_drawn_once(self, call: ast.Call) -> bool:
        """Whether compiled code has drawn when it was compiled what ``call`` draws, on the torch that is meant."""
        return self._is_traced and self.syntax.qualified(call.func) in host_api.DRAWN_ONCE

    def _is_taken_in(self, call: ast.Call, what: str) -> bool:
        """Whether the number is one that a graph holds, and nothing asks the host for it."""
        return what == "random.random" and self._is_traced and not any(map(self._is_asked, self._uses(call) or ()))

    def _is_below_flag(self, use: ast.expr) -> bool:
        return any(self._matters(parent, child) is not None for parent, child in self._around(use))

    def _is_asked(self, use: ast.expr) -> bool:
        """Whether a branch depends on ``use``, or what the host computes: all of these break the graph."""
        child: ast.AST = use
        for parent, child in self._around(use):
            match parent:
                case ast.Compare():
                    continue
                case ast.If() | ast.While() | ast.IfExp():
                    return child is parent.test
                case ast.comprehension():
                    return child in parent.ifs
                case ast.BinOp(left=left, right=right):
                    other = self.inference.of(right if child is left else left)
                    return other.is_number and not other.data
                case ast.Call():
                    what = self.syntax.qualified(parent.func) or ""
                    return what.startswith("math.") or self.syntax.builtin(parent) in _OF_THE_HOST
                case _:
                    return isinstance(parent, (ast.BoolOp, ast.UnaryOp, ast.FormattedValue))
        return False

    def _seeded(self, call: ast.Call) -> bool:
        """Whether the function sets the state of a generator of the host."""
        inside = [n for n in ast.walk(self.syntax.function_of(call) or call) if isinstance(n, ast.Call)]
        named = [(self.syntax.qualified(c.func) or "").rpartition(".") for c in inside]
        return any(m in ("random", "numpy.random") and n in ("seed", "setstate", "set_state") for m, _, n in named)

    def is_first(self, call: ast.Call) -> bool:
        """Whether ``call`` is the first draw of its function."""
        function = self.syntax.function_of(call)
        calls = [n for n in ast.walk(function or call) if isinstance(n, ast.Call) and self.of(n) is not None]
        return min(calls, key=lambda c: (c.lineno, c.col_offset)) is call

    def _draws(self, call: ast.Call) -> bool:
        module, _, name = (self.syntax.qualified(call.func) or "").rpartition(".")
        return (module == "random" and name in _PYTHON) or (module == "numpy.random" and self._breaks(call, name))

    def _breaks(self, call: ast.Call, name: str) -> bool:
        """Whether this draw of numpy's is one that is not traced: an array of numbers is."""
        if name in _NUMPY_PLACES:
            return True
        shaped = len(call.args) > _NUMPY_NUMBERS.get(name, -1) or any(k.arg in ("size", None) for k in call.keywords)
        return name in _NUMPY_NUMBERS and not shaped

    def _uses(self, call: ast.Call) -> list[ast.expr] | None:
        """The call itself, or all reads of the one name that it is assigned to; None when that is not all."""
        parent = self.syntax.parents[call]
        if not isinstance(parent, ast.Assign):
            return [call]
        function = self.syntax.function_of(call)
        target = parent.targets[0]
        if function is None or len(parent.targets) != 1 or not isinstance(target, ast.Name):
            return None
        flow = self.flow_of(function)
        definition = flow.by_node.get(target)
        if definition is None or target.id in flow.captured:
            return None
        uses = list(flow.uses.get(definition, ()))
        alone = all(flow.reaching[use] == frozenset({definition}) for use in uses)
        return [*uses] if alone and uses else None

    def _around(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """The nodes around ``node`` in its function, each with its child that holds ``node``."""
        child = node
        for parent in self.syntax.ancestors(node):
            if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
                return
            yield parent, child
            child = parent

    def _flag(self, use: ast.expr) -> ast.expr | None:
        """The flag without which nothing depends on ``use``."""
        for parent, child in self._around(use):
            flag = self._matters(parent, child)
            if flag is None and isinstance(parent, ast.BoolOp) and _compares(child, use):
                flag = self._later(parent, child)
            if flag is not None:
                return flag
        return None

    def _later(self, test: ast.BoolOp, child: ast.AST) -> ast.expr | None:
        """The flag without which ``test`` is the same whatever ``child`` is, and nothing else happens either."""
        wanted = isinstance(test.op, ast.And)
        for value in test.values[test.values.index(child) + 1 :]:  # type: ignore[arg-type]
            if (flag := self._set(value, wanted)) is not None:
                return flag
            if _does_something(value):
                return None
        return None

    def _matters(self, parent: ast.AST, child: ast.AST) -> ast.expr | None:
        """The flag that has to be set for ``child`` of ``parent`` to be evaluated."""
        match parent:
            case ast.BoolOp(op=op, values=values) if child in values:
                wanted = isinstance(op, ast.And)
                earlier = values[: values.index(child)]
                return next((f for v in earlier if (f := self._set(v, wanted)) is not None), None)
            case ast.If(test=test, body=body) if child is not test:
                return self._set(test, child in body)
            case ast.IfExp(test=test, body=taken) if child is not test:
                return self._set(test, child is taken)
        return None

    def _set(self, test: ast.expr, outcome: bool) -> ast.expr | None:
        """The flag that is set whenever compiled code finds that ``test`` is ``outcome``."""
        match test:
            case ast.Call(func=ast.Name(id="bool") as func, args=[inner], keywords=[]) if self.syntax.is_builtin(func):
                return self._set(inner, outcome)
            case ast.Attribute(value=ast.Name(), attr="training"):
                own = self.inference.instance_attribute(test) is not None
                return test if outcome and own else None
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._set(operand, not outcome)
            case ast.BoolOp(op=op, values=values):
                never = self.facts.eager_tests.says_eager if outcome else self.facts.eager_tests.says_compiled
                flags = [self._set(v, outcome) for v in values if not never(v)]
                if isinstance(op, ast.And) is outcome:  # one of them is enough
                    return next((f for f in flags if f is not None), None)
                return flags[0] if flags and all(f is not None for f in flags) else None
        return None

    def _meets_a_tensor(self, use: ast.expr) -> bool:
        """Whether ``use`` is a number that a tensor with dimensions is multiplied with or added to."""
        parent = self.syntax.parents[use]
        if not isinstance(parent, ast.BinOp) or not isinstance(parent.op, (ast.Add, ast.Sub, ast.Mult)):
            return False
        other = self.inference.of(parent.right if parent.left is use else parent.left)
        return other.is_tensor and other.rank is not None and other.rank.offset > 0

    def _meets_floats(self, use: ast.expr) -> bool:
        """Whether the tensor that ``use`` meets is one of floats (third presumption)."""
        parent = self.syntax.parents[use]
        if not isinstance(parent, ast.BinOp):
            return False
        dtype = self.inference.of(parent.right if parent.left is use else parent.left).dtype
        return dtype is None or dtype.category in (Category.FLOAT, Category.UNKNOWN)


def _compares(e: ast.AST, use: ast.expr) -> bool:
    """Whether ``e`` does nothing with ``use`` but compare it."""
    return isinstance(e, ast.Compare) and len(e.ops) == 1 and use in (e.left, *e.comparators)


def _does_something(*expressions: ast.expr) -> bool:
    """Whether something may happen when these are evaluated, or not."""
    doing = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
    plain = ("len", "range", "list", "int", "float", "min", "max", "abs", "bool")
    for n in (n for e in expressions for n in ast.walk(e)):
        if isinstance(n, doing) or (isinstance(n, ast.Call) and ast.unparse(n.func) not in plain):
            return True
    return False
