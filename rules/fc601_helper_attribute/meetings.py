"""Whether a value that comes from the host meets a tensor, and whether it must be a plain number where it does."""

from __future__ import annotations

import ast
import enum

from patcher.facts.analysis import Analysis
from patcher.facts.syntax.classes import parameter_at
from patcher.facts.syntax.tree import FunctionNode, dotted
from patcher.facts.tables import host_api
from patcher.facts.values.types import Kind

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_PROPERTIES = ("property", "cached_property", "functools.cached_property")
_DEPTH = 4


class Meeting(enum.IntEnum):
    """``ANY``: it meets a tensor. ``NUMBER``: in a place where nobody puts a tensor (an ``==``, a fill value)."""

    NONE = 0
    ANY = 1
    NUMBER = 2


class Meetings(Analysis):
    """Follows values through names, private methods and results, a few steps."""

    def of(self, e: ast.expr, depth: int = _DEPTH) -> Meeting:
        """How the value of ``e`` meets a tensor."""
        if not depth:
            return Meeting.NONE
        parent = self.syntax.parents[e]
        match parent:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
                other = right if e is left else left
                found = self.is_tensor(other) or self.used_as_tensor(parent)
                return Meeting.NUMBER if found else Meeting.NONE
            case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()], comparators=[right]):
                other = right if e is left else left
                return Meeting.ANY if self.is_tensor(other) or self.used_as_tensor(parent) else Meeting.NONE
            case ast.BinOp(left=left, right=right):
                return Meeting.ANY if self.is_tensor(right if e is left else left) else Meeting.NONE
            case ast.UnaryOp(op=ast.USub()) | ast.List() | ast.Tuple() | ast.Starred():
                return self.of(parent, depth)
            case ast.IfExp(test=test) if e is not test:
                return self.of(parent, depth)
            case ast.keyword(arg=str(keyword)):
                call = self.syntax.parents[parent]
                assert isinstance(call, ast.Call)
                return self._argument(e, call, keyword, depth)
            case ast.Call() if e is not parent.func:
                return self._argument(e, parent, parent.args.index(e), depth)
            case ast.Assign(targets=[ast.Name() as name]) | ast.AnnAssign(target=ast.Name() as name):
                return max((self.of(u, depth - 1) for u in self._uses(name)), default=Meeting.NONE)
            case ast.Return():
                return max((self.of(c, depth - 1) for c in self.results(e)), default=Meeting.NONE)
        return Meeting.NONE

    def _argument(self, e: ast.expr, call: ast.Call, key: str | int, depth: int) -> Meeting:
        what = self.syntax.qualified(call.func) or ""
        name = what.rpartition(".")[2] if what else call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if what.startswith("torch."):
            first = 0
        elif isinstance(call.func, ast.Attribute) and self._is_receiver(call.func):
            first = 1
        elif dotted(call.func) in ("int", "float"):
            return Meeting.NUMBER if self.of(call, depth - 1) else Meeting.NONE
        else:
            parameter = self._parameter(call, key)
            return max((self.of(u, depth - 1) for u in parameter), default=Meeting.NONE)
        key = key + first if isinstance(key, int) else key
        return Meeting.NUMBER if key in host_api.NUMBER_ARGUMENTS.get(name, ()) else Meeting.ANY

    def _is_receiver(self, func: ast.Attribute) -> bool:
        return self.is_tensor(func.value) or (func.attr in host_api.NUMBER_METHODS and not self._is_own(func))

    def _is_own(self, func: ast.expr) -> bool:
        return self.inference.instance_attribute(func) is not None

    def _parameter(self, call: ast.Call, key: str | int) -> list[ast.expr]:
        """The uses of the parameter that argument ``key`` of ``call`` is bound to, in a function of this file."""
        function = self._callee(call.func)
        if function is None:
            return []
        flow, argument = self.flow_of(function), parameter_at(function, key, self._is_own(call.func))
        return list(flow.uses.get(flow.by_node[argument], ())) if argument is not None else []

    def _callee(self, func: ast.expr) -> FunctionNode | None:
        own = self.inference.instance_attribute(func)
        if own is not None:
            return self.inference.class_facts(own[0]).methods.get(own[1])
        if isinstance(func, ast.Name):
            found = [s for s in self.syntax.tree.body if isinstance(s, _FUNCTIONS) and s.name == func.id]
            return found[0] if len(found) == 1 else None
        return None

    def _uses(self, name: ast.Name) -> list[ast.expr]:
        function = self.syntax.function_of(name)
        if function is None:
            return []
        flow = self.inference.flow_of(function)
        definition = flow.by_node.get(name)
        return list(flow.uses.get(definition, ())) if definition is not None else []

    def results(self, e: ast.AST) -> list[ast.expr]:
        """Where the result of the method (or function of this file) around ``e`` arrives."""
        function = self.syntax.function_of(e)
        if function is None:
            return []
        name, found = function.name, list[ast.expr]()
        if self.syntax.method_of(function) is function:
            cls = self.syntax.class_of(function)
            read = any(dotted(d) in _PROPERTIES for d in function.decorator_list)
            for node in self.syntax.by_type[ast.Attribute]:
                if node.attr == name and self.inference.instance_attribute(node) == (cls, name):
                    parent = self.syntax.parents[node]
                    if read:
                        found.append(node)
                    elif isinstance(parent, ast.Call) and parent.func is node:
                        found.append(parent)
            return found
        for called in self.syntax.by_type[ast.Name]:
            parent = self.syntax.parents[called]
            if called.id == name and isinstance(parent, ast.Call) and parent.func is called:
                found.append(parent)
        return found

    # --- tensors ----------------------------------------------------------------------------------------------------

    def is_tensor(self, e: ast.expr, depth: int = _DEPTH) -> bool:
        """Whether ``e`` is a tensor: by what is known of it, or because it goes where only tensors go."""
        if self.inference.of(e).is_tensor:
            return True
        if not depth or not isinstance(e, ast.Name) or self.inference.of(e).kind is not Kind.UNKNOWN:
            return False
        function = self.syntax.function_of(e)
        definitions = self.inference.definitions(e)
        if function is None or not definitions:
            return False
        flow = self.inference.flow_of(function)
        for d in definitions:
            if any(map(self.inference.is_tensor_use, flow.uses.get(d, ()))):
                return True
            if d.how == "assign" and d.value is not None and not d.path and self.is_tensor(d.value, depth - 1):
                return True
            if d.how == "parameter" and any(self.is_tensor(a, depth - 1) for a in self._passed(function, d.name)):
                return True
        return False

    def _passed(self, function: FunctionNode, name: str) -> list[ast.expr]:
        """What the calls in this file pass for the parameter ``name``."""
        names = [a.arg for a in [*function.args.posonlyargs, *function.args.args]]
        if not function.body or name not in names:
            return []
        position = names.index(name) - (1 if self.syntax.method_of(function) is function else 0)
        found: list[ast.expr] = []
        for call in self.results(function.body[0]):
            if isinstance(call, ast.Call):
                found += [k.value for k in call.keywords if k.arg == name]
                if 0 <= position < len(call.args):
                    found.append(call.args[position])
        return found

    def used_as_tensor(self, e: ast.expr, depth: int = _DEPTH) -> bool:
        """Whether the value of ``e`` is used as only a tensor can be."""
        if not depth:
            return False
        if self.inference.is_tensor_use(e):
            return True
        parent = self.syntax.parents[e]
        match parent:
            case ast.UnaryOp(op=ast.Invert()):
                return True
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr() | ast.BitXor()):
                other = parent.right if e is parent.left else parent.left
                return self.is_tensor(other) or self.used_as_tensor(parent, depth - 1)
            case ast.BinOp():
                return self.is_tensor(parent.right if e is parent.left else parent.left)
            case ast.Subscript(value=base) if parent.slice is e:
                return self.is_tensor(base)
            case ast.keyword() | ast.Call():
                call = self.syntax.parents[parent] if isinstance(parent, ast.keyword) else parent
                assert isinstance(call, ast.Call)
                if e is call.func:
                    return False
                if (self.syntax.qualified(call.func) or "").startswith("torch."):
                    return True
                return isinstance(call.func, ast.Attribute) and self._is_receiver(call.func)
            case ast.Assign(targets=[ast.Name() as name]) | ast.AnnAssign(target=ast.Name() as name):
                return any(self.used_as_tensor(u, depth - 1) for u in self._uses(name))
            case ast.Return():
                return any(self.used_as_tensor(c, depth - 1) for c in self.results(e))
        return False
