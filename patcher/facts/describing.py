"""Statements that do nothing but write a message for people, and expressions that only look at what they describe."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence

from patcher.facts import torch_api as api
from patcher.facts.infer import Inference
from patcher.facts.log_calls import log_call
from patcher.facts.module_values import Bindings
from patcher.facts.syntax import Syntax, dotted
from patcher.facts.values import Kind
from patcher.facts.wording import words

_LOOKING = frozenset(
    "len str repr int float bool type round abs format isinstance issubclass getattr hasattr id hex bin oct ord chr "
    "callable range ascii".split()
)
#: Builtins that go through their argument: what is no container would be used up.
_GOING_THROUGH = frozenset("list tuple set frozenset dict sorted sum min max any all enumerate zip reversed".split())
_METHODS = (
    frozenset(n for kind in (str, tuple, frozenset, bytes) for n in dir(kind) if not n.startswith("_"))
    | frozenset("get keys values items detach cpu float double half int to numpy data_ptr state_dict".split())
    | frozenset(n for n in api.TENSOR_ONLY if not n.endswith("_"))
) - {"join"}
_FUNCTIONS = frozenset(
    "os.getpid os.getenv os.environ.get time.time time.perf_counter time.monotonic datetime.datetime.now "
    "socket.gethostname traceback.format_exc textwrap.dedent pprint.pformat json.dumps torch.is_tensor "
    "torch.is_grad_enabled torch.get_default_dtype torch.numel torch.finfo torch.iinfo torch.cuda.memory_allocated "
    "torch.cuda.max_memory_allocated torch.cuda.memory_reserved torch.cuda.is_available torch.cuda.current_device "
    "torch.distributed.get_rank torch.distributed.get_world_size torch.distributed.is_initialized".split()
)
#: Words of context managers that read messages.
_READING = frozenset("redirect capture captured catch caught record recorded warns raises logs assert".split())
_LEAVES = (ast.Constant, ast.Name, ast.Lambda, ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context)
_PLAIN = (
    ast.JoinedStr,
    ast.FormattedValue,
    ast.Attribute,
    ast.Subscript,
    ast.Slice,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Tuple,
    ast.List,
    ast.Dict,
    ast.Set,
    ast.keyword,
)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Describing:
    """Messages of one module."""

    def __init__(self, syntax: Syntax, inference: Inference) -> None:
        self.syntax = syntax
        self.inference = inference
        self.bindings = Bindings(syntax)

    def written_by(self, call: ast.Call) -> str | None:
        """How ``call`` is named when it writes a message for people, else None."""
        return log_call(call, self.syntax, self.bindings)

    def why_not_silent(self, statement: ast.stmt) -> str | None:
        """None when ``statement`` writes messages and changes nothing else; else what else it may do."""
        match statement:
            case ast.Expr(value=ast.Call() as call) if self.written_by(call) is not None:
                parts: list[ast.AST] = [*call.args, *call.keywords]
                if isinstance(call.func, ast.Attribute):
                    parts.append(_logger_call(call.func.value))
                return self._first(parts)
            case ast.If(test=test, body=body, orelse=orelse):
                return self.why_changing(test) or self._block([*body, *orelse], statement)
            case ast.For(target=ast.Name() as target, iter=items, body=body, orelse=[]):
                if not self._only_in(target.id, statement):
                    return f"`{target.id}` is used elsewhere"
                return self._why_used_up(items) or self._block(body, statement)
            case ast.Pass():
                return None
        return f"`{_text(statement)}` does more than to write a message"

    def why_read(self, statement: ast.stmt) -> str | None:
        """None when what ``statement`` writes goes to people; else what around it reads it."""
        for parent in self.syntax.ancestors(statement):
            for item in parent.items if isinstance(parent, (ast.With, ast.AsyncWith)) else ():
                e = item.context_expr
                called = dotted(e.func if isinstance(e, ast.Call) else e) or ""
                if not _READING.isdisjoint(words(called)):
                    return f"`{_text(e)}` reads what is written"
        return None

    def is_message(self, statement: ast.stmt) -> bool:
        """Whether ``statement`` is one call that writes a message, and changes nothing else."""
        return isinstance(statement, ast.Expr) and self.why_not_silent(statement) is None

    def _block(self, block: list[ast.stmt], around: ast.stmt) -> str | None:
        for s in block:
            if isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name):
                name = s.targets[0].id
                reason = self.why_changing(s.value) if self._only_in(name, around) else f"`{name}` is used elsewhere"
            else:
                reason = self.why_not_silent(s)
            if reason is not None:
                return reason
        return None

    def _only_in(self, name: str, around: ast.stmt) -> bool:
        """Whether the function uses ``name`` nowhere but in ``around``."""
        function = self.syntax.function_of(around)
        if function is None or any(isinstance(n, (ast.Global, ast.Nonlocal)) for n in ast.walk(function)):
            return False
        inside = set(ast.walk(around))
        outside = (n for n in ast.walk(function) if n not in inside)
        return not any(name in (getattr(n, "id", None), getattr(n, "arg", None)) for n in outside)

    def why_changing(self, e: ast.AST) -> str | None:
        """None when evaluating ``e`` only looks at things; else what in it may change something."""
        if isinstance(e, _LEAVES):
            return None
        if isinstance(e, _PLAIN):
            return self._first(list(ast.iter_child_nodes(e)))
        if isinstance(e, _COMPREHENSIONS):
            for g in e.generators:
                if (reason := self._why_used_up(g.iter) or self._first(g.ifs)) is not None:
                    return reason
            inner: list[ast.expr] = [e.key, e.value] if isinstance(e, ast.DictComp) else [e.elt]
            return self._first(inner)
        if isinstance(e, ast.Starred):
            return self._why_used_up(e.value)
        if isinstance(e, ast.Call):
            return self._why_call_changes(e)
        return f"`{_text(e)}` may change something"

    def _why_call_changes(self, call: ast.Call) -> str | None:
        func, what = call.func, self.syntax.qualified(call.func)
        rest: list[ast.AST] = [*call.args, *call.keywords]
        if isinstance(func, ast.Name) and self.syntax.is_builtin(func):
            kind = getattr(builtins, func.id)
            if func.id in _LOOKING or (isinstance(kind, type) and issubclass(kind, BaseException)):
                return self._first(rest)
            if func.id in _GOING_THROUGH:
                used = [reason for a in call.args if (reason := self._why_used_up(a)) is not None]
                return used[0] if used else self._first(call.keywords)
        elif what is not None:
            last = what.rpartition(".")[2]
            if what in _FUNCTIONS or what.startswith("math."):
                return self._first(rest)
            if what.startswith("torch.") and what not in api.RANDOM and last in api.TENSOR_ONLY | api.PREDICATES:
                return None if last.endswith("_") else self._first(rest)
        elif isinstance(func, ast.Attribute):
            own = self.inference.instance_attribute(func)
            if func.attr == "join" and len(call.args) == 1:
                return self.why_changing(func.value) or self._why_used_up(call.args[0])
            if own is None and func.attr in _METHODS:
                return self._first([func.value, *rest])
        return f"`{_text(call)}` may change something"

    def _why_used_up(self, items: ast.expr) -> str | None:
        """As ``why_changing``, for what is gone through: an iterator can be gone through once."""
        if isinstance(items, ast.Name) and self.inference.of(items).kind is Kind.UNKNOWN:
            return f"`{items.id}` may be an iterator, which can be gone through once"
        return self.why_changing(items)

    def _first(self, parts: Sequence[ast.AST]) -> str | None:
        return next((reason for p in parts if (reason := self.why_changing(p)) is not None), None)


def _logger_call(e: ast.expr) -> ast.AST:
    """What is evaluated to get the logger, without the calls that give one."""
    while isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute):
        e = e.func.value
    return e.func if isinstance(e, ast.Call) else e


def _text(e: ast.AST) -> str:
    text = " ".join(ast.unparse(e).split())
    return text if len(text) <= 60 else text[:57] + "..."
