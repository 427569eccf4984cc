"""The Python files of a project, read and parsed when they are asked for."""

from __future__ import annotations

import ast
import copy
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from patcher.files.discover import Exclude, discover
from patcher.files.source import SourceError, read, read_bytes
from patcher.harness import trees

_FACTORIES = frozenset("arange empty eye full linspace ones rand randint randn randperm tensor zeros normal".split())
_ON_TENSORS = frozenset("long float half int bool view reshape unsqueeze expand repeat bfloat16 double squeeze".split())
_SMALL = 400  # characters


@dataclass(frozen=True)
class Use:
    """A call as it can be written elsewhere. ``classes``: of the project, that it needs. ``where``: ``file:line``."""

    arguments: tuple[str, ...]
    keywords: tuple[tuple[str, str], ...]
    classes: tuple[Seen, ...]
    where: str


def built(tree: Tree, seen: Seen) -> Use | None:
    """A call that builds the model from what can be written down; the first one in tests."""
    for file, call, scope in _calls(tree, seen):
        if call.args or call.keywords:
            use = _written(tree, file, call, scope, tensors=False)
            if use is not None:
                return use
    return None


def called(tree: Tree, seen: Seen) -> Use | None:
    """A call of an instance of the model, or of its ``forward``, with tensors that can be written down."""
    for file, building, maker in _calls(tree, seen):
        for scope, names in _named(tree.module(file), building, maker):
            for node in ast.walk(scope):
                if isinstance(node, ast.Call) and ast.unparse(node.func).removesuffix(".forward") in names:
                    use = _written(tree, file, node, scope, tensors=True)
                    if use is not None and (use.arguments or use.keywords):
                        return use
    return None


def _named(module: ast.Module | None, building: ast.Call, maker: ast.AST) -> Iterator[tuple[ast.AST, frozenset[str]]]:
    """The names of a new model: in the function that makes it, else in those that call it or have it as a fixture."""
    yield maker, _bound_to(building, maker)
    name = maker.name if isinstance(maker, ast.FunctionDef) else ""
    for scope in ast.walk(module) if module and name else ():
        if isinstance(scope, ast.FunctionDef) and scope is not maker:
            made = [n for n in ast.walk(scope) if isinstance(n, ast.Call) and ast.unparse(n.func) == name]
            given = [argument.arg for argument in scope.args.args if argument.arg == name]
            yield scope, frozenset(given).union(*(_bound_to(call, scope) for call in made))


