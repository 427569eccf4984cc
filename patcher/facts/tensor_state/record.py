"""What is found out about the integer state of one class, and the questions that all looks at it share."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from patcher.facts.analysis import Analysis
from patcher.facts.caching.origins import Origins
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.tensor_state.creation import Creations
from patcher.facts.tensor_state.forms import CALLED, ROWS, Change, Form, RefusedError, Step
from patcher.facts.tensor_state.numbers import Numbers
from patcher.facts.tensor_state.order import Order
from patcher.facts.values.types import Category, Value


class Record(Analysis):
    """All uses of the state ``forms`` (attribute -> form) of one class. Raises RefusedError where it has to stay.

    ``changes``: by target. ``reads``: places where the host reads a tensor. ``tensor_uses``: operations with other
    tensors. ``doubts``: what is taken for granted without proof.
    """

    def __init__(self, forms: Mapping[str, Form], origins: Origins) -> None:
        super().__init__(origins.facts)
        self.forms = forms
        self.origins = origins
        self.creations = self.facts.ask(Creations)
        self.numbers = Numbers(forms, origins)
        self.order = Order(origins, self.numbers)
        self.changes: dict[ast.AST, Change] = {}
        self.reads: list[ast.expr] = []
        self.doubts: list[str] = []
        self.tensor_uses: list[ast.expr] = []
        self._proven: set[str] = set()
        self._indices: list[ast.expr] = []
        self._followed: set[tuple[object, bool]] = set()
        #: Attributes that are asked for what only a tensor has; and Python numbers that are stored, by attribute.
        self._asked: set[str] = set()
        self._plain: list[tuple[str, ast.expr]] = []

    def _use(self, e: ast.expr, form: Form, binding: ast.AST | None, fixed: bool = False) -> None:
        """Look at ``e``, the state, where it is read; see `Uses`."""
        raise NotImplementedError

    def _follow_definition(
        self, d: Definition, function: FunctionNode, form: Form, binding: ast.AST | None, fixed: bool
    ) -> None:
        """Look at all uses of a name that ``d`` binds to the state; see `Names`."""
        raise NotImplementedError

    def check_names(self) -> None:
        """Refuse when Python's own functions that the new code calls are something else here."""
        for change in self.changes.values():
            for name in CALLED.get(change.step, ()):
                if not self.syntax.is_builtin(ast.Name(name, ast.Load())):
                    raise RefusedError(change.target, f"`{name}` is another function here")

    def _doubt(self, text: str) -> None:
        if text not in self.doubts:
            self.doubts.append(text)

    def _make(self, changes: tuple[Change, ...]) -> None:
        """The state is made. ``torch.tensor(n)`` takes the value of ``n`` over, and so does ``int(n)``."""
        for change in changes:
            value = change.parts[0] if change.step is Step.VALUE else ""
            several = isinstance(value, str) or any(isinstance(n, (ast.List, ast.ListComp)) for n in ast.walk(value))
            sure = isinstance(value, str) or several or self.numbers.is_sure(value)
            self.changes[change.target] = change if sure else Change(Step.INT, change.target, change.parts)

    def _read(self, target: ast.expr, e: ast.expr, form: Form) -> None:
        """The host reads the tensor ``e``; ``target``: the whole expression that does."""
        self.reads.append(target)
        self._named(e)
        step = Step.FIRST if form is Form.ONE else Step.READ if self.numbers.is_sure(e) else Step.INT
        self.changes[target] = Change(step, target, (e,))

    def _number(self, e: ast.expr, form: Form) -> None:
        """``e`` is used where the host needs a number, and takes tensors of one element."""
        self.reads.append(e)
        self._named(e)
        if form is Form.ONE:
            self.changes[e] = Change(Step.FIRST, e, (e,))

    def _named(self, e: ast.expr) -> None:
        """An element that is read as one number proves that its index is an integer."""
        if isinstance(e, ast.Subscript):
            self._proven.add(ast.unparse(e.slice))
        if isinstance(e, ast.Name):
            for d in self.inference.definitions(e):
                if isinstance(d.value, ast.Subscript):
                    self._proven.add(ast.unparse(d.value.slice))

    def _integer(self, value: ast.expr) -> None:
        """``value`` becomes state, or a part of it. A tensor of integers takes its value over as ``int()`` does."""
        if self.numbers.is_sure(value) or self.numbers.form(value) is Form.ONE:
            return
        if self.numbers.form(value) in ROWS:
            raise RefusedError(value, f"`{ast.unparse(value)}` is a whole row")
        known = self.inference.of(value)
        foreign = self.origins.read_of_data(value, frozenset(self.forms))
        if known.is_tensor:
            raise RefusedError(value, f"`{ast.unparse(value)}` is tensor data")
        if foreign is not None:
            raise RefusedError(value, f"the amount `{ast.unparse(foreign)}` is itself tensor data")
        if known.python in ("float", "bool", "none", "str", "container"):
            raise RefusedError(value, f"`{ast.unparse(value)}` is no integer")
        self.changes[value] = Change(Step.INT, value, (value,))

    def _known(self, value: ast.expr, what: str) -> None:
        """Doubt that ``value`` is ``what``: it becomes state as it is, or all elements of a row."""
        if not (self.numbers.is_sure(value) or self.numbers.is_number(value) or self.numbers.form(value) is not None):
            self._doubt(f"`{ast.unparse(value)}` is {what}")

    def _index(self, e: ast.Subscript) -> None:
        """What names one element of a row."""
        index = e.slice
        if isinstance(index, (ast.Slice, ast.Tuple)) or (
            isinstance(index, ast.Constant) and type(index.value) is not int
        ):
            raise RefusedError(e, f"`{ast.unparse(e)}` is more than one element")
        if self.numbers.is_number(index) or self.numbers.form(index) is Form.NUMBER:
            return
        value = self.inference.of(index)
        if value.is_tensor or value.python in ("container", "bool", "none", "str"):
            raise RefusedError(e, f"the index of `{ast.unparse(e)}` is no integer")
        self._indices.append(index)

    def _is_whole(self, index: ast.expr) -> bool:
        match index:
            case ast.Slice(lower=None, upper=None, step=None):
                return True
            case ast.Constant(value=value):
                return value is ...
        return False

    def _is_view(self, value: ast.expr) -> bool:
        """Whether ``value`` may be the very tensor of the state, or a view of it."""
        match value:
            case ast.BinOp() | ast.UnaryOp() | ast.Constant():
                return False
            case ast.IfExp(body=body, orelse=orelse):
                return self._is_view(body) or self._is_view(orelse)
            case ast.BoolOp(values=values):
                return any(map(self._is_view, values))
            case ast.Name():
                return (
                    any(
                        d.value is None or self._is_view(d.value) if not d.path else True
                        for d in self.inference.definitions(value)
                        if d.how != "augmented"
                    )
                    and self.numbers.form(value) is not None
                )
            case ast.Call(func=ast.Attribute(attr="clone")):
                return False
        return self.numbers.form(value) is not None

    def _is_state_place(self, target: ast.expr) -> bool:
        if isinstance(target, ast.Attribute):
            return self.origins.attribute(target) in self.forms
        return isinstance(target, ast.Subscript) and self._state_element(target)

    def _state_element(self, target: ast.Subscript) -> bool:
        return self.numbers.form(target.value) is not None

    def _same_kind(self, e: ast.expr) -> bool:
        """Whether ``e`` is a number of Python's, or becomes one."""
        none = isinstance(e, ast.Constant) and e.value is None
        return none or self.numbers.is_number(e) or self.numbers.form(e) is Form.NUMBER

    def _single(self, e: ast.expr, form: Form) -> Form:
        if form in ROWS:
            raise RefusedError(e, f"`{self._line(e)}` works on the whole row")
        return form

    def _is_test(self, e: ast.expr) -> bool:
        """Whether only the truth of ``e`` counts."""
        outer = self.syntax.parents[e]
        checked = isinstance(outer, ast.Call) and outer.args[:1] == [e]
        return self.syntax.only_truth(e) or (checked and self.syntax.qualified(outer.func) == "torch._check")  # type: ignore[attr-defined]

    def _captured(self, function: FunctionNode) -> set[str]:
        return self.inference.flow_of(function).captured

    def _line(self, e: ast.AST) -> str:
        return ast.unparse(self.syntax.statement_of(e)).splitlines()[0]


def is_large(e: ast.expr, most: int = 2**16) -> bool:
    """Whether a number that is written out in ``e``, above ``most``, may go beyond what a tensor of integers holds."""
    return any(
        (isinstance(n, ast.Constant) and isinstance(n.value, int) and abs(n.value) > most)
        or (isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Pow, ast.LShift)))
        for n in ast.walk(e)
    )


def keeps_dtype(value: Value) -> bool:
    """Whether a tensor keeps its dtype with a 0-d integer tensor as it does with a Python integer."""
    if value.dtype is None:
        return False
    if value.dtype.category is Category.FLOAT:
        return True
    rank = value.rank
    return value.dtype.category is Category.INT and rank is not None and rank.base is None and rank.offset >= 1
