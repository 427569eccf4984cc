"""What a setting is when nobody sets it: the default of a field of a configuration class, or of an option."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from patcher.facts.syntax.tree import Syntax, dotted
from patcher.facts.values.module_values import Bindings

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Declared:
    """A default. ``owner``: the class, "" for an option. ``text``: the field as written, or option and value."""

    owner: str
    text: str
    where: str


class Declarations:
    """The defaults in many files: ``files`` are paths as shown, with the syntax of each."""

    def __init__(self, files: Iterable[tuple[str, Syntax]] = ()) -> None:
        self._paths: dict[Syntax, str] = {}
        self._fields: defaultdict[str, list[Declared]] = defaultdict(list)
        self._options: defaultdict[tuple[Syntax, str], list[Declared]] = defaultdict(list)
        for path, syntax in files:
            self._paths[syntax] = path
            for cls in syntax.by_type[ast.ClassDef]:
                for s in cls.body:
                    match s:
                        case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant()):
                            self._fields[name].append(Declared(cls.name, ast.unparse(s), f"{path}:{s.lineno}"))
            for call in syntax.by_type[ast.Call]:
                if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
                    self._add_option(call, path, syntax)

    def _add_option(self, call: ast.Call, path: str, syntax: Syntax) -> None:
        names = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        long = next((n for n in names if n.startswith("--")), None)
        given = {k.arg: k.value for k in call.keywords}
        if long is None:
            return
        action, default, dest = (given.get(k) for k in ("action", "default", "dest"))
        name = str(dest.value) if isinstance(dest, ast.Constant) else long[2:].replace("-", "_")
        value: object = None
        if isinstance(default, ast.Constant):
            value = default.value
        elif default is not None or not isinstance(action, (ast.Constant, type(None))):
            return
        elif action is not None and action.value in ("store_true", "store_false"):
            value = action.value == "store_false"
        self._options[syntax, name].append(Declared("", f"{long}={value!r}", f"{path}:{call.lineno}"))

    def of(self, e: ast.expr, syntax: Syntax, bindings: Bindings) -> Declared | None:
        """The default of ``cfg.compile`` or ``args.compile``; None without one, or if ``cfg`` may be two things."""
        if isinstance(e, ast.Name):
            return self._constant(e, syntax, bindings)
        root = dotted(e.value) if isinstance(e, ast.Attribute) else None
        if not isinstance(e, ast.Attribute) or root is None:
            return None
        values = [v for (_, text), vs in bindings.assigned.items() if text == root for v in vs]
        makers = {(dotted(v.func) or "").rpartition(".")[2] for v in values if isinstance(v, ast.Call)}
        annotations = [
            p.annotation
            for f in syntax.functions
            for p in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)
            if p.arg == root and p.annotation is not None
        ]
        makers |= {(dotted(a) or "").rpartition(".")[2] for a in annotations}
        if len(makers) != 1:
            return None
        maker = makers.pop()
        if maker == "parse_args":
            found = self._options[syntax, e.attr]
        else:
            found = [d for d in self._fields[e.attr] if d.owner == maker]
        return found[0] if len(found) == 1 else None

    def _constant(self, e: ast.Name, syntax: Syntax, bindings: Bindings) -> Declared | None:
        """The value of a module's name that is assigned once."""
        values = bindings.assigned.get((syntax.tree, e.id), [])
        local = any(syntax.binds(s, e.id) for s in syntax.ancestors(e) if isinstance(s, (*_FUNCTIONS, ast.Lambda)))
        if local or len(values) != 1 or not isinstance(values[0], ast.Constant):
            return None
        return Declared("", f"{e.id} = {values[0].value!r}", f"{self._paths[syntax]}:{values[0].lineno}")
