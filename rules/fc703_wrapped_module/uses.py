"""Who could tell a module that is compiled in place from the wrapper that torch.compile makes of it.

The wrapper hands on attributes and calls; what is different are the names of parameters and modules, what ``is`` the
module, what a method of it calls of itself, and whoever holds the module without the wrapper. All seen on torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.compiling.placing import tried
from patcher.facts.compiling.sites import CompileSite, CompileSites
from patcher.facts.syntax.tree import FunctionNode, dotted
from patcher.facts.syntax.written import all_parameters
from patcher.facts.values.callees import Callees
from patcher.facts.values.module_values import imported
from rules.fc703_wrapped_module.items import why_seen

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_WRAPPED = "_orig_mod"
#: Methods that give the module back, and those that give what is no name.
GIVING_BACK = frozenset("train eval to cuda cpu xpu half float double bfloat16 requires_grad_ to_empty".split())
_QUIET = frozenset({*GIVING_BACK, "parameters", "buffers", "zero_grad"})
#: What a module has besides: it has other names in it, or one module more, when it is the wrapper.
NAMING = frozenset(
    "state_dict named_parameters named_buffers named_modules named_children get_parameter get_buffer get_submodule "
    "children modules apply".split()
)
OTHERS = frozenset(
    "load_state_dict register_buffer register_parameter register_module add_module set_submodule share_memory type "
    "extra_repr register_forward_hook register_forward_pre_hook register_full_backward_hook register_backward_hook "
    "register_full_backward_pre_hook register_state_dict_pre_hook register_load_state_dict_post_hook set_extra_state "
    "register_state_dict_post_hook register_load_state_dict_pre_hook get_extra_state ipu mtia dump_patches "
    "T_destination call_super_init _get_name _apply _version _buffers _call_impl _wrapped_call_impl _slow_forward "
    "_forward_hooks _forward_pre_hooks _backward_hooks _backward_pre_hooks _state_dict_hooks _state_dict_pre_hooks "
    "_load_state_dict_pre_hooks _load_state_dict_post_hooks _non_persistent_buffers_set _named_members "
    "_save_to_state_dict _load_from_state_dict _register_load_state_dict_pre_hook _register_state_dict_hook "
    "_replicate_for_data_parallel _maybe_warn_non_full_backward_hook".split()
)
#: Methods that the wrapper has from `torch.nn.Module`, and does not look for in the module, and what they call.
_SHADOWED = (*sorted(_QUIET), *"named_parameters named_buffers named_modules modules children named_children".split())
#: Methods that see one attribute more of a module that is compiled in place.
_WATCHING = ("__setattr__", "__getattribute__", "__delattr__")
#: There is a difference that a rewrite would have to know the reason of.
_KEPT = frozenset(
    "forward compile _modules _parameters _compiled_call_impl _forward dynamo_ctx get_compiler_config "
    "_torchdynamo_orig_callable named_children_walk".split()
)
_IDENTITY = frozenset("isinstance issubclass type id len iter next enumerate list tuple hash vars dir".split())
_MODULE = frozenset({"torch.nn.Module", "torch.nn.modules.module.Module"})
_COPYING = frozenset({"copy.deepcopy", "copy.copy", "pickle.dump", "pickle.dumps", "torch.save"})
_DEPTH = 3
#: What tells a wrapper from a module, in PyTorch and in diffusers and accelerate.
_ASKING = frozenset({"OptimizedModule", "is_compiled_module"})
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
#: Code that runs later than where it stands.
_LATER = (*_FUNCTIONS, ast.Lambda, ast.GeneratorExp)
#: What finds global names by their text.
_BY_TEXT = frozenset({"globals", "eval", "exec", "vars", "locals"})


@dataclass(frozen=True)
class Seen:
    """``kept``: why it stays as it is; ``notes``: what is different for whom. Neither: nobody can tell."""

    kept: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Told:
    """What is different for whom. ``names``: it is about names of parameters, which end up in files."""

    text: str
    kept: bool = False
    names: bool = False


class WrapperUses(Analysis):
    """Uses of what the calls of one module compile."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.callees = facts.ask(Callees)

    def of(self, site: CompileSite) -> Seen:
        """What would tell, as far as this file shows."""
        held = site.held
        assert held is not None
        statement = self.syntax.statement_of(site.node)
        told = list(self.holders(site))
        if _WRAPPED in self.syntax.names_in(self.syntax.tree):
            told += self._bare()
        told += self._asking()
        loops = [p for p in self.syntax.ancestors(site.node) if isinstance(p, _LOOPS)]
        for e in self.occurrences(held):
            if self.syntax.statement_of(e) is statement:
                continue
            in_loop = any(p in loops for p in self.syntax.ancestors(e))
            elsewhere = self.syntax.function_of(e) is not site.function
            after = elsewhere or in_loop or (e.lineno, e.col_offset) > (statement.lineno, statement.col_offset)
            found = self.use(e, ast.unparse(held), site, after, 0)
            told += [] if found is None else [found]
        kept = next((t.text for t in told if t.kept), "")
        told.sort(key=lambda t: not t.names)
        return Seen(kept, tuple(dict.fromkeys(t.text for t in told)))

    def holders(self, site: CompileSite) -> Iterator[Told]:
        """What nobody knows of the model: who else holds it, what it is."""
        held, model = site.held, site.model
        text = ast.unparse(held) if held is not None else ""
        if site.cls is None:
            yield Told(f"`{text}` is of a class that is not seen, with a `forward` and without a `compile` of its own")
        else:
            yield from self.of_the_class(site.cls, site)
        if site.form == "built":
            yield from self._before_it_is_built(site)
            if site.cls is not None and not self._is_made(model):
                yield Told(f"`{text}` is made by a function, which may keep it")
        if any(n.startswith("register_module_") and n.endswith("hook") for n in self.syntax.names_in(self.syntax.tree)):
            yield Told("a hook that is called for all modules is called for the wrapper as well")
        if isinstance(held, ast.Subscript):
            if why := why_seen(site, self, NAMING | OTHERS):
                yield Told(f"whoever else uses `{text}` gets the module itself: {why}")
            return
        if not isinstance(held, ast.Name):
            yield Told(f"whoever else uses `{text}` gets the module itself, without `{_WRAPPED}.` in its names")
            return
        if site.form == "again" and isinstance(model, ast.Name):
            made = self.facts.ask(CompileSites).given(model)
            if any(not isinstance(v, ast.Call) or v is site.node for v in made):
                yield Told(f"`{text}` has another name, which is not compiled", kept=True)
            if site.cls is not None and any(isinstance(v, ast.Call) and not self._is_made(v) for v in made):
                yield Told(f"`{text}` is made by a function, which may keep it")
            if not made:
                yield Told(f"`{text}` is made elsewhere: whoever holds it has it compiled, too")
        scope = self.syntax.function_of(held)
        modules = self.project.modules.values()
        if scope is not None and self.syntax.why_names_show(scope):
            yield Told("all local names are looked at")
        if self._scope(held) is not self.syntax.tree:
            return
        if self.syntax.class_of(held) is not None and scope is None:
            yield Told(f"`{text}` is an attribute of a class")
        names = (n for n in self.syntax.by_type[ast.Name] if n.id in _BY_TEXT)
        if any(self.syntax.function_of(n) is not None or n.lineno > held.lineno for n in names):
            yield Told("global names are looked up by their text")
        others = (s for s in modules if s.path != self.facts.path)
        if any(s.sees(self.module, text) or self.module in s.imports for s in others):
            yield Told(f"`{text}` is imported elsewhere")

    def _is_made(self, value: ast.expr | None) -> bool:
        """Whether ``value`` is a call of a class, also with ``.to(device)`` behind it."""
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and self.callees.is_same(value):
            value = value.func.value
        return isinstance(value, ast.Call) and self.callees.class_named(value.func) is not None

    def of_the_class(self, cls: str, site: CompileSite) -> Iterator[Told]:
        """What a class has that tells, whoever uses the model."""
        name = cls.rpartition(".")[2]
        if self.project.family(cls)[1] - _MODULE:
            yield Told(f"`{name}` inherits from what is not seen")
        for method in _WATCHING:
            if self.project.methods(cls, method):
                yield Told(f"`{name}` has a `{method}` of its own, which sees how it is compiled")
        if self._speaks_of_itself("__init__", site):
            yield Told(f"`{name}` hands itself on when it is made: whoever holds it has it compiled, too")

    def _before_it_is_built(self, site: CompileSite) -> Iterator[Told]:
        """What sees that the name is given the model before it is compiled."""
        text = ast.unparse(site.held) if site.held is not None else ""
        if tried(site.node, self.syntax) is not None:
            yield Told(f"`{text}` stays what it was where compiling fails", kept=True)
        if any(isinstance(n, (ast.Name, ast.Attribute)) and ast.unparse(n) == text for n in ast.walk(site.node)):
            yield Told(f"the call reads what `{text}` was before", kept=True)

    # --- where it is used -------------------------------------------------------------------------------------------

    def occurrences(self, held: ast.expr) -> Iterator[ast.expr]:
        """All places of the file that may be the same: the name in its scope, or what is written like it."""
        text = ast.unparse(held)
        if isinstance(held, ast.Name):
            yield from (n for n in self.syntax.by_type[ast.Name] if n.id == text and self._same(n, held))
            return
        root = text.partition(".")[0].partition("[")[0]
        cls, scope = self.syntax.class_of(held), self.syntax.function_of(held)
        method = self.syntax.method_of(held)
        own = cls is not None and method is not None and bool(method.args.args) and method.args.args[0].arg == root
        for n in (*self.syntax.by_type[ast.Attribute], *self.syntax.by_type[ast.Subscript]):
            near = self.syntax.class_of(n) is cls if own else self.syntax.function_of(n) is scope
            if near and ast.unparse(n) == text:
                yield n

    def _same(self, n: ast.Name, held: ast.Name) -> bool:
        return self._scope(n) is self._scope(held)

    def _scope(self, name: ast.Name) -> ast.AST:
        for scope in self.syntax.ancestors(name):
            if not isinstance(scope, (*_FUNCTIONS, ast.Lambda)) or name.id in self._declared.get((scope, False), ()):
                continue
            if name.id in self._declared.get((scope, True), ()):
                return self.syntax.tree
            if self.syntax.binds(scope, name.id):
                return scope
        return self.syntax.tree

    @cached_property
    def _declared(self) -> dict[tuple[ast.AST | None, bool], set[str]]:
        """By function, and whether it is the module's: names that it says are not its own."""
        found: dict[tuple[ast.AST | None, bool], set[str]] = {}
        for kind in (ast.Global, ast.Nonlocal):
            for statement in self.syntax.by_type[kind]:
                of = (self.syntax.function_of(statement), kind is ast.Global)
                found.setdefault(of, set()).update(statement.names)  # type: ignore[attr-defined]
        return found

    def _bare(self) -> Iterator[Told]:
        """Reads of ``_orig_mod`` that would fail without it."""
        for n in self.syntax.by_type[ast.Attribute]:
            if n.attr == _WRAPPED and not self._asked_before(n):
                yield Told(f"`{_WRAPPED}` is read (line {n.lineno})", kept=True)

    def _asking(self) -> Iterator[Told]:
        """Code that asks for a wrapper, of whatever, and not only to get at what is inside of it."""
        for kind in (ast.Name, ast.Attribute):
            for n in self.syntax.by_type[kind]:
                name = n.id if isinstance(n, ast.Name) else n.attr if isinstance(n, ast.Attribute) else ""
                if name in _ASKING and not self._unwraps(n):
                    yield Told(f"`{name}` asks for a wrapper (line {n.lineno})", kept=True)

    def _unwraps(self, n: ast.AST) -> bool:
        """Whether ``n`` stands in a test for reading ``_orig_mod``, or in an import."""
        for p in self.syntax.ancestors(n):
            if isinstance(p, (ast.IfExp, ast.If)) and any(n is inner for inner in ast.walk(p.test)):
                return any(isinstance(a, ast.Attribute) and a.attr == _WRAPPED for a in ast.walk(p))
        return False

    def _asked_before(self, n: ast.AST) -> bool:
        """Whether a test on the way asks if there is a wrapper."""
        for p in self.syntax.ancestors(n):
            if isinstance(p, (ast.IfExp, ast.If)):
                words = {c.value for c in ast.walk(p.test) if isinstance(c, ast.Constant)}
                names = self.syntax.names_in(p.test)
                if _WRAPPED in words or any("compiled" in name or "OptimizedModule" in name for name in names):
                    return True
        return False

    # --- one use ----------------------------------------------------------------------------------------------------

    def use(self, e: ast.expr, text: str, site: CompileSite, after: bool, depth: int) -> Told | None:
        """What one use of what holds the model tells. ``after``: it may be run when that is compiled."""
        p = self.syntax.parents[e]
        line = f"(line {e.lineno})"
        match p:
            case ast.Attribute():
                return self._attribute(p, text, site, after)
            case ast.Call() if p.func is e:
                return None
            case ast.Call() | ast.keyword() | ast.Starred():
                return self._argument(e, p, text, site, after, depth)
            case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
                return None
            case ast.Compare():
                return Told(f"`{text}` is compared {line}", kept=True)
            case ast.Assign(targets=targets) | ast.Delete(targets=targets) if e in targets:
                return None
            case ast.AnnAssign(target=target) | ast.AugAssign(target=target) if target is e:
                return None
            case ast.Assign(targets=targets):
                return self._alias(targets, text, site, after, line)
            case ast.Expr():
                return None
            case ast.If() | ast.While() | ast.Assert() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()) if after:
                return Told(f"the truth of `{text}` is asked for {line}: a wrapper has none", kept=True)
            case ast.Subscript() | ast.For() | ast.AsyncFor() | ast.comprehension() if after:
                return Told(f"`{text}` is used as a list {line}", kept=True)
            case ast.Return() | ast.Yield() if after or depth or isinstance(p, ast.Yield):
                return Told(f"what is returned {line} is the module itself")
            case ast.IfExp() if after and p.test is not e:
                use = self.syntax.parents[p]
                if isinstance(use, ast.Assign):
                    return self._alias(use.targets, text, site, after, line)
        if not after and isinstance(p, (ast.Return, ast.FormattedValue, ast.Subscript, ast.For)):
            return None
        return Told(f"what is made of it in {line[1:-1]} gets the module itself")

    def _attribute(self, a: ast.Attribute, text: str, site: CompileSite, after: bool) -> Told | None:
        line = f"(line {a.lineno})"
        call = self.syntax.parents[a]
        called = isinstance(call, ast.Call) and call.func is a
        if a.attr == _WRAPPED:
            return Told(f"`{_WRAPPED}` is asked for {line}")
        if a.attr == "__class__" and not after:
            return None
        if a.attr in _KEPT or a.attr.startswith("__"):
            return Told(f"`{text}.{a.attr}` is used {line}", kept=True)
        if after and a.attr in _QUIET and (own := self._own(site)):
            return Told(f"`{a.attr}` {line} does not get to the `{own}` of the module through a wrapper")
        if not isinstance(a.ctx, ast.Load):
            special = a.attr in _QUIET | NAMING | OTHERS | {"training"}
            return Told(f"`{text}.{a.attr}` is set {line}", kept=True) if special else None
        if a.attr in GIVING_BACK and called:
            use = self.syntax.parents[call]
            again = isinstance(use, ast.Assign) and len(use.targets) == 1 and ast.unparse(use.targets[0]) == text
            if isinstance(use, ast.Expr) or again:
                return None
            if isinstance(use, ast.Assign) and not after:
                return self._alias(use.targets, text, site, after, line)
            return Told(f"`{a.attr}` gives back the module itself {line}")
        if a.attr in _QUIET:
            return None if called else Told(f"`{text}.{a.attr}` is handed on {line}")
        if a.attr in NAMING:
            told = f"`{a.attr}` {line} has names without `{_WRAPPED}.`, or a module less"
            return Told(told, names=True) if after else None
        if a.attr in OTHERS:
            told = f"`{a.attr}` {line} is that of the module, not of a wrapper"
            return Told(told, names=a.attr == "load_state_dict") if after else None
        if self._speaks_of_itself(a.attr, site):
            return Told(f"what `{text}.{a.attr}` {line} calls of the model itself is compiled too")
        return None

    def _own(self, site: CompileSite) -> str:
        """A method of PyTorch's that the class has its own of, and the wrapper does not call."""
        return next((m for m in _SHADOWED if site.cls is not None and self.project.methods(site.cls, m)), "")

    def _argument(self, e: ast.expr, p: ast.AST, text: str, site: CompileSite, after: bool, depth: int) -> Told | None:
        call = next((a for a in self.syntax.ancestors(e) if isinstance(a, ast.Call)), None)
        line = f"(line {e.lineno})"
        if call is None or isinstance(p, ast.Starred):
            return Told(f"`{text}` is used as a list {line}", kept=True)
        what = self.syntax.builtin(call.func) or imported(self.syntax, call.func) or dotted(call.func) or "?"
        if what in ("getattr", "hasattr") and len(call.args) > 1 and isinstance(call.args[1], ast.Constant):
            return self._looked_up(call, e, text, site, after, line)
        if what == "callable" or (not after and what in ("print", "repr", "str", *_IDENTITY)):
            return None
        if what in _COPYING:
            return Told(f"`{text}` is copied or saved as a whole {line}", kept=True) if after else None
        if what in _IDENTITY:
            return Told(f"`{what}({text})` tells a wrapper from the module {line}", kept=True)
        name = f"`{ast.unparse(call.func)}`"
        function = self._function(call)
        parameter = self._parameter(call, e, p, function) if function is not None and depth < _DEPTH else None
        if function is None or parameter is None:
            return Told(f"{name} gets the module itself {line}" if after else f"{name} has got the module {line}")
        if any(isinstance(n, (ast.Global, ast.Nonlocal)) for n in ast.walk(function)):
            return Told(f"{name} gets the module itself {line}")
        reads = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == parameter]
        later = [n for n in reads if not after and self._runs_later(n, function)]
        if later:
            return Told(f"{name} may hold the module without compiling (line {later[0].lineno})")
        found = [u for n in reads if (u := self.use(n, parameter, site, after, depth + 1)) is not None]
        return next((u for u in found if u.kept), found[0] if found else None)

    def _looked_up(
        self, call: ast.Call, e: ast.expr, text: str, site: CompileSite, after: bool, line: str
    ) -> Told | None:
        """``getattr(model, "_orig_mod", model).state_dict()`` is the same with and without a wrapper."""
        name = str(call.args[1].value) if isinstance(call.args[1], ast.Constant) else ""
        what = dotted(call.func)
        if name == _WRAPPED:
            use = self.syntax.parents[call]
            if what == "getattr" and isinstance(use, ast.Attribute) and use.attr not in _KEPT | GIVING_BACK:
                return None
            return Told(f"{line[1:-1]} asks for a wrapper") if after else None
        told = f"`{what}({text}, {name!r})` {line}"
        if e is not call.args[0]:
            return Told(f"{told} may give the module itself")
        if name in _KEPT or name.startswith("__"):
            return Told(told, kept=True)
        if what == "hasattr":
            return None
        if name in _QUIET | NAMING | OTHERS:
            return Told(f"{told} is that of the module, not of a wrapper", names=name in NAMING)
        return Told(f"{told} may call the model itself") if self._speaks_of_itself(name, site) else None

    def _alias(self, targets: list[ast.expr], text: str, site: CompileSite, after: bool, line: str) -> Told | None:
        """Another name for the module. Before the call: that of what is not compiled."""
        names = [ast.unparse(t) for t in targets]
        if names == [text]:
            return None
        if after:
            for t in targets:
                for n in self.occurrences(t) if isinstance(t, ast.Name) else ():
                    use = self.syntax.parents[n]
                    if isinstance(use, ast.Attribute) and use.attr in {*NAMING, "load_state_dict"}:
                        told = f"`{names[0]}.{use.attr}` (line {n.lineno}) has names without `{_WRAPPED}.`"
                        return Told(told, names=True)
            return Told(f"`{names[0]}` {line} is the module itself")
        for t in targets:
            if not isinstance(t, ast.Name):
                return Told(f"`{ast.unparse(t)}` {line} is the model without compiling", kept=True)
            for n in self.occurrences(t):
                use = self.syntax.parents[n]
                quiet = isinstance(use, ast.Attribute) and use.attr in {*NAMING, *_QUIET, "load_state_dict"}
                if isinstance(n.ctx, ast.Load) and not (quiet and use.attr not in GIVING_BACK):  # type: ignore[attr-defined]
                    return Told(f"`{t.id}` {line} is the model without compiling", kept=True)
        return None

    def _runs_later(self, n: ast.AST, function: FunctionNode) -> bool:
        """Whether ``n`` stands in a function within ``function``, which may be called when that has ended."""
        for p in self.syntax.ancestors(n):
            if p is function:
                return False
            if isinstance(p, _LATER):
                return True
        return False

    # --- functions --------------------------------------------------------------------------------------------------

    def _function(self, call: ast.Call) -> FunctionNode | None:
        """The plain function of this file that is called by its name."""
        if not isinstance(call.func, ast.Name):
            return None
        found = self.callees.here(f"{self.module}.{call.func.id}")
        shadowed = any(
            isinstance(s, (*_FUNCTIONS, ast.Lambda)) and self.syntax.binds(s, call.func.id)
            for s in self.syntax.ancestors(call)
        )
        generator = found is not None and any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(found))
        return None if found is None or shadowed or found.decorator_list or generator else found

    def _parameter(self, call: ast.Call, e: ast.expr, p: ast.AST, function: FunctionNode | None) -> str | None:
        if function is None:
            return None
        if isinstance(p, ast.keyword):
            return p.arg if p.arg in {a.arg for a in all_parameters(function.args)} else None
        positional = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        if any(isinstance(a, ast.Starred) for a in call.args) or e not in call.args:
            return None
        at = call.args.index(e)
        return positional[at] if at < len(positional) else None

    def _speaks_of_itself(self, method: str, site: CompileSite) -> bool:
        """Whether the method of that name may call or hand on the instance that it is called on."""
        if site.cls is None:
            return True
        todo, seen = [method], set[str]()
        while todo:
            name = todo.pop()
            if name in seen or name == "forward":
                continue
            seen.add(name)
            for full in self.project.methods(site.cls, name):
                summary = self.project.function(full)
                if (
                    summary is None
                    or self._mentions_itself(full, summary.mentions)
                    or "self.__dict__" in summary.mentions
                ):
                    return True
                if not summary.positional or summary.positional[0] != "self":
                    return True
                todo += [m.removeprefix("self.") for m in summary.mentions if m.startswith("self.")]
                if any(m.endswith(".super") for m in summary.mentions):
                    todo += [m.removeprefix(".") for m in summary.mentions if m.startswith(".")]
        return False

    def _mentions_itself(self, method: str, mentions: frozenset[str]) -> bool:
        """Whether a method uses the instance as a whole, and not only to get to the next class."""
        if not any(m.endswith(".self") for m in mentions):
            return False
        node = self.callees.here(method)
        bare = [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == "self"] if node is not None else []
        return not bare or any(self._is_whole(n) for n in bare)

    def _is_whole(self, n: ast.Name) -> bool:
        match self.syntax.parents[n]:
            case ast.Attribute():
                return False
            case ast.Call(func=ast.Name(id="super")) | ast.Call(func=ast.Attribute(attr="__init__")):
                return False
        return True
