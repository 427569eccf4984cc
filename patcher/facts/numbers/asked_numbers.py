"""Where a tensor is asked for its number without a name that says so: bounds of slices, sizes, ``range``, ``in`` ...

Python asks by ``__index__``, ``__bool__`` and their like, PyTorch where a size has to be a number. Dynamo ends the
graph there; after some forms it gives up the function (`patcher.facts.tables.number_takers`). Iterating over a tensor,
unpacking it, ``max`` and ``sum`` of tensors, formatted strings and ``.numpy()`` alone do no harm: they are not told.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.effects.conditions import Conditions
from patcher.facts.flow.definitions import Definition
from patcher.facts.masks.masked_reads import MaskedReads
from patcher.facts.numbers.likely_masks import LikelyMasks
from patcher.facts.numbers.likely_tensors import LikelyTensors
from patcher.facts.numbers.numpy_values import NumpyValues
from patcher.facts.syntax.looped import is_looped
from patcher.facts.syntax.tree import FunctionNode, last_name
from patcher.facts.syntax.written import integer, parsed
from patcher.facts.tables.number_takers import (
    ANSWERING,
    ANSWERING_METHODS,
    BUILTINS,
    FUNCTIONS,
    GIVING_UP,
    MATH_IN_GRAPH,
    METHODS,
    NAMED,
    SIZED_BY_DATA,
    Arguments,
)
from patcher.facts.tables.numpy_api import ROUNDING
from patcher.facts.values.callees import Callees
from patcher.facts.values.types import Category, Kind, Value

#: The types of nodes that may ask.
ASKING = (
    ast.Slice,
    ast.Subscript,
    ast.Call,
    ast.BinOp,
    ast.BoolOp,
    ast.UnaryOp,
    ast.Compare,
    ast.While,
    ast.If,
    ast.IfExp,
    ast.Assert,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
_TESTING = (ast.If, ast.While, ast.IfExp, ast.Assert)
_READING = ("int", "float")
#: Functions of Python that ask a value of NumPy -> the way.
_OF_ARRAYS = {"range": "range of an array", "bool": "bool", "str": "text of a tensor", "repr": "text of a tensor"}
_DICTIONARIES = frozenset(
    "dict Dict defaultdict DefaultDict OrderedDict Counter Mapping MutableMapping ModuleDict ParameterDict".split()
)
#: Ways in which PyTorch takes the number of a tensor that comes into the graph as it is, when that is on the CPU.
_FREE_FOR_INPUTS = frozenset(
    {"tensor as size", "tensor as size of a view", "tensor as end of arange", "tensor as fill value"}
)


@dataclass(frozen=True)
class Asked:
    """``asked``, a tensor or an array, has to give its number where ``node`` is evaluated.

    ``way``: a row of the table of what gets captured. ``gives_up``: no graph goes on behind it in this function.
    ``looped``: it is asked in a loop, behind which none goes on either.
    """

    node: ast.AST
    asked: ast.expr
    way: str
    looped: bool

    @property
    def sized(self) -> bool:
        """Whether it is no number that is asked for, but how many rows there are."""
        return self.way in SIZED_BY_DATA | {"where", "mask index", "one_hot"}

    @property
    def named(self) -> bool:
        """Whether the code says that it wants a number: ``int(n)``."""
        return self.way in NAMED

    @property
    def gives_up(self) -> bool:
        """Whether no graph goes on behind it."""
        return self.looped or self.way in GIVING_UP


class AskedNumbers(Analysis):
    """The questions of one module. What is not known to be a tensor is not told."""

    def of(self, function: FunctionNode) -> tuple[Asked, ...]:
        """Those in the body of ``function``, in order."""
        found = [asked for n in self.syntax.own(function, *ASKING) if (asked := self.at(n)) is not None]
        return tuple(sorted(found, key=lambda a: (a.asked.lineno, a.asked.col_offset)))

    def at(self, node: ast.AST) -> Asked | None:
        """What ``node``, of one of the types `ASKING`, asks a tensor for."""
        found = next(self._at(node), None)
        return None if found is None else Asked(node, *found, is_looped(node, self.syntax))

    def _at(self, node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
        match node:
            case ast.Slice(lower=lower, upper=upper, step=step):
                for bound in filter(None, (lower, upper, step)):
                    yield from self._asked(bound, "tensor as end of a slice", "array as end of a slice")
            case ast.Subscript(value=value, slice=index, ctx=context):
                yield from self._indexed(value, index)
                read = isinstance(context, ast.Load) or self._is_counted_on(node)
                for part in _parts(index) if read else ():
                    found = self.facts.ask(LikelyMasks).of(part)
                    if found and not self._is_known(node, part):
                        yield part, "mask index"  # of one that is known to be a mask, others tell
            case ast.Call():
                yield from self._called(node)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                for e, other in ((left, right), (right, left)):
                    if isinstance(e, (ast.List, ast.Tuple)) and not self._is_input(other) and self.is_tensor(other):
                        yield other, "list as often as a tensor says"
            case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod(), right=right):
                parts = right.elts if isinstance(right, ast.Tuple) else [right]
                for p in parts:
                    yield from self._asked(p, "percent of a tensor", "percent of a tensor")
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[held]):
                if self._is_truly(held):
                    yield held, "number in a tensor"
                elif isinstance(held, (ast.List, ast.Tuple)) and self._is_tested(node):
                    yield from self._asked(left, "if of a tensor", "if of a tensor")
            case ast.Compare(left=left, comparators=[first, _, *_]) if not self._is_tested(node):
                yield from ((e, "chain of a tensor") for e in (left, first) if self.is_tensor(e))
            case ast.BoolOp(values=[*first, _]) if not self._is_tested(node):
                yield from ((e, "and of a tensor") for e in first if self._is_truly(e))
            case ast.UnaryOp(op=ast.Not(), operand=operand) if not self._is_tested(node):
                if self._is_truly(operand):
                    yield operand, "not of a tensor"
            case ast.If(test=test) | ast.IfExp(test=test) if not self.facts.ask(Conditions).reads_data(test):
                for p in _tested(test):
                    if (self._is_asked(p) and self.is_tensor(p)) or self._ends(p, "if of a tensor"):
                        yield p, "if of a tensor"
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                for p in (part for g in node.generators for test in g.ifs for part in _tested(test)):
                    if (self._is_asked(p) and self.is_tensor(p)) or self._ends(p, "if of a tensor"):
                        yield p, "if of a tensor"
            case ast.Assert(test=test, msg=message) if not self.facts.ask(Conditions).reads_data(test):
                asked = (p for p in _decided(test, message) if isinstance(p, (ast.Call, ast.Compare, ast.BinOp)))
                yield from ((p, "if of a tensor") for p in asked if not self.syntax.builtin(p) and self.is_tensor(p))
            case ast.While(test=test):
                for p in _tested(test):
                    if self._is_truly(p) or isinstance(p, ast.Compare):
                        yield from self._asked(p, "while of a tensor that is made", "while of a tensor that is made")

    def _is_asked(self, test: ast.expr) -> bool:
        """Whether ``test`` is for more than whether there is anything: a call, a comparison, an item of a loop."""
        if isinstance(test, ast.Name):
            definitions = self.inference.definitions(test)
            return bool(definitions) and all(d.how == "iteration" for d in definitions)
        return isinstance(test, (ast.Call, ast.Compare)) and not self.syntax.builtin(test)

    def _indexed(self, value: ast.expr, index: ast.expr) -> Iterator[tuple[ast.expr, str]]:
        if all(isinstance(p, (ast.Constant, ast.Slice)) for p in _parts(index)):
            return
        held = self.inference.of(value)
        if isinstance(value, (ast.List, ast.Tuple)) or held.python == "container" or held.kind is Kind.MODULE:
            if self._is_key(value):
                if self._ends(index, "if of a tensor"):  # what Python has to find by its hash
                    yield index, "tensor as index of a list"
            elif not isinstance(index, (ast.Slice, ast.Tuple)):
                yield from self._asked(index, "tensor as index of a list", "tensor as index of a list")
        elif self.is_tensor(value):
            for part in _parts(index):
                held = self.inference.of(part)
                one = held.is_scalar_tensor and not _may_be_bool(held) and not self._is_input(part)
                if one or self._ends(part, "tensor as index of one row"):
                    yield part, "tensor as index of one row"

    def _is_key(self, held: ast.expr) -> bool:
        """Whether ``held`` is a dictionary: a tensor that is a key of one is not asked for anything."""
        if isinstance(held, ast.Dict):
            return True
        if isinstance(held, ast.Name):
            found = self.inference.definitions(held)
            return any(self._makes_dict(d.value) or _is_said_dict(getattr(d.node, "annotation", None)) for d in found)
        own = self.inference.instance_attribute(held) if isinstance(held, ast.Attribute) else None
        stores = self.inference.class_facts(own[0]).stores.get(own[1], []) if own is not None else []
        return any(self._makes_dict(s.value) for s in stores)

    def _makes_dict(self, e: ast.expr | None) -> bool:
        if isinstance(e, ast.Call):
            what = self.syntax.builtin(e) or self.syntax.qualified(e.func) or ""
            return what.rpartition(".")[2] in _DICTIONARIES
        return isinstance(e, (ast.Dict, ast.DictComp))

    def _called(self, call: ast.Call) -> Iterator[tuple[ast.expr, str]]:
        name, what = self.syntax.builtin(call), self.syntax.qualified(call.func) or ""
        if name in BUILTINS:
            for given in call.args:
                over = given.elt if isinstance(given, ast.GeneratorExp) and name in ("any", "all") else given
                yield from self._asked(over, BUILTINS[name], _OF_ARRAYS.get(name, ""))
        elif name in _READING:
            for given in call.args[:1]:
                yield from self._asked(given, "int", "int of an array")
        elif name == "map" and len(call.args) == 2 and isinstance(call.args[0], ast.Name):
            if call.args[0].id in (*_READING, "bool") and self.is_tensor(call.args[1]):
                yield call.args[1], "int"
        elif name == "slice":
            yield from ((a, "tensor as end of a slice") for a in call.args if self.is_tensor(a))
        elif what.startswith("math.") and what[5:] not in MATH_IN_GRAPH:
            asked = "if of a tensor" if what[5:] in ROUNDING else "math of a tensor"
            yield from ((a, "math of a tensor") for a in call.args if self.is_tensor(a) or self._ends(a, asked))
        elif what in ANSWERING:
            yield from ((a, "equal") for a in call.args[:1] if what.startswith("torch.") or self.is_tensor(a))
        elif what == "torch.nn.functional.one_hot" and _is_open(call):
            yield from ((a, "one_hot") for a in call.args[:1])
        elif what in ("numpy.where", "numpy.nonzero", "numpy.argwhere", "numpy.flatnonzero", "numpy.unique"):
            if len(call.args) == 1 and self._ends(call.args[0], "int of an array"):
                yield call.args[0], "where"
        elif what == "torch.where" and len(call.args) == 1 and not call.keywords:
            yield call.args[0], "where"
        elif what.startswith("torch.") and what[6:] in SIZED_BY_DATA and call.args and not self._is_place(call):
            yield _deciding(call, call.args[0], what[6:]), what[6:]
        elif what in FUNCTIONS:
            yield from self._sized(call, *FUNCTIONS[what])
        elif isinstance(call.func, ast.Attribute) and not what.startswith("torch."):
            held, method = call.func.value, call.func.attr
            if self.inference.instance_attribute(call.func) is not None:
                return  # a layer that is called like a method of tensors: ``self.gather(x)``
            if method in METHODS and self.is_tensor(held):
                yield from self._sized(call, *METHODS[method])
            elif method in SIZED_BY_DATA and not self._is_place(call) and self._is_listed(held, method):
                yield _deciding(call, held, method), method
            elif method in ANSWERING_METHODS and self.is_tensor(held):
                yield held, "equal"
            elif method in ("tolist", "item") and not call.args and self._ends(held, "int of an array"):
                yield held, "int of an array"

    def _sized(self, call: ast.Call, which: Arguments, way: str) -> Iterator[tuple[ast.expr, str]]:
        """The arguments of ``call``, or what stands in a list or tuple of them, that are tensors."""
        placed: list[tuple[object, ast.expr]] = [*enumerate(call.args)]
        placed += [(k.arg, k.value) for k in call.keywords if k.arg is not None]
        for at, given in placed:
            if at in which or (isinstance(at, int) and ... in which):
                spread = given.value if isinstance(given, ast.Starred) else given
                for part in spread.elts if isinstance(spread, (ast.List, ast.Tuple)) else [spread]:
                    of = self._listed(part) if part is spread else part
                    if not self._is_input(of) or way not in _FREE_FOR_INPUTS:
                        yield from ((part, found) for _, found in self._asked(of, way, "array as size"))

    def _listed(self, e: ast.expr) -> ast.expr:
        """What is made a list of: ``x`` of ``list(x)``, also where that has a name."""
        if isinstance(e, ast.Name) and len(found := self.inference.definitions(e)) == 1:
            (d,) = found
            if d.how == "assign" and not d.path and isinstance(d.value, ast.Call):
                e = d.value if self.syntax.builtin(d.value) in ("list", "tuple") else e
        made = self.syntax.builtin(e) in ("list", "tuple") and isinstance(e, ast.Call) and len(e.args) == 1
        return e.args[0] if made and isinstance(e, ast.Call) else e

    def _asked(self, e: ast.expr, tensors: str, arrays: str) -> Iterator[tuple[ast.expr, str]]:
        if self.is_tensor(e):
            yield e, tensors
        elif arrays and self._ends(e, arrays):
            yield e, arrays

    # --- what is asked ------------------------------------------------------------------------------------------------

    def is_tensor(self, e: ast.expr) -> bool:
        """Whether ``e`` is a tensor, by what is said of it."""
        return self.facts.ask(LikelyTensors).of(e)

    def _is_truly(self, e: ast.expr) -> bool:
        """As `is_tensor`, where None is as good: what may be that is asked whether it is."""
        return not isinstance(e, ast.Constant) and self.inference.of(e).is_tensor

    def _ends(self, e: ast.expr, way: str) -> bool:
        """Whether ``e`` is a number or an array of NumPy, at which the graph breaks when asked in this ``way``."""
        return self.facts.ask(NumpyValues).ends(e, way)

    def _is_known(self, node: ast.Subscript, mask: ast.expr) -> bool:
        """Whether it is plain to see that ``node`` goes through a mask."""
        if isinstance(node.ctx, ast.Load):
            return self.facts.ask(MaskedReads).of(node) is not None
        held = self.inference.of(mask)
        return held.is_boolean or (held.data and held.kind is Kind.UNKNOWN)

    def _is_counted_on(self, node: ast.Subscript) -> bool:
        """Whether ``x[mask] += 1`` reads the rows of ``node``, which FC401 does not tell of."""
        statement = self.syntax.parents.get(node)
        return isinstance(statement, ast.AugAssign) and statement.target is node

    def _is_listed(self, held: ast.expr, method: str) -> bool:
        """Whether ``held`` is a tensor, or compared: what lists the places where that is true is one, or an array."""
        parts = [held.left, held.right] if isinstance(held, ast.BinOp) else [held]
        return self.is_tensor(held) or (method == "nonzero" and all(isinstance(p, ast.Compare) for p in parts))

    def _is_input(self, e: ast.expr, seen: frozenset[Definition] = frozenset()) -> bool:
        """Whether ``e`` comes into the graph as it is: PyTorch takes the number of one that is on the CPU as a size.

        What calls in this file make for a parameter does not.
        """
        if isinstance(e, ast.Attribute):
            return True
        if not isinstance(e, ast.Name):
            return False
        found = frozenset(d for d in self.inference.definitions(e) if d.how == "parameter") - seen
        given = [g for d in found for g in self.facts.ask(Callees).given(d)]
        return bool(found) and all(self._is_input(g, seen | found) for g in given)

    def _is_place(self, call: ast.Call) -> bool:
        """Whether ``call`` is an index, or looped over after more has been done to it: others tell of those."""
        child: ast.AST = call
        while isinstance(parent := self.syntax.parents[child], (ast.Attribute, ast.Call)):
            child = parent
        if isinstance(parent, ast.For):
            numbered = isinstance(child, ast.Call) and self.syntax.builtin(child) in ("enumerate", "zip")
            return child is not call and not (numbered and isinstance(child, ast.Call) and call in child.args)
        return isinstance(parent, ast.Subscript) and child is parent.slice

    def _is_tested(self, e: ast.expr) -> bool:
        """Whether ``e`` is a part of a test, of which others tell."""
        child: ast.AST = e
        for parent in self.syntax.ancestors(e):
            if isinstance(parent, _TESTING) and child is parent.test:
                return True
            if isinstance(parent, ast.comprehension) and child in parent.ifs:
                return True
            if not isinstance(parent, (ast.BoolOp, ast.UnaryOp)):
                return False
            child = parent
        return False


def _is_said_dict(annotation: ast.expr | None) -> bool:
    """Whether ``annotation`` names a dictionary, alone or among others."""
    written = parsed(annotation) if annotation is not None else None
    return written is not None and any(last_name(n) in _DICTIONARIES for n in ast.walk(written))


def _deciding(call: ast.Call, held: ast.expr, name: str) -> ast.expr:
    """What decides how many rows ``call`` has, which is called on ``held``: the mask, where there is one."""
    if name != "masked_select":
        return held
    masks = (*(k.value for k in call.keywords if k.arg == "mask"), *call.args[::-1])
    return next(iter(masks), held)


def _is_open(call: ast.Call) -> bool:
    """Whether `one_hot` is left to find out how many classes there are."""
    told = [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "num_classes")]
    return not told or integer(told[0]) == -1


def _tested(test: ast.expr) -> list[ast.expr]:
    """What ``test`` asks whether it is true, in turn; a name alone may be asked whether there is anything."""
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    inner = [p.operand if isinstance(p, ast.UnaryOp) and isinstance(p.op, ast.Not) else p for p in parts]
    return [e for p in inner for e in (_tested(p) if isinstance(p, ast.BoolOp) else [p])]


def _decided(test: ast.expr, message: ast.expr | None) -> list[ast.expr]:
    """What of an assertion Dynamo has to decide itself: all of it where the message is put together.

    Else the graph checks what comes last, as it stands there.
    """
    parts = _tested(test)
    if message is not None and not isinstance(message, ast.Constant):
        return parts
    return parts if isinstance(test, ast.UnaryOp) else parts[:-1]


def _parts(index: ast.expr) -> list[ast.expr]:
    return index.elts if isinstance(index, ast.Tuple) else [index]


def _is_item(e: ast.expr) -> bool:
    """Whether ``e`` is what a dictionary holds by a name: ``batch["x"]``."""
    return isinstance(e, ast.Subscript) and isinstance(e.slice, ast.Constant) and isinstance(e.slice.value, str)


def _may_be_bool(held: Value) -> bool:
    return held.kind is not Kind.TENSOR or held.dtype is None or held.dtype.category in (Category.BOOL, Category.OTHER)
