"""Functions that work out a plain value from plain values, by means that no graph takes."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.syntax.tree import last_name, own_nodes
from patcher.facts.syntax.written import all_parameters

#: Methods of what `re` gives, and functions, that Dynamo does not trace.
_METHODS = frozenset({"groupdict", "finditer"})
_FUNCTIONS = frozenset("re.finditer os.path.exists os.path.isfile os.path.isdir os.cpu_count shutil.which".split())
#: Functions that may answer otherwise the next time: only where a run has seen that they do not.
_ONCE = frozenset(
    "subprocess.run subprocess.check_output open json.load json.loads os.listdir os.getenv os.environ.get glob.glob "
    "socket.gethostname platform.machine platform.node platform.system importlib.import_module "
    "importlib.util.find_spec importlib.metadata.version".split()
)
_CACHES = frozenset({"functools.lru_cache", "functools.cache"})
_PLAIN = frozenset("str bytes int float bool None".split())
_JOINTS = frozenset("Optional Union Tuple tuple Literal".split())
_STOPS = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.Lambda, ast.FunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Query:
    """``function`` asks by ``call``. ``refused``: why it cannot be asked while the graph is made.

    ``constant``: a run has seen it answer the same each time.
    """

    function: ast.FunctionDef
    call: ast.Call
    refused: str
    constant: bool = False


class Queries(Analysis):
    """Such functions of one module."""

    def of(self, call: ast.Call) -> Query | None:
        """The function that ``call``, which no graph takes, stands in; None when it is no such call."""
        function = self.syntax.function_of(call)
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        what = self.syntax.qualified(call.func) or self.syntax.builtin(call)
        if what == "open" and any(
            isinstance(a, ast.Constant) and set("wax+") & set(str(a.value)) for a in call.args[1:]
        ):
            return None
        asks = what in _FUNCTIONS or (name in _METHODS and not self._of_tensor(call))
        if not isinstance(function, ast.FunctionDef) or not (asks or what in _ONCE):
            return None
        constant = self._is_constant(function)
        return Query(function, call, self._why_not(function, constant), constant) if asks or constant else None

    def _of_tensor(self, call: ast.Call) -> bool:
        return isinstance(call.func, ast.Attribute) and self.inference.of(call.func.value).is_tensor

    def _is_constant(self, function: ast.FunctionDef) -> bool:
        """Whether a run has seen it answer the same each time, and being asked with nothing but plain values.

        One look is enough where the function keeps what it has answered.
        """
        returned = [n.value for n in own_nodes(function) if isinstance(n, ast.Return) and n.value is not None]
        answers = [seen for value in returned if (seen := self.inference.observed(value)) is not None]
        asked = [self.inference.observed(parameter) for parameter in all_parameters(function.args)]
        plain = all(seen is not None and seen.is_plain for seen in asked)
        kept = _CACHES & {self.syntax.qualified(d) for d in self.syntax.wrappers(function)}
        once = len({seen.value for seen in answers}) == 1 and all(seen.constant for seen in answers)
        return plain and once and (bool(kept) or sum(seen.looks for seen in answers) > 1)

    def _why_not(self, function: ast.FunctionDef, constant: bool) -> str:
        static = [ast.unparse(d) for d in function.decorator_list] == ["staticmethod"]
        decorators = {self.syntax.qualified(d) for d in self.syntax.wrappers(function)}
        if function.decorator_list and not static and not (constant and decorators <= _CACHES):
            return "its function is decorated"
        if self.syntax.function_of(function) is not None or (self.syntax.class_of(function) is not None and not static):
            return "its function has more at hand than plain values"
        for parameter in all_parameters(function.args):
            if not constant and not _is_plain(parameter.annotation):
                return f"`{parameter.arg}` is not annotated as text or a number"
        nodes = list(own_nodes(function))
        if any(isinstance(n, _STOPS) for n in nodes):
            return "its function does more than to answer"
        if any(isinstance(n, (ast.Attribute, ast.Subscript)) and not isinstance(n.ctx, ast.Load) for n in nodes):
            return "its function changes something"
        if not constant and not _is_plain(function.returns) and not all(map(self._answers, nodes)):
            return "what it answers may be changed by whoever asks"
        return ""

    def _answers(self, node: ast.AST) -> bool:
        """Whether ``node``, where it is a ``return``, returns what cannot change."""
        if not isinstance(node, ast.Return) or node.value is None:
            return True
        value = node.value
        if isinstance(value, ast.Call):
            return self.syntax.builtin(value) in ("bool", "int", "str", "tuple", "float", "len", "any", "all") or (
                self.syntax.qualified(value.func) or ""
            ).startswith("os.path.")
        denied = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
        return denied or isinstance(value, (ast.Constant, ast.Compare))


def _is_plain(annotation: ast.expr | None) -> bool:
    """Whether an annotation says text, numbers, or tuples of these."""
    match annotation:
        case ast.Constant(value=None):
            return True
        case ast.Constant(value=value) if value is ...:
            return True
        case ast.Name(id=name):
            return name in _PLAIN
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _is_plain(left) and _is_plain(right)
        case ast.Subscript(value=kind, slice=inner) if last_name(kind) in _JOINTS:
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return all(map(_is_plain, parts))
    return False
