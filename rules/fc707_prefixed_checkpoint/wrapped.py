"""Which expressions may hold a model that torch.compile has wrapped, itself or parts of it.

What other files of the project do to it is known where accelerate is told to compile what it prepares. Where a model is
not wrapped after all, as without a flag, what is written for it gives the same object back: that it may be is enough.
All about names was seen on torch 2.13 and accelerate 1.15.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.compiling.sites import CompileSite, CompileSites
from patcher.facts.flow.definitions import Definition
from patcher.facts.project.wrapping import tells_dynamo
from patcher.facts.syntax.tree import dotted, last_name
from patcher.facts.syntax.written import all_parameters, is_stored, one_of
from patcher.facts.values.callees import Callees

PART = "_orig_mod"
#: What asks for a wrapper, in PyTorch, diffusers and accelerate.
_ASKING = frozenset({PART, "OptimizedModule", "is_compiled_module", "consume_prefix_in_state_dict_if_present"})
#: They hold the model, or a copy of it, as ``module``.
_PARALLEL = frozenset({"DistributedDataParallel", "DataParallel", "DDP", "AveragedModel"})
#: Their state is taken by functions of their own, which know the wrapper.
_SHARDED = frozenset({"FullyShardedDataParallel", "FSDP", "fully_shard"})
#: They give back the model that they are given, or hold it.
_GIVING_BACK = frozenset({"deepcopy", "copy", "getattr", "unwrap_model", "prepare", "prepare_model", *_PARALLEL})
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
                own = module.path == self.facts.path
                return self._accelerator(min(module.accelerated), "" if own else f"{module.path.rpartition('/')[2]}, ")
        return None

    def _accelerator(self, line: int, file: str = "") -> Wrap:
        return Wrap(line, inside=False, where=f"`Accelerator(dynamo_backend=...)` ({file}line {line})")

    def handed(self, model: ast.expr) -> Wraps:
        """Whether ``model`` is what a function is handed over, where accelerate compiles models in another file."""
        functions = [f for f in self.syntax.ancestors(model) if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef))]
        taken = {p.arg for f in functions for p in all_parameters(f.args)} - {"self"}
        if not isinstance(model, ast.Name) or model.id not in taken or self._asked(model) or self.elsewhere is None:
            return _NONE
        return frozenset({replace(self.elsewhere, handed=True)})

    @cached_property
    def _prepared(self) -> Wraps:
        """What ``prepare`` puts around a model: as the accelerator of this file is told, or else one of another."""
        made = [(c, tells_dynamo(c, lambda _, c=c: self.syntax.qualified(c.func))) for c in self._calls]  # type: ignore[misc]
        if any(told is not None for _, told in made):
            return frozenset(self._accelerator(c.lineno) for c, told in made if told)
        return frozenset({self.elsewhere}) if self.elsewhere is not None else _NONE

    @property
    def _calls(self) -> list[ast.Call]:
        return [c for c in self.syntax.by_type[ast.Call] if isinstance(c, ast.Call)]

    def of(self, model: ast.expr) -> Wraps:
        """The calls that may have wrapped what ``model`` holds where it stands; none where it is not known to be."""
        if self._asked(model) or any(last_name(c.func) in _SHARDED for c in self._calls):
            return _NONE
        return self._of(model, _DEPTH)

    def speaks_of_it(self, node: ast.AST) -> bool:
        """Whether what stands in ``node``, or a function of the file that it names, has to do with the wrapper."""
        return any(self._names_it(n) for n in ast.walk(node))

    def _names_it(self, n: ast.AST) -> bool:
        name = last_name(n)
        return _has_part(n) or name in self._speaking or ("uncompile" in name and not is_stored(n))

    @cached_property
    def _speaking(self) -> frozenset[str]:
        """Names that have to do with it: of what asks for it, and of texts and functions of the file."""
        functions = (f.name for f in self.syntax.functions if any(map(_has_part, ast.walk(f))))
        texts = (dotted(t) for s in self.syntax.by_type[ast.Assign] if _has_part(s.value) for t in s.targets)
        return _ASKING | {*functions, *filter(None, texts)}

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
            case ast.IfExp() | ast.BoolOp() | ast.NamedExpr():
                either = frozenset(w for part in one_of(e) for w in self._of(part, depth - 1))
                return _parts(either) if self.speaks_of_it(e) else either
            case ast.Attribute(value=value, attr="module"):
                return self._of(value, depth - 1)
            case ast.Attribute(value=value, attr=attr) if attr == PART:
                return _parts(self._of(value, depth - 1))
            case ast.Name() | ast.Attribute() | ast.Subscript():
                values = self.values(e, depth)
                found = frozenset(w for v in values for w in self._of(v, depth - 1))
                unwrapped = any(self._names_it(n) for v in values for n in ast.walk(v) if not isinstance(n, ast.Name))
                return (_parts(found) if unwrapped else found) | self._inside(e)
        return _NONE

    def _call(self, call: ast.Call, depth: int) -> Wraps:
        name, first = last_name(call.func), next(iter(call.args), None)
        if (site := self.by_node.get(call)) is not None:
            inner = self._of(site.model, depth) if site.model is not None else _NONE
            return inner | {Wrap(call.lineno, inside=False)}
        if self.callees.is_same(call) and isinstance(call.func, ast.Attribute):
            return self._of(call.func.value, depth)
        method = isinstance(call.func, ast.Attribute) or not name.startswith(("unwrap", "prepare"))
        if first is None or isinstance(first, ast.Starred) or name not in _GIVING_BACK or not method:
            return self._returned(call, depth)
        found = self._of(first, depth) | (self._prepared if name.startswith("prepare") else _NONE)
        kept = [k.value for k in call.keywords if k.arg == "keep_torch_compile"]
        plain = any(not (isinstance(v, ast.Constant) and v.value is True) for v in kept)
        return _parts(found) if plain or (name == "getattr" and self.speaks_of_it(call)) else found

    def _returned(self, call: ast.Call, depth: int) -> Wraps:
        """What a function of the file returns, and of which class it is."""
        found = set(self._of_class(call))
        for function in filter(None, map(self.callees.here, self.callees.of(call))):
            if not self.speaks_of_it(function):
                values = (r.value for r in self.syntax.by_type[ast.Return] if self.syntax.function_of(r) is function)
                found |= {w for v in values if v is not None for w in self._of(v, depth)}
        return frozenset(found)

    # --- what names and attributes hold -----------------------------------------------------------------------------

    def values(self, e: ast.expr, depth: int) -> list[ast.expr]:
        """What may have been assigned to ``e``: an attribute anywhere in the file."""
        found: list[ast.expr] = []
        if isinstance(e, ast.Name) and self.callees.inference.definitions(e):
            for d in self.callees.inference.definitions(e):
                value, path = d.part
                if d.how == "parameter":
                    found += [*self.callees.given(d), *self._given_to_class(d)]
                elif d.how == "assign" and value is not None:
                    found += _prepared(value, path)
            return found
        text, name = ast.unparse(e), e.attr if isinstance(e, ast.Attribute) else ""
        stores = ((s, t) for s in self.syntax.by_type[ast.Assign] if s.lineno != e.lineno for t in s.targets)
        for s, target in stores:
            for i, t in enumerate(target.elts if isinstance(target, ast.Tuple) else [target]):
                if ast.unparse(t) == text or (name and isinstance(t, ast.Attribute) and t.attr == name):
                    found += _prepared(s.value, (i,) if isinstance(target, ast.Tuple) else ())
        return found

    def _given_to_class(self, d: Definition) -> list[ast.expr]:
        """What calls of the class hand over for the parameter ``d`` of its constructor."""
        cls = self.syntax.class_of(d.node)
        init = self.facts.class_facts(cls).methods.get("__init__") if cls is not None else None
        if cls is None or init is None or d.node not in all_parameters(init.args):
            return []
        at = [a.arg for a in init.args.args].index(d.name) - 1 if d.node in init.args.args else len(init.args.args)
        calls = [c for c in self._calls if last_name(c.func) == cls.name]
        return [a for c in calls for a in (*c.args[at : at + 1], *(k.value for k in c.keywords if k.arg == d.name))]

    # --- parts of the model -----------------------------------------------------------------------------------------

    def _inside(self, e: ast.expr) -> Wraps:
        """Calls that wrap blocks of what ``e`` holds, by its name."""
        root = ast.unparse(_root(e))
        sites = (s for s in self.sites if root != "self" and root in self._roots(s))
        found = frozenset(Wrap(s.node.lineno, inside=True) for s in sites)
        return found | self._of_class(e)

    def _of_class(self, e: ast.expr) -> Wraps:
        """Those by which a class of this file wraps parts of its own instances."""
        name = self.callees.class_of(e)
        if name is None or not self.project.is_module_class(name):
            return _NONE
        owners = ((s, self.syntax.class_of(s.node)) for s in self.sites if "self" in self._roots(s))
        return frozenset(
            Wrap(s.node.lineno, inside=True)
            for s, cls in owners
            if cls is not None and name == f"{self.module}.{self.syntax.qualname(cls)}"
        )

    def _roots(self, site: CompileSite) -> set[str]:
        """The names of what holds the part that is wrapped there, also as a caller of the function writes it."""
        s = self.syntax.statement_of(site.node)
        holder: ast.expr | None = None
        match s:
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript() as holder]):
                pass
            case ast.Expr(value=ast.Call(func=ast.Name(id="setattr"), args=[holder, *_])):
                pass
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=holder, attr=name))) if name in _ADDING:
                pass
        root = _root(holder) if holder is not None else None
        if not isinstance(root, ast.Name):
            return set()
        definitions = self.callees.inference.definitions(root)
        given = [g for d in definitions for g in (self.callees.given(d) if d.how == "parameter" else [d.value])]
        return {root.id, *(n.id for g in given if g is not None for n in ast.walk(g) if isinstance(n, ast.Name))}


def _has_part(n: ast.AST) -> bool:
    return isinstance(n, ast.Constant) and PART in str(n.value)


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
