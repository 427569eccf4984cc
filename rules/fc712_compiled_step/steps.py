"""Statements of a function that compute with tensors, as a function of tensors and numbers that can be compiled."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Flow
from patcher.facts.syntax.tree import FunctionNode, own_nodes
from patcher.facts.values.types import Kind
from patcher.measuring.observed import Observed
from patcher.rule import Code, block, respelled

_COMPUTING = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare)
_LOOPS = (ast.For, ast.While)
_LEAVING = (
    *(ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Delete),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.NamedExpr, ast.Try, ast.With),
)
_MANY = 16  # turns of a loop in a call: its operators are in the graph as often
_ARRAY = "numpy.ndarray"
_NUMBERS = frozenset({"int", "float"})
_SCALARS = frozenset({"numpy.float64", "numpy.float32", "numpy.int64"})
_HOLDERS = frozenset({"list", "set", "dict", "collections.deque", "collections.defaultdict"})
#: Where a number that differs from call to call is given as a number, a tensor takes its place so.
_SCALED = {
    "add": "{2} * {1}",
    "sub": "{2} * {1}",
    "addcmul": "{3} * {1} * {2}",
    "addcdiv": "{3} * {1} / {2}",
    "lerp": "{2} * ({1} - {0})",
}
_PLAIN = frozenset({"add", "sub", "mul", "div", "pow"})


@dataclass(frozen=True)
class Step:
    """``parts``: neighbours with the code that comes in their place. ``function``: what they become.

    ``loop``: whether it is the body of a loop that is gone through often; else it reads tensors through objects, the
    first of which is ``read``. ``weight``: how many operators are written in it.
    """

    parts: tuple[tuple[tuple[ast.stmt, ...], tuple[Code, ...]], ...]
    function: Code
    weight: int
    read: str
    loop: bool


class Steps(Analysis):
    """Of the functions of one module."""

    def of(self, function: FunctionNode, name: str) -> Step | None:
        """The step of ``function`` that holds most operators, as a function ``name``; None where there is none."""
        if any(isinstance(n, ast.Name) and n.id == "super" for n in ast.walk(function)):
            return None
        blocks = [(function.body, None), *self._blocks(function)]
        made = (_Made(self, function, run, loop) for body, loop in blocks for run in self._runs(body, loop))
        found = [step for one in made if (step := one.step(name)) is not None]
        return max(found, key=lambda step: step.weight, default=None)

    def _blocks(self, function: FunctionNode) -> Iterator[tuple[list[ast.stmt], ast.stmt | None]]:
        """Lists of statements in ``function``, each with the loop around it that is gone through often, if any."""
        for node in own_nodes(function):
            for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
                if isinstance(node, ast.stmt) and isinstance(body, list) and body:
                    around = (node, *self.syntax.ancestors(node))
                    inside = [n for n in around if isinstance(n, _LOOPS) and function in self.syntax.ancestors(n)]
                    yield body, next((n for n in inside if self._is_long(n, function)), None)

    def _is_long(self, loop: ast.stmt, function: FunctionNode) -> bool:
        """Whether Python numbers decide how often it is gone through, and a call does so often, as far as is known."""
        if isinstance(loop, ast.For):
            counted = isinstance(loop.iter, ast.Call) and ast.unparse(loop.iter.func) in ("range", "enumerate")
            if not counted or (isinstance(loop.iter, ast.Call) and self.inference.of(loop.iter.args[0]).constant):
                return False
        looks = [self._most(s) for s in getattr(loop, "body", [])]
        calls = self._most(function.args) or min(filter(None, map(self._most, function.body)), default=0)
        return not any(looks) or max(looks) >= _MANY * max(calls, 1)

    def _most(self, node: ast.AST) -> int:
        """How often the expression in ``node`` was evaluated that was so most often; 0 where nobody looked."""
        found = (self.seen(n) for n in ast.walk(node) if isinstance(n, (ast.expr, ast.arg)))
        return max((one.looks for one in found if one is not None), default=0)

    def seen(self, node: ast.AST) -> Observed | None:
        """What a run has seen of it."""
        return self.inference.observed(node) if isinstance(node, (ast.expr, ast.arg)) else None

    def is_array(self, node: ast.AST) -> bool:
        """Whether it is a tensor or an array of NumPy."""
        seen = self.seen(node)
        if seen is not None:
            return seen.is_tensor or seen.kinds == {_ARRAY}
        return isinstance(node, ast.expr) and self.inference.of(node).is_tensor

    def is_numpy(self, node: ast.AST) -> bool:
        """Whether it is an array of NumPy."""
        seen = self.seen(node)
        return seen is not None and seen.kinds == {_ARRAY}

    def is_chain(self, node: ast.Attribute | ast.Subscript) -> bool:
        """Whether it reads what an object keeps that is neither a module, nor a tensor, but for its gradient."""
        base: ast.expr = node
        while isinstance(base, (ast.Attribute, ast.Subscript)):
            if isinstance(base, ast.Subscript) and not isinstance(base.slice, (ast.Constant, ast.Name, ast.Attribute)):
                return False
            base = base.value
        if not isinstance(base, ast.Name) or base.id in self.syntax.imports:
            return False
        owner = self.inference.of(node.value)
        if self.is_array(node.value):
            return isinstance(node, ast.Attribute) and node.attr == "grad"
        return owner.kind is not Kind.MODULE

    def computes(self, statement: ast.stmt) -> int:
        """How many operators are written in it."""
        return sum(
            (isinstance(n, _COMPUTING) and self.is_array(n))
            or (isinstance(n, ast.AugAssign) and any(map(self.is_array, (n.target, n.value))))
            for n in ast.walk(statement)
        )

    def _runs(self, body: list[ast.stmt], loop: ast.stmt | None) -> Iterator[list[ast.stmt]]:
        """Neighbours in ``body`` that begin and end with statements that compute and may be taken out."""
        runs: list[list[ast.stmt]] = [[]]
        for statement in body:
            if self._stays(statement) or (loop and isinstance(statement, ast.Return)):
                runs.append([])
            elif self.computes(statement) or runs[-1]:
                runs[-1].append(statement)
        for run in runs:
            while run and not self.computes(run[-1]):
                run.pop()
            if run:
                yield run

    def _stays(self, statement: ast.stmt) -> bool:
        """Whether it leaves its block, binds names in odd ways, or is a loop that is gone through often."""
        inside = [n for n in ast.walk(statement) if n is not statement or not isinstance(n, ast.Return)]
        loops = any(isinstance(n, _LOOPS) and self._is_own(n) for n in inside)
        deeper = hasattr(statement, "body")  # where it may not run, nothing is read from objects or written to them
        made = any(isinstance(n, (ast.Attribute, ast.Subscript)) and not isinstance(n.ctx, ast.Load) for n in inside)
        odd = any(isinstance(n, _LEAVING) for n in inside)
        return loops or odd or (deeper and made) or not self.syntax.alone(statement)

    def _is_own(self, loop: ast.For | ast.While) -> bool:
        """Whether a loop has a step of its own: it is gone through often, or reads tensors through objects."""
        read = (n for s in loop.body for n in ast.walk(s) if isinstance(n, (ast.Attribute, ast.Subscript)))
        first = self._most(loop.iter) if isinstance(loop, ast.For) else 0
        return self._most(loop) >= _MANY * max(1, first) or any(self.is_array(n) and self.is_chain(n) for n in read)


class _Made:
    """A run of statements being made a function."""

    def __init__(self, steps: Steps, function: FunctionNode, run: Sequence[ast.stmt], loop: ast.stmt | None) -> None:
        self._steps, self._run, self._loop, self._function = steps, run, loop, function
        self._flow: Flow = steps.flow_of(function)
        self._above: list[ast.stmt] = []
        self._below: list[ast.stmt] = []
        self._body: list[ast.stmt] = []
        self._given: dict[str, tuple[str, Code]] = {}  # what is handed on -> the parameter, and how it is written
        self._replaced: dict[ast.AST, Code] = {}
        self._stored: dict[str, None] = {}
        self._words: dict[str, str] = {}  # what is read from objects, or written -> what it is called there
        self._new: set[str] = set()  # of it, what nothing reads before
        self._kept: dict[ast.stmt, tuple[str, ast.expr]] = {}  # what puts a result into a container -> its name, and it
        self._read = ""

    def step(self, name: str) -> Step | None:
        """The step; None where it cannot be made, or nothing is gained."""
        self._prepare()
        handed, left = self._handed(), self._left()
        if handed is None or left is None or not (self._read or self._loop) or self._is_seen_elsewhere(handed):
            return None
        given = [*((n, Code(n)) for n in handed), *(one for key, one in self._given.items() if key not in self._new)]
        call = self._called(_spread(f"{name}(", [code for _, code in given], ")"), left)
        if call is None:
            return None
        kept = [*left, *(self._given[key][0] for key in self._stored), *(word for word, _ in self._kept.values())]
        body = [*map(self._spelled, self._body), *([Code(f"return {', '.join(kept)}")] if kept else [])]
        made = block(Code(f"def {name}({', '.join(parameter for parameter, _ in given)}):"), body)
        weight = sum(map(self._steps.computes, self._body))
        return Step(tuple(self._parts(call)), made, weight, self._read, self._loop is not None)

    def _prepare(self) -> None:
        """Find what belongs to it, and what of that it is given."""
        self._sort()
        self._kept = {s: found for s in self._body if (found := self._result(s)) is not None}
        self._roots: list[ast.AST] = [self._kept[s][1] if s in self._kept else s for s in self._body]
        self._inside = {n for s in self._roots for n in ast.walk(s)}
        self._taken = {n.id for n in self._inside if isinstance(n, ast.Name)}
        for root in self._roots:
            self._hand_on(root)

    def _called(self, call: Code, left: list[str]) -> Code | None:
        """The statement that calls the step, and binds or writes what it gives; None where it cannot be one."""
        results = (word for word, _ in self._kept.values())
        targets = [*map(Code, left), *(self._given[key][1] for key in self._stored), *map(Code, results)]
        if isinstance(last := self._body[-1], ast.Return):
            return None if targets or self._below or last.value is None else Code("return {0}", (call,))
        return Code(_spread("", targets, f" = {{{len(targets)}}}").template, (*targets, call)) if targets else call

    def _is_seen_elsewhere(self, handed: list[str]) -> bool:
        """Whether a nested function sees a name of the step, or the step an object that the caller writes to."""
        roots = {re.split(r"\W", key.removeprefix("{0}"), maxsplit=1)[0] for key in self._stored}
        bound = {d.name for n in self._inside if (d := self._flow.by_node.get(n)) is not None}
        words = [word for key, word in self._words.items() if any(word == self._words[s] for s in self._stored)]
        seen = self._flow.captured & {*handed, *bound} or roots & {*handed}
        return bool(seen) or len(words) > len(self._stored)

    def _result(self, statement: ast.stmt) -> tuple[str, ast.expr] | None:
        """What ``container.append(value)`` puts there, where it is computed, with a name; None for anything else."""
        match statement:
            case ast.Expr(ast.Call(ast.Attribute(holder), [*_, value], [])) if not isinstance(value, ast.Name):
                seen = self._steps.seen(holder)
                computed = any(map(self._steps.is_array, ast.walk(value)))
                if seen is not None and seen.kinds <= _HOLDERS and computed:
                    return self._steps.facts.writing.fresh_local("result", self._function), value
        return None

    def _spelled(self, statement: ast.stmt) -> Code:
        """The statement in the step."""
        if statement in self._kept:
            name, value = self._kept[statement]
            return Code(f"{name} = {{0}}", (respelled(value, self._replaced),))
        return respelled(statement, self._replaced)  # type: ignore[arg-type]

    def _parts(self, call: Code) -> Iterator[tuple[tuple[ast.stmt, ...], tuple[Code, ...]]]:
        """What goes, and the call in the place of the last of it, above which all that stays is evaluated."""
        moved = [respelled(s, {value: Code(name)}) for s, (name, value) in self._kept.items()]  # type: ignore[arg-type]
        moved += [respelled(s, {}) for s in self._below]  # type: ignore[arg-type]
        gone: list[ast.stmt] = []
        for statement in self._run:
            if statement in self._above and gone:
                yield tuple(gone), ()
                gone = []
            elif statement not in self._above:
                gone.append(statement)
        yield tuple(gone), (call, *moved)

    # --- what is in it ----------------------------------------------------------------------------------------------

    def _sort(self) -> None:
        """Keep what computes; what does not goes above it or below it where nothing changes by that."""
        rest = list(self._run)
        while rest:
            statement = rest.pop(0)
            if self._steps.computes(statement) or not self._is_host(statement):
                if any(self._meet(other, statement) for other in self._below):
                    self._run = self._run[: self._run.index(statement)]
                    break
                self._body.append(statement)
            elif not any(self._meet(other, statement) for other in (*self._body, *self._below)):
                self._above.append(statement)
            else:
                self._below.append(statement)

    def _is_host(self, statement: ast.stmt) -> bool:
        """Whether it only works with what is no tensor, or puts one somewhere."""
        stored = statement.targets if isinstance(statement, ast.Assign) else ()
        return not any(isinstance(t, ast.Subscript) and self._steps.is_array(t.value) for t in stored)

    def _meet(self, one: ast.stmt, other: ast.stmt) -> bool:
        """Whether one of them writes what the other names."""
        pairs = ((one, other), (other, one))
        return any(_written(a) & {ast.unparse(n) for n in ast.walk(b) if isinstance(n, ast.expr)} for a, b in pairs)

    # --- what it is given -------------------------------------------------------------------------------------------

    def _hand_on(self, node: ast.AST) -> None:
        """Replace what is read through objects, and numbers that differ from call to call, by parameters."""
        if isinstance(node, (ast.Attribute, ast.Subscript)) and self._hand_on_part(node):
            return
        if (isinstance(node, ast.Call) and self._rescale(node)) or (isinstance(node, ast.BinOp) and self._lift(node)):
            return
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.Assign):
            children = [node.value, *node.targets]  # as they are evaluated
        elif isinstance(node, ast.Call):
            self._hand_on_indices(node)
            own = node.func.value if isinstance(node.func, ast.Attribute) else node.func
            children = [own, *node.args, *(k.value for k in node.keywords)]
        for child in children:
            if child not in self._replaced:
                self._hand_on(child)

    def _hand_on_part(self, node: ast.Attribute | ast.Subscript) -> bool:
        """What an object keeps, or a part of a tensor by a number that differs from call to call."""
        stored = not isinstance(node.ctx, ast.Load)
        if not self._is_outer(node):
            return False
        if self._steps.is_chain(node):
            key = "{0}" + ast.unparse(node)
            self._words[key] = _word(node)
            if stored and key not in self._given and isinstance(self._steps.syntax.parents[node], ast.Assign):
                self._new.add(key)
            self._read = self._read or ("" if stored or not self._steps.is_array(node) else ast.unparse(node))
            self._stored.update({key: None} if stored else {})
        elif stored or not self._is_row(node):
            return False
        self._give(node, "{0}", (node,))
        return True

    def _hand_on_indices(self, call: ast.Call) -> None:
        """Numbers beside arrays of NumPy, given to a function of the project, which may index with them."""
        library = (self._steps.syntax.qualified(call.func) or "").partition(".")[0] in ("numpy", "torch")
        if not library and any(map(self._steps.is_numpy, call.args)):
            for number in filter(self._is_varying, call.args):
                self._give(number, f"{self._asarray}({{0}})", (number,))

    def _is_row(self, node: ast.Attribute | ast.Subscript) -> bool:
        """Whether it is a part of a tensor by a number that differs from call to call."""
        if not isinstance(node, ast.Subscript) or not self._steps.is_array(node.value):
            return False
        return any(isinstance(n, ast.expr) and self._is_varying(n) for n in ast.walk(node.slice))

    @property
    def _asarray(self) -> str:
        return self._steps.facts.writing.spelling("numpy.asarray", self._function)

    def _rescale(self, call: ast.Call) -> bool:
        """Write a call whose factor differs from call to call so that a tensor can take its place."""
        if not isinstance(call.func, ast.Attribute) or not self._steps.is_array(call.func.value):
            return False
        name, mark = call.func.attr.rstrip("_"), "_" * call.func.attr.endswith("_")
        if name in _PLAIN and len(call.args) == 1 and not call.keywords and self._is_varying(call.args[0]):
            self._hand_on(call.func.value)
            self._give_number(call.args[0], call.func.value)
            return True
        tensors, factors = (call.args[:1], call.args[1:]) if name == "lerp" else (call.args, [])
        factors = [*factors, *(k.value for k in call.keywords)]
        fits = len(tensors) == 1 + name.startswith("addc") and len(factors) == 1
        if name not in _SCALED or not fits or not self._is_varying(factors[0]):
            return False
        for part in (call.func.value, *tensors):
            self._hand_on(part)
        self._give_number(factors[0], call.func.value)
        parts = tuple(respelled(part, self._replaced) for part in (call.func.value, *tensors, *factors))
        self._replaced[call] = Code(f"{{0}}.{'sub' if name == 'sub' else 'add'}{mark}({_SCALED[name]})", parts)
        return True

    def _lift(self, node: ast.BinOp) -> bool:
        """Make a number that differs from call to call, and that a tensor is computed with, a tensor."""
        for number, other in ((node.left, node.right), (node.right, node.left)):
            if self._steps.is_array(other) and self._is_varying(number):
                self._hand_on(other)
                self._give_number(number, other)
                return True
        return False

    def _is_varying(self, node: ast.expr) -> bool:
        """Whether it is a number that is known before the step, and another one in other calls."""
        seen = self._steps.seen(node)
        return seen is not None and seen.kinds <= _NUMBERS | _SCALARS and not seen.constant and self._is_outer(node)

    def _give_number(self, node: ast.expr, beside: ast.expr) -> None:
        """A 0-d tensor, in which a number is as exact as in Python; an array of the dtype that it would take."""
        seen, writing = self._steps.seen(node), self._steps.facts.writing
        if seen is not None and seen.kinds <= _SCALARS:
            self._give(node, f"{self._asarray}({{0}})", (node,))
            return
        if self._steps.is_numpy(beside):
            near = beside if self._is_outer(beside) else next(iter(self._arrays()), None)
            if near is not None:
                self._give(node, f"{self._asarray}({{0}}, {{1}}.dtype)", (node, near))
                return
        elif seen is not None and "float" in seen.kinds:
            torch = writing.spelling("torch", self._function)
            self._give(node, f"{torch}.tensor({{0}}, dtype={torch}.float64)", (node,))
            return
        self._hand_on(node)

    def _arrays(self) -> Iterator[ast.expr]:
        """Arrays of NumPy that the step is given."""
        names = (n for s in self._roots for n in ast.walk(s) if isinstance(n, ast.Name))
        return (n for n in names if self._steps.is_numpy(n) and self._is_outer(n))

    def _give(self, node: ast.expr, template: str, parts: tuple[ast.expr, ...]) -> None:
        """A parameter in the place of ``node``, for what ``template`` makes of ``parts``."""
        key, word = template + ast.unparse(node), _word(node)
        free = (w for w in (word, f"{word}_value", *(f"{word}_{n}" for n in range(2, 99))) if self._is_free(w))
        parameter = self._given[key][0] if key in self._given else next(free)
        self._given[key] = parameter, Code(template, parts)
        self._replaced[node] = Code(parameter)

    def _is_free(self, word: str) -> bool:
        return word not in self._taken and all(word != parameter for parameter, _ in self._given.values())

    def _is_outer(self, node: ast.expr) -> bool:
        """Whether it can be evaluated above the step, and always is: it names nothing that the step binds before it."""
        syntax, ahead = self._steps.syntax, self._steps.facts.writing.why_not_ahead
        names = (n for n in ast.walk(node) if isinstance(n, ast.Name))
        bound = any(
            d.node in self._inside and (d.node.lineno, d.node.col_offset) < (n.lineno, n.col_offset)  # type: ignore[attr-defined]
            for n in names
            for d in self._flow.reaching.get(n, ())
        )
        return not bound and syntax.statement_of(node) in self._body and not ahead(node)

    # --- what it needs and leaves -----------------------------------------------------------------------------------

    def _reads(self) -> Iterator[ast.Name]:
        """The names that are read in what the step becomes."""
        todo: list[ast.AST] = list(self._roots)
        while todo:
            node = todo.pop()
            if node in self._replaced and not isinstance(node, ast.Call):
                continue
            if isinstance(node, ast.Name) and node in self._flow.reaching:
                yield node
            todo += ast.iter_child_nodes(node)

    def _handed(self) -> list[str] | None:
        """The names that the step is given as they are; None where one may have no value."""
        found: dict[str, None] = {}
        for name in sorted(self._reads(), key=lambda n: (n.lineno, n.col_offset)):
            outer = {d for d in self._flow.reaching[name] if d.node not in self._inside}
            if any(d.how == "unbound" for d in outer):
                return None
            values = [d.value for d in outer if isinstance(d.value, (ast.Attribute, ast.Subscript))]
            if self._steps.is_array(name) and any(map(self._steps.is_chain, values)):
                self._read = self._read or ast.unparse(values[0])
            found.update({name.id: None} if outer else {})
        return list(found)

    def _left(self) -> list[str] | None:
        """The names that the step binds and that are read later, in another turn too; None for one that it may not."""
        reads, wanted = set(self._reads()), dict[str, None]()
        sure = {n.id for s in self._body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(s, ast.Assign)}
        for node in self._inside:
            definition = self._flow.by_node.get(node)
            for use in self._flow.uses.get(definition, ()) if definition is not None else ():
                again = any(d.node not in self._inside for d in self._flow.reaching[use])
                if use not in self._inside or (use in reads and again):
                    wanted[use.id] = None
        names = sorted(wanted)
        handed = {n.id for n in reads if any(d.node not in self._inside for d in self._flow.reaching[n])}
        return None if any(n not in sure | handed for n in names) else names


def _spread(before: str, parts: Sequence[Code], after: str) -> Code:
    """The parts with commas between them."""
    return Code(f"{before}{', '.join(f'{{{number}}}' for number in range(len(parts)))}{after}", tuple(parts))


def _written(statement: ast.stmt) -> set[str]:
    """What it writes, as code says it."""
    nodes = [n for n in ast.walk(statement) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript))]
    called = {n.func for n in ast.walk(statement) if isinstance(n, ast.Call)}
    alone = statement.value.func if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) else None
    through = (n for n in nodes if isinstance(n, ast.Attribute) and n in called)
    own = {ast.unparse(n.value) for n in through if n is alone or n.attr.endswith("_")}
    return own | {ast.unparse(n) for n in nodes if not isinstance(n.ctx, ast.Load)}


def _word(node: ast.AST) -> str:
    """A name for what ``node`` reads."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name.lower() if name.isidentifier() and not keyword.iskeyword(name) else "given"
        case ast.Subscript(value=value) | ast.UnaryOp(operand=value):
            return _word(value)
    return "factor"
