"""Which expressions may hold a model that torch.compile has wrapped, itself or parts of it.

What other files of the project do to it is known where a function of theirs is called, and where accelerate is told to
compile what it prepares. Where a model is not wrapped after all, as without a flag, what is written for it gives the
same object back: that it may be is enough. All about names was seen on torch 2.13 and accelerate 1.15.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.compiling.placing import is_place
from patcher.facts.compiling.sites import CompileSite, CompileSites
from patcher.facts.flow.definitions import Definition
from patcher.facts.project.index import FunctionSummary, ModuleSummary
from patcher.facts.project.wrapping import tells_dynamo
from patcher.facts.syntax.classes import self_name
from patcher.facts.syntax.tree import dotted, last_name
from patcher.facts.syntax.written import all_parameters
from patcher.facts.values.callees import Callees
from patcher.facts.values.module_values import imported

PART = "_orig_mod"
#: What asks for a wrapper, in PyTorch, diffusers and accelerate.
_ASKING = frozenset({PART, "OptimizedModule", "is_compiled_module"})
#: They hold the model, or a copy of it, as ``module``.
_PARALLEL = frozenset({"DistributedDataParallel", "DataParallel", "DDP", "AveragedModel"})
#: Their state is taken by functions of their own, which know the wrapper.
_SHARDED = frozenset({"FullyShardedDataParallel", "FSDP", "fully_shard"})
_SAME = frozenset({"copy.deepcopy", "copy.copy"})
#: What the value of an expression goes through on its way into a module, or a list of them.
_COLLECTING = (ast.Call, ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp, ast.Starred, ast.Dict, ast.DictComp)
#: What tells accelerate to compile.
_ADDING = frozenset("append insert extend add_module register_module __setitem__ __setattr__ update".split())
_DEPTH = 8


@dataclass(frozen=True)
class Wrap:
    """What wraps, at ``line`` of this file, or as ``where`` tells: "" for a call of torch.compile in this file.

    ``inside``: it wraps a part of the model, and not the model. ``handed``: what is handed over may be wrapped so by
    whoever hands it over, in another file.
    """

    line: int
    inside: bool
    where: str = ""
    handed: bool = False


Wraps = frozenset[Wrap]
_NONE: Wraps = frozenset()


class ShardedError(Exception):
    """The model is sharded: nobody but PyTorch knows the names of its state."""


class Wrapped(Analysis):
    """Expressions of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.callees = facts.ask(Callees)
        self.sites = [s for s in facts.ask(CompileSites).all if self._wraps(s)]
        self.by_node = {s.node: s for s in self.sites}

    @cached_property
    def elsewhere(self) -> Wrap | None:
        """Where accelerate is told to compile what it prepares, anywhere in the project."""
        for module in sorted(self.project.modules.values(), key=lambda m: m.path != self.facts.path):
            if module.accelerated:
                line = min(module.accelerated)
                return self._accelerator(line, module)
        return None

    def _accelerator(self, line: int, module: ModuleSummary | None = None) -> Wrap:
        own = module is None or module.path == self.facts.path
        file = "" if own or module is None else f"{module.path.rpartition('/')[2]}, "
        return Wrap(line, inside=False, where=f"`Accelerator(dynamo_backend=...)` ({file}line {line})")

    def handed(self, model: ast.expr) -> Wraps:
        """Whether ``model`` is what a function is handed over from other files, where accelerate compiles models."""
        if not self._is_handed(model, 3) or self._asked(model) or self.elsewhere is None:
            return _NONE
        return frozenset({replace(self.elsewhere, handed=True)})

    def _is_handed(self, e: ast.expr, depth: int) -> bool:
        if not isinstance(e, ast.Name) or not depth:
            return False
        definitions = self.callees.inference.definitions(e)
        if not definitions:  # of a function around this one
            around = (f for f in self.syntax.ancestors(e) if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef)))
            return any(e.id in {p.arg for p in all_parameters(f.args)} for f in around)
        method = self.syntax.method_of(e)
        if any(d.how != "parameter" for d in definitions) or (method is not None and self_name(method) == e.id):
            return False
        values = self.values(e, _DEPTH)
        return not values or any(self._is_handed(v, depth - 1) for v in values)

    def _prepared_by(self, accelerator: ast.expr) -> Wraps:
        """What ``prepare`` of that object puts around a model."""
        held = self.values(accelerator, 2) if is_place(accelerator) else [accelerator]
        made = [m for value in held for m in self._made_by(value)]
        told = [(v, self._tells_dynamo(v)) for v in made]
        if wraps := [self._accelerator(v.lineno) for v, does in told if does]:
            return frozenset(wraps)
        unknown = not told or any(does is None for _, does in told)
        return frozenset({self.elsewhere}) if unknown and self.elsewhere is not None else _NONE

    def _made_by(self, value: ast.expr) -> list[ast.expr]:
        """What functions of this file return, where ``value`` calls one; else ``value``."""
        names = self.callees.of(value) if isinstance(value, ast.Call) else ()
        functions = [f for name in names if (f := self.callees.here(name)) is not None]
        returned = [
            r.value
            for r in self.syntax.by_type[ast.Return]
            if isinstance(r, ast.Return) and r.value is not None and self.syntax.function_of(r) in functions
        ]
        made = [m for r in returned for m in (self.values(r, 2) if is_place(r) else [r])]
        return made if functions and made else [value]

    def _tells_dynamo(self, made: ast.expr) -> bool | None:
        return tells_dynamo(made, lambda _: self.syntax.qualified(made.func)) if isinstance(made, ast.Call) else None

    @cached_property
    def _wrapping(self) -> list[tuple[ast.Call, str, FunctionSummary]]:
        """Calls of functions in other files that wrap what they are given, or parts of it."""
        found = []
        for call in self.syntax.by_type[ast.Call]:
            for name in self.callees.of(call) if isinstance(call, ast.Call) else ():
                summary = self.project.function(name) if self.callees.here(name) is None else None
                if summary is not None and summary.wraps:
                    found.append((call, name, summary))
        return found

    def of(self, model: ast.expr) -> Wraps:
        """The calls that may have wrapped what ``model`` holds where it stands; none where it is not known to be."""
        if self._asked(model):
            return _NONE
        try:
            return self._of(model, _DEPTH)
        except ShardedError:
            return _NONE

    def speaks_of_it(self, node: ast.AST) -> bool:
        """Whether what stands in ``node``, or a function of the file that it names, has to do with the wrapper."""
        return any(self._names_it(n) for n in ast.walk(node))

    def _names_it(self, n: ast.AST) -> bool:
        match n:
            case ast.Constant(value=str(text)):
                return PART in text
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in _ASKING:
                return True
            case ast.Name(ctx=ast.Load()):
                return self._names_in_text(n) or self._function_speaks(n.id)
            case ast.Attribute(attr=name):
                return self._function_speaks(name)
        return False

    def _names_in_text(self, n: ast.Name) -> bool:
        """``unwanted_prefix = "_orig_mod."``."""
        stores = (s for s in self.syntax.by_type[ast.Assign] if any(dotted(t) == n.id for t in s.targets))
        return any(isinstance(s.value, ast.Constant) and PART in str(s.value.value) for s in stores)

    def _function_speaks(self, name: str) -> bool:
        if "uncompile" in name or name == "consume_prefix_in_state_dict_if_present":
            return True
        return any(
            f.name == name and any(isinstance(n, ast.Constant) and PART in str(n.value) for n in ast.walk(f))
            for f in self.syntax.functions
        )

    def _asked(self, e: ast.expr) -> bool:
        """Whether it stands where a test has asked for the wrapper."""
        tests = (p.test for p in self.syntax.ancestors(e) if isinstance(p, (ast.If, ast.IfExp)))
        return any(self.speaks_of_it(test) for test in tests)

    def _wraps(self, site: CompileSite) -> bool:
        return site.form not in ("in place", "discarded", "decorator") and not site.by_forward

    # --- the model itself -------------------------------------------------------------------------------------------

    def _of(self, e: ast.expr, depth: int) -> Wraps:
        if not depth:
            return _NONE
        match e:
            case ast.Call():
                return self._call(e, depth - 1)
            case ast.IfExp(body=a, orelse=b):
                either = self._of(a, depth - 1) | self._of(b, depth - 1)
                return _parts(either) if self.speaks_of_it(e) else either
            case ast.BoolOp(values=values):
                return frozenset(w for v in values for w in self._of(v, depth - 1))
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                return self._of(value, depth - 1)
            case ast.Attribute(value=model, attr=attr) if attr == PART:
                return _parts(self._of(model, depth - 1))
            case ast.Attribute(value=model, attr="module"):
                return self._module(model, depth - 1)
            case ast.Name() | ast.Attribute() | ast.Subscript():
                values = self.values(e, depth)
                found = frozenset(w for v in values for w in self._of(v, depth - 1))
                unwrapped = any(self._unwraps(v) for v in values)
                return (_parts(found) if unwrapped else found) | self._inside(e)
        return _NONE

    def _call(self, call: ast.Call, depth: int) -> Wraps:
        what = imported(self.syntax, call.func) or ""
        name, first = last_name(call.func), next(iter(call.args), None)
        if name in _SHARDED or what.rpartition(".")[2] in _SHARDED:
            raise ShardedError
        if (site := self.by_node.get(call)) is not None:
            inner = self._of(site.model, depth) if site.model is not None else _NONE
            return inner | {Wrap(call.lineno, inside=False)}
        if self.callees.is_same(call) and isinstance(call.func, ast.Attribute):
            return self._of(call.func.value, depth)
        if first is None or isinstance(first, ast.Starred):
            return self._returned(call, depth)
        if name == "unwrap_model" and isinstance(call.func, ast.Attribute):
            kept = [k.value for k in call.keywords if k.arg == "keep_torch_compile"]
            plain = any(not (isinstance(v, ast.Constant) and v.value is True) for v in kept)
            return _parts(self._of(first, depth)) if plain else self._of(first, depth)
        if self.syntax.builtin(call) == "getattr" and self.speaks_of_it(call):
            return _parts(self._of(first, depth))
        given_back = name in _PARALLEL or what in _SAME or what.rpartition(".")[2] in _PARALLEL
        if isinstance(call.func, ast.Attribute) and name in ("prepare", "prepare_model"):
            return self._of(first, depth) | self._prepared_by(call.func.value)
        if given_back:
            return self._of(first, depth)
        return self._returned(call, depth)

    def _returned(self, call: ast.Call, depth: int) -> Wraps:
        """What a function of this file returns, and of which class it is."""
        found = set(self._of_class(call))
        for name in self.callees.of(call):
            function = self.callees.here(name)
            summary = self.project.function(name) if function is None else None
            if summary is not None and "torch.compile" in summary.returns:
                found.add(Wrap(call.lineno, inside=False, where=f"`{name.rpartition('.')[2]}` (line {call.lineno})"))
            if function is not None:
                values = (r.value for r in self.syntax.by_type[ast.Return] if self.syntax.function_of(r) is function)
                own = frozenset(w for v in values if v is not None for w in self._of(v, depth))
                found |= _parts(own) if own and self.speaks_of_it(function) else own
        return frozenset(found)

    def _module(self, model: ast.expr, depth: int) -> Wraps:
        """``model.module``: what is below DistributedDataParallel, also through a wrapper around that."""
        if not depth:
            return _NONE
        if isinstance(model, ast.Call):
            site = self.by_node.get(model)
            if site is not None and site.model is not None:
                return self._module(site.model, depth - 1)
            return self._of(model, depth)
        values = self.values(model, depth)
        return frozenset(w for v in values for w in self._module(v, depth - 1)) | self._inside(model)

    def _unwraps(self, e: ast.expr) -> bool:
        """Whether it is what is below a wrapper."""
        return any(isinstance(n, (ast.Attribute, ast.Constant)) and self._names_it(n) for n in ast.walk(e))

    # --- what names and attributes hold -----------------------------------------------------------------------------

    def values(self, e: ast.expr, depth: int) -> list[ast.expr]:
        """What may have been assigned to ``e``."""
        if isinstance(e, ast.Name) and self.callees.inference.definitions(e):
            found: list[ast.expr] = []
            for d in self.callees.inference.definitions(e):
                value, path = d.part
                if d.how == "parameter":
                    found += [*self.callees.given(d), *self._given_to_class(d)]
                elif d.how == "assign" and value is not None:
                    found += _prepared(value, path)
            return found
        if isinstance(e, ast.Attribute) and (held := self._held_by_class(e)):
            return held
        text = ast.unparse(e)
        stores: list[tuple[ast.stmt, ast.expr]] = []
        assignments: list[ast.Assign | ast.AnnAssign] = [*self.syntax.by_type[ast.Assign]]
        for s in (*assignments, *self.syntax.by_type[ast.AnnAssign]):
            targets = s.targets if isinstance(s, ast.Assign) else [s.target]
            for target in targets:
                several = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
                for i, t in enumerate(several):
                    if ast.unparse(t) == text and s.value is not None and self._same_thing(t, e):
                        path = (i,) if several != [target] else ()
                        stores += [(s, value) for value in _prepared(s.value, path)]
        return self._last(stores, e)

    def _given_to_class(self, d: Definition) -> list[ast.expr]:
        """What calls of the class hand over for the parameter ``d`` of its constructor."""
        constructor = next((f for f in self.syntax.functions if d.node in all_parameters(f.args)), None)
        cls = self.syntax.class_of(constructor) if constructor is not None else None
        if cls is None or constructor is None or constructor.name != "__init__":
            return []
        names = [a.arg for a in (*constructor.args.posonlyargs, *constructor.args.args)][1:]
        found: list[ast.expr] = []
        for call in self.syntax.by_type[ast.Call]:
            if last_name(call.func) == cls.name:
                found += [a for n, a in zip(names, call.args, strict=False) if n == d.name]
                found += [k.value for k in call.keywords if k.arg == d.name]
        return found

    def _held_by_class(self, e: ast.Attribute) -> list[ast.expr]:
        """What the class of the owner keeps in that attribute, where the owner is not ``self``."""
        owner = self.callees.class_of(e.value) if ast.unparse(e.value) != "self" else None
        classes = [c for c in self.syntax.by_type[ast.ClassDef] if owner == f"{self.module}.{self.syntax.qualname(c)}"]
        stores = [s for c in classes for s in self.facts.class_facts(c).stores.get(e.attr, [])]
        return [s.value for s in stores if s.value is not None]

    def _last(self, stores: list[tuple[ast.stmt, ast.expr]], e: ast.expr) -> list[ast.expr]:
        """Those of ``stores`` that ``e`` may see: in its own function, none above one that always comes after."""
        function, found = self.syntax.function_of(e), list[ast.expr]()
        here = self.syntax.statement_of(e)
        around = [here, *self.syntax.ancestors(here)]
        loops = [p for p in around if isinstance(p, (ast.For, ast.AsyncFor, ast.While))]
        for s, value in sorted(stores, key=lambda store: store[0].lineno, reverse=True):
            if self.syntax.function_of(s) is not function:
                found.append(value)
                continue
            again = any(p in loops for p in self.syntax.ancestors(s))
            if s is here or (s.lineno >= here.lineno and not again):
                continue
            found.append(value)
            if any(isinstance(p, ast.stmt) and s in self.syntax.block_of(p) for p in around) and not again:
                return found
        return found

    def _same_thing(self, a: ast.expr, b: ast.expr) -> bool:
        """Whether two expressions that are written alike mean one thing: by the class for ``self``, or the function."""
        if ast.unparse(_root(a)) == "self":
            return self.syntax.class_of(a) is self.syntax.class_of(b) is not None
        scopes = self.syntax.function_of(a), self.syntax.function_of(b)
        return scopes[0] is scopes[1] or (scopes[0] is None and not self._is_local(_root(b)))

    def _is_local(self, e: ast.expr) -> bool:
        return isinstance(e, ast.Name) and bool(self.callees.inference.definitions(e))

    # --- parts of the model -----------------------------------------------------------------------------------------

    def _inside(self, e: ast.expr) -> Wraps:
        """Calls that wrap parts of ``e``: blocks of it, in place, before it is read."""
        found = {
            Wrap(s.node.lineno, inside=True)
            for s in self.sites
            if any(self._is_part(at, text, e) for at, text in self._held(s))
        }
        for call, name, summary in self._wrapping:
            for n in (n for given in _arguments(call, summary) for n in ast.walk(given)):
                if isinstance(n, (ast.Name, ast.Attribute)) and self._is_part(n, f"{ast.unparse(n)}.?", e):
                    where = f"`{name.rpartition('.')[2]}` (line {call.lineno})"
                    found.add(Wrap(call.lineno, inside=True, where=where))
        return frozenset(found) | self._of_class(e)

    def _of_class(self, e: ast.expr) -> Wraps:
        """Those by which a class of this file wraps parts of its own instances."""
        name = self.callees.class_of(e)
        if name is None or not self.project.is_module_class(name):
            return _NONE
        return frozenset(
            Wrap(s.node.lineno, inside=True)
            for s in self.sites
            if (place := self._holder(s)) is not None
            and ast.unparse(_root(place)) == "self"
            and (cls := self.syntax.class_of(s.node)) is not None
            and name == f"{self.module}.{self.syntax.qualname(cls)}"
        )

    def _holder(self, site: CompileSite) -> ast.expr | None:
        """What holds what is wrapped as a part: an attribute or item, or a module or list that it is added to."""
        node: ast.AST = site.node
        while isinstance(parent := self.syntax.parents.get(node), _COLLECTING):
            if isinstance(parent, ast.Call):
                if self.syntax.builtin(parent) == "setattr":
                    return ast.Attribute(parent.args[0], "?", ast.Store())
                if isinstance(parent.func, ast.Attribute) and parent.func.attr in _ADDING:
                    return ast.Attribute(parent.func.value, "?", ast.Store())
            node = parent
        targets = parent.targets if isinstance(parent, ast.Assign) else []
        if site.held is not None and site.form != "other":
            targets = [site.held]
        return next((t for t in targets if isinstance(t, (ast.Attribute, ast.Subscript))), None)

    def _held(self, site: CompileSite) -> Iterator[tuple[ast.expr, str]]:
        """What holds the part that is wrapped, and its text, also as a caller of the function writes it."""
        place = self._holder(site)
        if place is not None:
            root = _root(place)
            yield root, ast.unparse(place)
            if isinstance(root, ast.Name):
                yield from ((e, f"{ast.unparse(e)}.?") for e in self._written_as(root, 3))

    def _written_as(self, root: ast.Name, depth: int) -> Iterator[ast.expr]:
        for d in self.callees.inference.definitions(root) if depth else ():
            values = self.callees.given(d) if d.how == "parameter" else [d.value] if d.value is not None else []
            for value in values:
                for n in ast.walk(value):
                    if isinstance(n, (ast.Attribute, ast.Name)) and n is not root:
                        yield n
                    if isinstance(n, ast.Name) and n.id != root.id:
                        yield from self._written_as(n, depth - 1)

    def _is_part(self, at: ast.expr, written: str, e: ast.expr) -> bool:
        """Whether what is ``written`` at ``at`` is below ``e``, and that is so before ``e`` is read."""
        if not self._same_thing(at, e) or ast.unparse(_root(at)) != ast.unparse(_root(e)):
            return False
        if self.syntax.function_of(at) is self.syntax.function_of(e) and at.lineno > e.lineno:
            loops = [p for p in self.syntax.ancestors(e) if isinstance(p, (ast.For, ast.AsyncFor, ast.While))]
            if not any(p in loops for p in self.syntax.ancestors(at)):
                return False
        return written.startswith((f"{ast.unparse(e)}.", f"{ast.unparse(e)}["))