def _calls(tree: Tree, seen: Seen) -> Iterator[tuple[Path, ast.Call, ast.AST]]:
    """The calls of a class, each with its file and the function (or module) that it stands in; tests first."""
    for file in tree.naming(f"{seen.name}("):
        module = tree.module(file)
        if module is None or not tree.means(module, file, seen.name, seen):
            continue
        scopes: list[ast.AST] = [n for n in ast.walk(module) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        known = set[ast.AST]()
        for scope in (*scopes, module):
            for node in ast.walk(scope):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == seen.name and node not in known:
                    known.add(node)
                    yield file, node, scope


def _bound_to(building: ast.Call, scope: ast.AST) -> frozenset[str]:
    """The names that a new model gets in a scope: also behind ``.eval()`` and the like."""
    names = set[str]()
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and any(inside is building for inside in ast.walk(node.value)):
            names |= {ast.unparse(target) for target in node.targets}
    return frozenset(names)


def _written(tree: Tree, file: Path, call: ast.Call, scope: ast.AST, tensors: bool) -> Use | None:
    """The call with the values of local names in their places; None where one is not known."""
    module = tree.module(file)
    above = ast.Module([one for one in module.body if isinstance(one, ast.Assign)] if module else [], [])
    own = {n.arg for n in ast.walk(scope) if isinstance(n, ast.arg)}
    own |= {n.id for n in ast.walk(scope) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    outer = {name: value for name, value in _locals(above).items() if name not in own or scope is module}
    resolving = _Resolving(tree, file, {**outer, **_locals(scope)}, tensors)
    if any(isinstance(a, ast.Starred) for a in call.args):
        return None
    arguments = [resolving.text(argument) for argument in call.args]
    keywords = [pair for keyword in call.keywords for pair in resolving.pairs(keyword)]
    texts = [*arguments, *(text for _, text in keywords)]
    if any(not text or len(text) > _SMALL for text in texts):
        return None
    where = f"{tree.shown(file)}:{call.lineno}"
    return Use(tuple(arguments), tuple(keywords), tuple(resolving.needed), where)


def _locals(scope: ast.AST) -> dict[str, ast.expr]:
    """Names that are given a value once in a scope."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(scope):
        targets: Sequence[ast.expr] = node.targets if isinstance(node, ast.Assign) else ()
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(node, ast.Assign):
                found.setdefault(target.id, []).append(node.value)
            elif isinstance(target, ast.Tuple) and isinstance(node, ast.Assign):
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [None] * len(target.elts)
                for name, value in zip(target.elts, values, strict=False):
                    if isinstance(name, ast.Name):
                        found.setdefault(name.id, []).append(value or ast.Name("?"))
    return {name: values[0] for name, values in found.items() if len(values) == 1}


class _Resolving:
    """Writes expressions down again. ``needed``: the classes of the project in them."""

    def __init__(self, tree: Tree, file: Path, known: dict[str, ast.expr], tensors: bool) -> None:
        self._tree, self._file, self._known, self._tensors = tree, file, known, tensors
        self.needed: list[Seen] = []

    def text(self, expression: ast.expr) -> str:
        """The expression, "" where something in it is not known."""
        written = self._of(copy.deepcopy(expression), 0)
        return ast.unparse(written) if written is not None else ""

    def pairs(self, keyword: ast.keyword) -> list[tuple[str, str]]:
        """What a keyword gives, also ``**`` of a dictionary that is known; "" as text where it is not."""
        if keyword.arg is not None:
            return [(keyword.arg, self.text(keyword.value))]
        known = self._of(keyword.value, 0)
        if not isinstance(known, ast.Dict):
            return [("", "")]
        return [(str(getattr(k, "value", "")), ast.unparse(v)) for k, v in zip(known.keys, known.values, strict=True)]

    def _of(self, node: ast.expr, depth: int) -> ast.expr | None:
        if depth > 6:
            return None
        if isinstance(node, ast.Constant):
            return node
        if isinstance(node, ast.Name):
            value = self._known.get(node.id)
            return self._of(copy.deepcopy(value), depth + 1) if value is not None else None
        if isinstance(node, ast.Attribute):
            return node if ast.unparse(node).startswith("torch.") else None
        if isinstance(node, ast.UnaryOp):
            return self._with(node, [node.operand], depth, lambda parts: ast.UnaryOp(node.op, parts[0]))
        if isinstance(node, ast.BinOp):
            return self._with(
                node, [node.left, node.right], depth, lambda parts: ast.BinOp(parts[0], node.op, parts[1])
            )
        if isinstance(node, ast.Tuple | ast.List):
            return self._with(node, node.elts, depth, lambda parts: type(node)(list(parts), ast.Load()))
        if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
            return self._with(node, node.values, depth, lambda parts: ast.Dict(node.keys, list(parts)))
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            held = self._of(node.value, depth + 1)
            pairs = zip(held.keys, held.values, strict=True) if isinstance(held, ast.Dict) else ()
            return next((v for k, v in pairs if getattr(k, "value", None) == node.slice.value), None)
        return self._call(node, depth) if isinstance(node, ast.Call) else None

    def _with(self, node: ast.expr, parts: Sequence[ast.expr], depth: int, make: object) -> ast.expr | None:
        done = [self._of(part, depth + 1) for part in parts]
        if any(part is None for part in done):
            return None
        made: ast.expr = make(done)  # type: ignore[operator]
        return made

    def _call(self, node: ast.Call, depth: int) -> ast.expr | None:
        """A factory of tensors, something simple asked of one, or a class of the project."""
        func = node.func
        keywords = [self._of(keyword.value, depth + 1) for keyword in node.keywords]
        arguments = [self._of(argument, depth + 1) for argument in node.args]
        if any(part is None for part in (*keywords, *arguments)) or any(k.arg is None for k in node.keywords):
            return None
        given = [ast.keyword(k.arg, value) for k, value in zip(node.keywords, keywords, strict=True) if value]
        rest = [argument for argument in arguments if argument]
        if isinstance(func, ast.Attribute) and ast.unparse(func.value) == "torch" and func.attr in _FACTORIES:
            return ast.Call(func, rest, given)
        if isinstance(func, ast.Attribute) and func.attr in _ON_TENSORS:
            inner = self._of(func.value, depth + 1)
            return ast.Call(ast.Attribute(inner, func.attr, ast.Load()), rest, given) if inner else None
        name = ast.unparse(func).rpartition(".")[2]
        seen = self._tree.named(name, self._file) if not self._tensors and name[:1].isupper() else None
        if seen is None or self._tree.is_test(seen.path):
            return None
        self.needed.append(seen)
        return ast.Call(ast.Name(name, ast.Load()), rest, given)


_TESTS = re.compile(r"(^|/)(tests?|testing)(/|$)|(^|/)(test_[^/]*|[^/]*_test|conftest)\.py$")
_MODULE = re.compile(r"(^|\.)(\w*Module|PreTrainedModel|\w*Mixin)$")


@dataclass(frozen=True)
class Seen:
    """A class and where it is defined."""

    path: Path
    node: ast.ClassDef

    @property
    def name(self) -> str:
        """Its name."""
        return self.node.name

    @property
    def bases(self) -> tuple[str, ...]:
        """As they are written."""
        return tuple(ast.unparse(base) for base in self.node.bases)

    def method(self, name: str) -> ast.FunctionDef | None:
        """One that it defines itself."""
        found = (n for n in self.node.body if isinstance(n, ast.FunctionDef) and n.name == name)
        return next(found, None)

    @property
    def is_dataclass(self) -> bool:
        """Whether a decorator says so."""
        return any("dataclass" in ast.unparse(decorator) for decorator in self.node.decorator_list)


class Tree:
    """A project. ``root``: its folder, absolute."""

    def __init__(self, root: Path, exclude: Exclude | None = None) -> None:
        self.root = root
        entries = discover([str(root)], exclude)
        self.files = tuple(Path(entry.path) for entry in entries if not entry.error)
        self._bytes: dict[Path, bytes] = {}
        self._parsed: dict[Path, ast.Module | None] = {}

    def naming(self, *words: str) -> list[Path]:
        """The files that hold one of the words, tests first: they build small models."""
        sought = [word.encode() for word in words]
        found = [file for file in self.files if any(word in self._data(file) for word in sought)]
        return sorted(found, key=lambda file: (not self.is_test(file), str(file)))

    def is_test(self, file: Path) -> bool:
        """Whether a file is one of tests, by its name and folder."""
        return bool(_TESTS.search(self.shown(file)))

    def shown(self, file: Path) -> str:
        """A file below the root."""
        return file.relative_to(self.root).as_posix() if file.is_relative_to(self.root) else str(file)

    def module(self, file: Path) -> ast.Module | None:
        """What a file holds; None where it cannot be read as Python."""
        if file not in self._parsed:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self._parsed[file] = ast.parse(read(str(file)).text)
            except (SourceError, SyntaxError, ValueError, RecursionError, MemoryError):
                self._parsed[file] = None
        return self._parsed[file]

    def means(self, module: ast.Module, file: Path, name: str, seen: Seen) -> bool:
        """Whether a name at the top of a file stands for this class: it is defined there, or imported from there."""
        if any(isinstance(node, ast.ClassDef) and node.name == name for node in module.body):
            return file == seen.path
        for node in ast.walk(module):
            if isinstance(node, ast.ImportFrom) and any((a.asname or a.name) == name for a in node.names):
                return self._leads(node.module or "", seen)
        return False

    def _leads(self, source: str, seen: Seen) -> bool:
        """Whether a module that a class is imported from is its own, or a package that imports it from there."""
        own = seen.path.parent.name if seen.path.stem == "__init__" else seen.path.stem
        if not source or source.rpartition(".")[2] == own:
            return True
        inside = self.root.joinpath(*source.split("."), "__init__.py")
        places = [inside, self.root.joinpath("src", *source.split("."), "__init__.py")]
        module = next((known for place in places if (known := self.module(place)) is not None), None)
        for node in ast.walk(module) if module else ():
            if isinstance(node, ast.ImportFrom) and any((a.asname or a.name) == seen.name for a in node.names):
                return (node.module or "").rpartition(".")[2] == own
        return False

    def classes(self, file: Path) -> Iterator[Seen]:
        """Those at the top level of a file."""
        module = self.module(file)
        for node in module.body if module else ():
            if isinstance(node, ast.ClassDef):
                yield Seen(file, node)

    def named(self, name: str, near: Path | None = None) -> Seen | None:
        """The class of this name: in the file ``near``, else the only one in the project."""
        last = name.rpartition(".")[2]
        if near is not None:
            for seen in self.classes(near):
                if seen.name == last:
                    return seen
        files = [file for file in self.files if f"class {last}".encode() in self._data(file)]
        found = [seen for file in files for seen in self.classes(file) if seen.name == last]
        imported = self._imported_from(last, near) if near and len(found) > 1 else ""
        fitting = [seen for seen in found if seen.path.stem == imported]
        return fitting[0] if len(fitting) == 1 else found[0] if len(found) == 1 else None

    def method(self, seen: Seen, name: str) -> tuple[Seen, ast.FunctionDef] | None:
        """A method of a class or of those above it in the project, with the class that has it."""
        for above in self.above(seen):
            found = above.method(name)
            if found is not None:
                return above, found
        return None

    def above(self, seen: Seen) -> list[Seen]:
        """A class and those above it in the project, the nearest first."""
        found = [seen]
        for one in found:  # grows while it is gone through
            for base in one.bases:
                known = self.named(base, one.path)
                if known is not None and known.node not in [other.node for other in found]:
                    found.append(known)
        return found

    def is_model(self, seen: Seen) -> bool:
        """Whether a class is one of modules, by the names of what stands above it."""
        return any(_MODULE.search(base) and "Mixin" not in base for one in self.above(seen) for base in one.bases)

    @cached_property
    def models(self) -> tuple[Seen, ...]:
        """The classes of modules with a ``forward``, those that no other builds first, then by their size."""
        files = [file for file in self.naming("forward") if not self.is_test(file)]
        found = [s for file in files for s in self.classes(file) if self.method(s, "forward") and self.is_model(s)]
        named = {seen.name for seen in found}
        built = {name for seen in found for name in _called(seen.node) & named - {seen.name}}
        built |= {base.rpartition(".")[2] for seen in found for base in seen.bases} & named
        return tuple(sorted(found, key=lambda seen: (seen.name in built, -len(_called(seen.node) & named), seen.name)))

    def outer(self) -> tuple[Seen, ...]:
        """The models that no other builds."""
        named = {seen.name for seen in self.models}
        inside = {name for seen in self.models for name in _called(seen.node) & named - {seen.name}}
        return tuple(seen for seen in self.models if seen.name not in inside)

    def dotted(self, file: Path) -> str:
        """How a file is imported: from the first of the folders where imports start that it is below."""
        for root in trees.roots([file]):
            if file.is_relative_to(root):
                parts = list(file.relative_to(root).with_suffix("").parts)
                if parts[-1] == "__init__":
                    parts.pop()
                if parts and all(part.isidentifier() for part in parts):
                    return ".".join(parts)
        return file.stem

    def _imported_from(self, name: str, near: Path) -> str:
        """The last part of the module that a file imports a name from."""
        module = self.module(near)
        for node in ast.walk(module) if module else ():
            if isinstance(node, ast.ImportFrom) and any((a.asname or a.name) == name for a in node.names):
                return (node.module or "").rpartition(".")[2]
        return ""

    def _data(self, file: Path) -> bytes:
        if file not in self._bytes:
            try:
                self._bytes[file] = read_bytes(str(file))
            except SourceError:
                self._bytes[file] = b""
        return self._bytes[file]


def _called(node: ast.AST) -> set[str]:
    """The names that are called in a class."""
    calls = (n.func for n in ast.walk(node) if isinstance(n, ast.Call))
    return {c.id if isinstance(c, ast.Name) else c.attr for c in calls if isinstance(c, ast.Name | ast.Attribute)}
