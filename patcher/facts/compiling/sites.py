"""The places that compile a model: what is compiled there, of which class, what holds it then, and what decides."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.compiling.placing import Form, exclusive, form_of
from patcher.facts.compiling.repeated import RepeatedBlocks
from patcher.facts.project.block_lists import BlockList
from patcher.facts.syntax.tree import FunctionNode, Syntax, dotted
from patcher.facts.syntax.written import is_stored
from patcher.facts.values.callees import Callees
from patcher.facts.values.compile_calls import CompileCall, compile_calls
from patcher.facts.values.module_values import Bindings, ModuleIndex, ModuleValues

_WHOLE = frozenset({"torch.compile", "torch.nn.Module.compile"})


@dataclass(frozen=True, eq=False)
class CompileSite:
    """A call, or a decorator, that compiles something.

    ``call``: with its ``arguments``, a partial's first. ``node``: the same as an expression. ``model``: the model,
    also where its ``forward`` is compiled; None under a decorator. ``held``: what holds what was compiled afterwards.
    ``by_forward``: ``model.forward`` is compiled, or what is decorated is a method. ``cls``: the dotted class of the
    project that the model is of. ``is_module``: there is proof that it is an nn.Module. ``function``: in which it
    stands. ``others``: calls that compile the same thing in the same run.
    """

    path: str
    call: CompileCall
    node: ast.expr
    form: Form
    model: ast.expr | None
    held: ast.expr | None
    by_forward: bool
    cls: str | None
    is_module: bool
    function: FunctionNode | None
    others: tuple[CompileCall, ...] = ()

    @property
    def arguments(self) -> tuple[tuple[str, ast.expr], ...]:
        """Name and value; "*" and "**" for unpacked ones, "" for one without a name."""
        return self.call.arguments


class _ProjectIndex(ModuleIndex):
    """The module classes of one file, and of the project around it."""

    def __init__(self, facts: Facts) -> None:
        self._project, self._module = facts.project, facts.module
        super().__init__([(facts.module, facts.syntax)])

    def is_module_class(self, name: str) -> bool:
        """As far as this file tells, or the project."""
        own = f"{self._module}.{name}"
        return super().is_module_class(name) or any(self._project.is_module_class(n) for n in (name, own))


class CompileSites(Analysis):
    """The places of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.callees = facts.ask(Callees)

    @cached_property
    def calls(self) -> tuple[CompileCall, ...]:
        """All that has to do with compiling, settings and marks as well, in the order of the source."""
        return compile_calls(self.syntax, self._index)

    @cached_property
    def all(self) -> tuple[CompileSite, ...]:
        """Calls and decorators that compile something, in the order of the source."""
        kinds = ("call", "in place", "decorator")
        return tuple(self._site(c) for c in self.calls if c.kind in kinds and c.what in _WHOLE)

    @cached_property
    def replaced(self) -> bool:
        """Whether the file puts another function in the place of torch.compile."""
        return any(c.kind == "setting" and c.what == "torch.compile" for c in self.calls)

    def at(self, node: ast.AST) -> CompileSite | None:
        """The site that is ``node``."""
        return self._by_node.get(node)

    def call_at(self, node: ast.AST) -> CompileCall | None:
        """What has to do with compiling, and is ``node``."""
        return self._calls_by_node.get(node)

    @cached_property
    def _calls_by_node(self) -> dict[ast.AST, CompileCall]:
        return {call.node: call for call in self.calls}

    @cached_property
    def _by_node(self) -> dict[ast.AST, CompileSite]:
        return {site.node: site for site in self.all}

    @cached_property
    def _index(self) -> _ProjectIndex:
        return _ProjectIndex(self.facts)

    @cached_property
    def _values(self) -> ModuleValues:
        return ModuleValues(self.syntax, self._index, Bindings(self.syntax))

    def _site(self, call: CompileCall) -> CompileSite:
        assert isinstance(call.node, ast.expr)
        form, held = form_of(call, self.syntax)
        if form == "kept" and isinstance(held, ast.Subscript) and self._is_item(call.target, held):
            form = "again"  # for i, block in enumerate(blocks): blocks[i] = torch.compile(block)
        target = call.target
        by_forward = isinstance(target, ast.Attribute) and target.attr == "forward"
        model = target if isinstance(target, ast.expr) else None
        if by_forward and isinstance(target, ast.Attribute):
            model = target.value
            held = held.value if form == "again" and isinstance(held, ast.Attribute) else None
        elif model is None and target is not None:
            by_forward = self.syntax.class_of(target) is not None
        cls = self.class_of(model) if model is not None else None
        known = cls is not None and self.project.is_module_class(cls)
        is_module = model is not None and (known or self._values.is_module(model))
        return CompileSite(
            self.facts.path,
            call,
            call.node,
            form,
            model,
            held,
            by_forward,
            cls if known else None,
            is_module,
            self.syntax.function_of(call.node),
            tuple(self._others(call)),
        )

    def _is_item(self, target: ast.AST | None, held: ast.Subscript) -> bool:
        """Whether ``target`` is the name that a loop over ``enumerate`` has for ``held``, and nothing else uses it."""
        loop = next((p for p in self.syntax.ancestors(held) if isinstance(p, (ast.For, ast.While))), None)
        if not isinstance(target, ast.Name) or not isinstance(loop, ast.For) or not isinstance(held.slice, ast.Name):
            return False
        items = self.loop_over(target)
        if items is None or ast.unparse(items) != ast.unparse(held.value) or not isinstance(loop.target, ast.Tuple):
            return False
        index = loop.target.elts[0]
        reads = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == target.id and n is not target]
        return isinstance(index, ast.Name) and index.id == held.slice.id and reads == [loop.target.elts[1]]

    def _others(self, call: CompileCall) -> list[CompileCall]:
        """Calls of the same function that compile what is written the same way, and no other arm of an ``if``."""
        text = dotted(call.target) if call.target is not None else None
        scope = self.syntax.function_of(call.node)
        return [
            c
            for c in self.calls
            if c is not call
            and text is not None
            and c.kind in ("call", "in place")
            and c.target is not None
            and dotted(c.target) == text
            and self.syntax.function_of(c.node) is scope
            and not exclusive(c.node, call.node, self.syntax)
        ]

    # --- the class of a model ---------------------------------------------------------------------------------------

    def class_of(self, model: ast.expr, depth: int = 6) -> str | None:
        """The class, also through ``model.to(device)`` and names that get one thing only."""
        match model:
            case ast.Call(func=ast.Attribute(value=ast.Name() as inner)) if depth and self.callees.is_same(model):
                return self.class_of(inner, depth - 1)
            case ast.Call(func=ast.Attribute(value=maker, attr=method)) if made := self._made_by(maker, method):
                return made
            case ast.Subscript(value=holder, slice=key) if depth and not isinstance(key, ast.Slice):
                held = self.list_at(holder, depth - 1)
                return held.cls if held is not None else self.callees.class_of(model)
            case ast.Name() if depth and (items := self.loop_over(model)) is not None:
                held = self.list_at(items, depth - 1)
                return held.cls if held is not None else self.callees.class_of(model)
            case ast.Name() if depth:
                classes = {self.class_of(v, depth - 1) if v is not None else None for v in self.given(model)}
                return classes.pop() if len(classes) == 1 else self.callees.class_of(model) if not classes else None
            case ast.Attribute() if depth and self.callees.class_of(model) is None:
                return self._attribute(model, depth)
        return self.callees.class_of(model)

    def _made_by(self, maker: ast.expr, method: str) -> str | None:
        """The class of what ``GPT.from_pretrained(...)`` gives, where that method returns what it makes of its own."""
        cls = self.callees.class_named(maker) if isinstance(maker, (ast.Name, ast.Attribute)) else None
        function = self.project.function(f"{cls}.{method}") if cls is not None else None
        return cls if function is not None and function.returns == {cls} else None

    def list_at(self, e: ast.expr, depth: int = 6) -> BlockList | None:
        """The list of repeated blocks that ``e`` is: ``model.blocks``, ``model.transformer.h``."""
        path: list[str] = []
        while isinstance(e, ast.Attribute):
            path.insert(0, e.attr)
            e = e.value
            cls = self.class_of(e, depth) if depth and isinstance(e, (ast.Name, ast.Attribute)) else None
            found = self.facts.ask(RepeatedBlocks).of(cls) if cls is not None else ()
            if (one := next((one for one in found if one.path == ".".join(path)), None)) is not None:
                return one
        return None

    def loop_over(self, name: ast.Name) -> ast.expr | None:
        """What the items that ``name`` goes through are taken from, where it is the name of the loop around it."""
        loop = next((p for p in self.syntax.ancestors(name) if isinstance(p, ast.For)), None)
        if loop is None or not _in_body(name, loop, self.syntax):
            return None
        target, items = loop.target, loop.iter
        over = self.syntax.builtin(items) if isinstance(items, ast.Call) and len(items.args) == 1 else ""
        if isinstance(items, ast.Call) and over in ("enumerate", "reversed"):
            numbered = over == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2
            target, items = target.elts[1] if numbered else target, items.args[0]  # type: ignore[attr-defined]
        written = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == name.id and is_stored(n)]
        others = [
            n for n in written if n is not target and self.syntax.statement_of(n) is not self.syntax.statement_of(name)
        ]
        return items if isinstance(target, ast.Name) and target.id == name.id and not others else None

    def _attribute(self, model: ast.Attribute, depth: int) -> str | None:
        """The class of an attribute of ``self`` that is filled once, but for what torch.compile makes of it."""
        values = [v for v in self._values.bindings.values(model) if not self._compiles_again(v, model)]
        return self.class_of(values[0], depth - 1) if len(values) == 1 and isinstance(values[0], ast.Call) else None

    def _compiles_again(self, value: ast.expr, model: ast.expr) -> bool:
        call = next((c for c in self.calls if c.node is value), None)
        return call is not None and isinstance(call.target, ast.expr) and dotted(call.target) == dotted(model)

    def given(self, name: ast.Name) -> list[ast.expr | None]:
        """What may have been assigned to ``name`` before; None: in another way. None at all for a parameter."""
        return [value if not path else None for value, path in self.assigned(name)]

    def assigned(self, name: ast.Name) -> list[tuple[ast.expr | None, tuple[int, ...]]]:
        """The same, each with the place of what ``name`` gets in it."""
        if self.syntax.function_of(name) is not None:
            definitions = self.callees.inference.definitions(name)
            if any(d.how == "parameter" for d in definitions):
                return []
            return [(d.value if d.how == "assign" else None, d.path) for d in definitions]
        found: list[tuple[ast.expr | None, tuple[int, ...]]] = []
        this = self.syntax.statement_of(name)
        for store in sorted(self.syntax.by_type[ast.Name], key=lambda n: n.lineno):
            statement = self.syntax.statement_of(store)
            if store.id != name.id or not is_stored(store) or self.syntax.function_of(store) is not None:
                continue
            if statement is this or statement.lineno >= name.lineno:
                continue
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            path = (target.elts.index(store),) if isinstance(target, ast.Tuple) and store in target.elts else ()
            own = isinstance(statement, ast.Assign) and (bool(path) or store in statement.targets)
            found.append((statement.value if own and isinstance(statement, ast.Assign) else None, path))
        return found


def _in_body(n: ast.AST, loop: ast.For, syntax: Syntax) -> bool:
    around = {n, *syntax.ancestors(n)}
    return any(s in around for s in loop.body)