def _arguments(call: ast.Call, summary: FunctionSummary) -> Iterator[ast.expr]:
    """What ``call`` hands over for the parameters, parts of which are wrapped."""
    names = summary.positional[1:] if "." in summary.qualname else summary.positional
    yield from (a for n, a in zip(names, call.args, strict=False) if n in summary.wraps)
    yield from (k.value for k in call.keywords if k.arg in summary.wraps)


def _parts(wraps: Wraps) -> Wraps:
    """Those that are left when the wrapper around the model is taken away."""
    return frozenset(w for w in wraps if w.inside)


def _root(e: ast.expr) -> ast.expr:
    while isinstance(e, (ast.Attribute, ast.Subscript)):
        e = e.value
    return e


def _prepared(value: ast.expr, path: tuple[int, ...]) -> list[ast.expr]:
    """``value``, or what ``a, b = accelerator.prepare(x, y)`` makes of it at ``path``."""
    if not path:
        return [value]
    match value:
        case ast.Call(func=ast.Attribute(attr="prepare"), args=args) if len(path) == 1 and path[0] < len(args):
            return [args[path[0]]]
        case ast.Tuple(elts=elts) | ast.List(elts=elts) if path[0] < len(elts):
            return _prepared(elts[path[0]], path[1:])
    return []
