"""Statements that do nothing but write a message for people, and expressions that only look at what they describe."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.checks.caught import Caught
from patcher.facts.checks.log_calls import is_level, is_logger, log_call
from patcher.facts.syntax.tree import dotted
from patcher.facts.syntax.written import short
from patcher.facts.tables import call_effects
from patcher.facts.tables import torch_api as api
from patcher.facts.tables.wording import words
from patcher.facts.values.module_values import Bindings, imported
from patcher.facts.values.types import Kind

_LOOKING = frozenset(
    "len str repr int float bool type round abs format isinstance issubclass getattr hasattr id hex bin oct ord chr "
    "callable range ascii".split()
)
#: Builtins that go through their argument: what is no container would be used up.
#: Attributes that every object has, and every class: no `__getattr__` is asked for them.
_OF_OBJECTS = frozenset({"__class__", "__module__"})
_OF_CLASSES = frozenset({"__name__", "__qualname__"})
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
#: Those that change a module in place.
_CONVERTING = frozenset("to cpu float double half int bool long short type".split())
#: What gives something that can be gone through once.
_ONCE = frozenset("iter map filter zip enumerate reversed".split())
#: Errors that a message may end in.
_FAILING = ("RuntimeError", "ValueError", "TypeError", "IndexError", "KeyError", "ZeroDivisionError")
#: Decorators that remember for which arguments a function has run.
_CACHING = frozenset({"functools.lru_cache", "=functools.lru_cache", "functools.cache", "=functools.cache"})
_PROPERTIES = frozenset({"property", "cached_property"})
#: Words of context managers that read messages.
_READING = frozenset("redirect capture captured catch caught record recorded warns raises logs assert".split())
#: What a set or a dictionary asks of its keys.
_KEYED = ("__hash__", "__eq__")
#: What a field of ``str.format`` asks of an argument: attributes and items.
_FIELD = re.compile(r"\{\w*[.\[]")
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


class Describing(Analysis):
    """Messages of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.caught = facts.ask(Caught)
        self.bindings = Bindings(self.syntax)
        self._messages: dict[ast.stmt, bool] = {}

    def written_by(self, call: ast.Call) -> str | None:
        """How ``call`` is named when it writes a message for people, else None."""
        return log_call(call, self.syntax, self.bindings)

    def is_method(self, call: ast.Call) -> bool:
        """Whether ``call``, which writes a message, is one of a logger's method."""
        func = call.func
        return isinstance(func, ast.Attribute) and is_logger(func.value, self.syntax, self.bindings)

    def why_not_silent(self, statement: ast.stmt) -> str | None:
        """None when ``statement`` writes messages and changes nothing else; else what else it may do."""
        match statement:
            case ast.Expr(value=ast.Call() as call) if self.written_by(call) is not None:
                parts: list[ast.AST] = [*call.args, *call.keywords]
                method = call.func.attr if isinstance(call.func, ast.Attribute) else None
                if self._is_replaced("print") if method is None else self.is_kept(method):
                    return f"`{method or 'print'}` is a function of the project, which may keep what it is told"
                if isinstance(call.func, ast.Attribute):
                    parts.append(_logger_call(call.func.value))
                return self._first(parts) or self._why_shown(call.args)
            case ast.If(test=test, body=body, orelse=orelse):
                return self.why_changing(test) or self._why_true(test) or self._block([*body, *orelse], statement)
            case ast.For(target=ast.Name() as target, iter=items, body=body, orelse=[]):
                if not self._only_in(target.id, statement):
                    return f"`{target.id}` is used elsewhere"
                return self._why_used_up(items) or self._block(body, statement)
            case ast.Pass():
                return None
        return f"`{short(statement)}` does more than to write a message"

    def is_kept(self, name: str) -> bool:
        """Whether a function of the project that is called ``name`` may keep what it is told, or change something."""
        return self.project.effects.changing([name]) or self._is_replaced(name)

    def _is_replaced(self, name: str) -> bool:
        """Whether code puts a function under that name that may keep what it is told."""
        put = self.project.attributes.put(name) if name in self.project.foreign_stores else []
        return put is None or not all(self._only_hands_on(f, name) for f in put)

    def _only_hands_on(self, function: str, name: str) -> bool:
        """Whether the dotted ``function`` does no more than to call other methods of the logger that it is put on."""
        summary = self.project.function(function)
        if summary is None:
            return False
        does = summary.does
        if (
            not {c for c in does.calls if not c.startswith("?.")} <= _CACHING
        ):  # methods of the logger are looked at below
            return False
        if does.own or does.sets or does.writes or does.runs or does.reshapes:
            return False
        methods = [m.rpartition(".")[2] for m in summary.mentions if m.startswith(("self.", "."))]
        return all(m != name and is_level(m) and not self.is_kept(m) for m in methods)

    def why_read(self, statement: ast.stmt) -> str | None:
        """None when what ``statement`` writes goes to people; else what around it reads it."""
        for parent in self.syntax.ancestors(statement):
            for item in parent.items if isinstance(parent, (ast.With, ast.AsyncWith)) else ():
                e = item.context_expr
                called = dotted(e.func if isinstance(e, ast.Call) else e) or ""
                if not _READING.isdisjoint(words(called)):
                    return f"`{short(e)}` reads what is written"
        if self._redirected:
            return "this file reads what is written"
        if self._is_logged(statement) and (reader := self.project.log_reader) is not None:
            return f"`{reader}` of the project gets what is logged"
        looked_for = self._why_looked_for(statement)
        return looked_for if looked_for or _is_total(statement) else self.caught.why(statement, _FAILING)

    def _is_logged(self, statement: ast.stmt) -> bool:
        """Whether a message in ``statement`` goes through ``logging``, as warnings may."""
        written = {self.written_by(n) for n in ast.walk(statement) if isinstance(n, ast.Call)}
        return not written <= {None, "print"}

    def _why_looked_for(self, statement: ast.stmt) -> str | None:
        """Why ``statement`` may be there to find out whether an attribute is: a ``try`` around it says so by name."""
        if not any(isinstance(n, ast.Attribute) for n in ast.walk(statement)):
            return None
        for parent in self.syntax.ancestors(statement):
            if not isinstance(parent, ast.Try) or not any(statement in ast.walk(s) for s in parent.body):
                continue
            named = (n for h in parent.handlers if h.type is not None for n in ast.walk(h.type))
            if any(isinstance(n, ast.Name) and n.id == "AttributeError" for n in named):
                return "an attribute that is missing is caught around it"
        return None

    @cached_property
    def _redirected(self) -> bool:
        """Whether the file puts something else in the place of the streams."""
        attributes = self.syntax.by_type[ast.Attribute]
        stored = (imported(self.syntax, n) for n in attributes if isinstance(n.ctx, ast.Store))
        if any(what in ("sys.stdout", "sys.stderr") for what in stored):
            return True
        calls = self.syntax.by_type[ast.Call]
        return any(_called(c) in ("redirect_stdout", "redirect_stderr") for c in calls)

    def is_message(self, statement: ast.stmt) -> bool:
        """Whether ``statement`` is one call that writes a message, and changes nothing else."""
        if statement not in self._messages:
            self._messages[statement] = isinstance(statement, ast.Expr) and self.why_not_silent(statement) is None
        return self._messages[statement]

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
        if isinstance(e, ast.Attribute) and self._is_computed(e):
            return f"`{short(e)}` is worked out when it is read"
        if (reason := self._why_special(e)) is not None:
            return reason
        if isinstance(e, ast.Subscript) and any(_called(v) == "defaultdict" for v in self.bindings.values(e.value)):
            return f"`{short(e)}` may add an item"
        searches = isinstance(e, ast.Compare) and any(isinstance(op, (ast.In, ast.NotIn)) for op in e.ops)
        if searches and any(map(self._is_iterator, e.comparators)):  # type: ignore[attr-defined]
            return f"`{short(e)}` goes through an iterator"
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
        return f"`{short(e)}` may change something"

    def _why_special(self, e: ast.AST) -> str | None:
        """What a special method of a class of the project may change that ``e``, no call but of a builtin, runs."""
        match e:
            case ast.FormattedValue(value=value):
                return self._why_shown([value])
            case ast.Subscript(value=value, slice=key):
                found = self._why_methods(["__getitem__", "__missing__"], [value])
                return found or self._why_methods([*_KEYED, "__index__"], [key])
            case ast.Set(elts=keys) | ast.Dict(keys=keys):
                return self._why_methods(_KEYED, [k for k in keys if k is not None])
            case ast.Compare(left=left, ops=ops, comparators=others):
                names = frozenset[str]().union(*(call_effects.OPERATOR_METHODS[type(op)] for op in ops))
                asked = [e for op, e in zip(ops, others, strict=True) if isinstance(op, (ast.In, ast.NotIn))]
                inside = self._why_methods(call_effects.CONTAINING_METHODS, asked) if asked else None
                return inside or (self._why_methods(names, [left, *others]) if names else None)
            case ast.BinOp(left=left, op=op, right=right):
                shown = self._why_shown([right]) if isinstance(op, ast.Mod) else None
                if isinstance(op, ast.Mod) and shown is None and not isinstance(right, (ast.Tuple, ast.Dict)):
                    shown = self._why_methods(["__getitem__", "__missing__"], [right])
                return shown or self._why_methods(call_effects.OPERATOR_METHODS[type(op)], [left, right])
            case ast.BoolOp(values=values):
                return next((reason for v in values if (reason := self._why_true(v)) is not None), None)
            case ast.UnaryOp(op=ast.Not(), operand=value) | ast.IfExp(test=value):
                return self._why_true(value)
            case ast.UnaryOp(op=op, operand=value):
                return self._why_methods(call_effects.OPERATOR_METHODS[type(op)], [value])
            case ast.Call(func=ast.Name(id=name) as func, args=args) if self.syntax.is_builtin(func):
                looking, carrying = call_effects.LOOKING_BUILTINS, call_effects.CARRYING_BUILTINS
                return self._why_methods(looking.get(name) or carrying.get(name, ()), args)
            case ast.Call(func=ast.Attribute(value=text, attr="format"), args=args, keywords=keywords):
                given = [*args, *(k.value for k in keywords)]
                said = text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else ""
                looks = f"`{short(text)}` looks into what it shows" if _FIELD.search(said) else None
                return looks or self._why_shown(given)
            case ast.Call(func=ast.Attribute(), args=args):
                return self._why_methods(_KEYED, args)
        return None

    def _why_shown(self, parts: Sequence[ast.expr]) -> str | None:
        """What showing one of ``parts`` may change."""
        return self._why_methods(["__format__", "__str__", "__repr__", "extra_repr"], parts)

    def why_counted(self, e: ast.expr) -> str | None:
        """What asking ``e`` for its length may change."""
        return self._why_methods(["__len__"], [e])

    def _why_true(self, e: ast.expr) -> str | None:
        """What asking for the truth of ``e`` may change."""
        return self._why_methods(["__bool__", "__len__"], [e])

    def _why_methods(self, names: Iterable[str], parts: Iterable[ast.expr]) -> str | None:
        parts = [p for part in parts for p in _with_items(part)]
        unknown = [p for p in parts if self.inference.of(p).kind not in (Kind.TENSOR, Kind.PYTHON)]
        unknown = [p for p in unknown if not isinstance(p, (ast.Constant, ast.JoinedStr, ast.Compare))]
        unknown = [p for p in unknown if not self._is_name_or_type(p)]
        if unknown and self.project.effects.changing(names):
            return f"`{short(unknown[0])}` may change when it is looked at"
        return None

    def _is_name_or_type(self, e: ast.expr) -> bool:
        """Whether ``e`` is a type of Python's own, or the name of one."""
        if isinstance(e, ast.Attribute):
            return e.attr in ("__name__", "__qualname__", "__module__")
        return isinstance(e, ast.Name) and self.syntax.is_builtin(e)

    def _is_computed(self, e: ast.Attribute) -> bool:
        """Whether reading ``e`` may run code of the project that changes something."""
        if self.inference.of(e.value).kind in (Kind.TENSOR, Kind.PYTHON) or self.syntax.qualified(e) is not None:
            return False
        own = self.inference.instance_attribute(e)
        names = ["__getattr__", "__getattribute__", "__get__"] if own is None else ["__getattribute__", "__get__"]
        if e.attr in _OF_OBJECTS or (e.attr in _OF_CLASSES and getattr(e.value, "attr", "") == "__class__"):
            names = ["__getattribute__"]
        return self._runs_code(e.attr) or self.project.effects.changing(
            [*names, e.attr] if e.attr in self.project.properties else names
        )

    def _why_call_changes(self, call: ast.Call) -> str | None:
        func, what = call.func, self.syntax.qualified(call.func)
        rest: list[ast.AST] = [*call.args, *call.keywords]
        if isinstance(func, ast.Name) and self.syntax.is_builtin(func):
            kind = getattr(builtins, func.id)
            if func.id in _LOOKING or (isinstance(kind, type) and issubclass(kind, BaseException)):
                return self._first(rest)
            if func.id in _GOING_THROUGH:
                used = [reason for a in call.args if (reason := self._why_used_up(a)) is not None]
                keyed = any(k.arg == "key" for k in call.keywords)
                return (
                    f"`{short(call)}` calls its key for each" if keyed else next(iter(used), self._first(call.keywords))
                )
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
            if own is None and func.attr in _METHODS and self._only_reads(func, call):
                return self._first([func.value, *rest])
        return f"`{short(call)}` may change something"

    def _only_reads(self, func: ast.Attribute, call: ast.Call) -> bool:
        """Whether ``func``, by its name a method of tensors or of Python's own types, is nothing else."""
        value = self.inference.of(func.value)
        if value.is_tensor or value.kind is Kind.PYTHON:
            return True
        if value.kind is Kind.MODULE or func.attr in self._own or (func.attr == "get" and not call.args):
            return func.attr == "state_dict"
        given = [self.inference.of(a) for a in call.args]
        return func.attr not in _CONVERTING and all(v.kind is Kind.PYTHON for v in given)

    @cached_property
    def _own(self) -> frozenset[str]:
        """Names of functions and attributes that the file makes."""
        stored = {a.attr for a in self.syntax.by_type[ast.Attribute] if isinstance(a.ctx, ast.Store)}
        return frozenset(f.name for f in self.syntax.by_type[ast.FunctionDef]) | stored

    def _runs_code(self, name: str) -> bool:
        """Whether a property of the file has that name, and may do more than to look at something."""
        decorators = [d for f in self.syntax.by_type[ast.FunctionDef] if f.name == name for d in f.decorator_list]
        return any((dotted(d) or "").rpartition(".")[2] in _PROPERTIES for d in decorators)

    def _why_used_up(self, items: ast.expr) -> str | None:
        """As ``why_changing``, for what is gone through: an iterator can be gone through once."""
        named = isinstance(items, (ast.Name, ast.Attribute, ast.Subscript))
        if (named and self.inference.of(items).kind is Kind.UNKNOWN) or self._is_iterator(items):
            return f"`{short(items)}` may be an iterator, which can be gone through once"
        return self.why_changing(items)

    def _is_iterator(self, e: ast.expr) -> bool:
        """Whether ``e`` names what is gone through once."""
        values = self.bindings.values(e) if isinstance(e, (ast.Name, ast.Attribute)) else []
        return any(isinstance(v, ast.GeneratorExp) or _called(v) in _ONCE for v in values)

    def _first(self, parts: Sequence[ast.AST]) -> str | None:
        return next((reason for p in parts if (reason := self.why_changing(p)) is not None), None)


def _with_items(e: ast.expr) -> Iterator[ast.expr]:
    """``e``, or what it holds where it is a display: what is done with that may be done with each."""
    match e:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            for part in parts:
                yield from _with_items(part)
        case ast.Dict(keys=keys, values=values):
            for part in (*filter(None, keys), *values):
                yield from _with_items(part)
        case ast.Starred(value=value):
            yield from _with_items(value)
        case _:
            yield e


def _called(e: ast.expr) -> str:
    """The last name of what ``e`` calls."""
    return (dotted(e.func) or "").rpartition(".")[2] if isinstance(e, ast.Call) else ""


def _is_total(statement: ast.stmt) -> bool:
    """Whether nothing in the message of ``statement`` can fail."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    parts = [*call.args, *(k.value for k in call.keywords)] if isinstance(call, ast.Call) else [statement]
    bad = (ast.stmt, ast.Call, ast.Subscript, ast.BinOp, ast.Starred, ast.comprehension)
    return not any(isinstance(n, bad) for p in parts for n in ast.walk(p))


def _logger_call(e: ast.expr) -> ast.AST:
    """What is evaluated to get the logger, without the calls that give one."""
    while isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute):
        e = e.func.value
    return e.func if isinstance(e, ast.Call) else e
