"""What a model is called with: as its project calls it, else by layers, types, docstrings and names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from patcher.newcase.parameters import UNKNOWN, Parameter, constructor, parameters, worth
from patcher.newcase.tree import Seen, Tree
from patcher.newcase.used import Use, called
from patcher.newcase.values import BLANK, Building, Value

BATCH = "batch"  # the name of the dimension that the calls of a case vary
LENGTH, SIDE, SMALL = 16, 32, 8  # of a sequence; of a picture; of what has no size anywhere
_LETTERS: Mapping[str, str] = {
    **dict.fromkeys(("b", "n", "bs", "bsz", "batch", "batch_size", "batchsize"), BATCH),
    **dict.fromkeys(("t", "l", "s", "seq", "seq_len", "seqlen", "length", "sequence", "sequence_length"), str(LENGTH)),
    **dict.fromkeys(("h", "w", "height", "width", "img_h", "img_w"), str(SIDE)),
}
_SHAPE = r"[\(\[]\s*((?:\w+\s*,\s*)*\w+)\s*,?\s*[\)\]]"
_BETWEEN = r"[^()\[\]]{0,40}(?:\([^()]*[Tt]ensor[^()]*\))?[^()\[\]]{0,40}"  # a name and its shape
_TYPED = re.compile(r"(\w+)\[\s*[\w.]*Tensor\s*,\s*['\"]([^'\"]+)['\"]\s*\]")
_INTEGERS = re.compile(r"(^|_)(ids?|idx|indices|index|tokens?|labels|targets?)$")
_DEEPEST = 4  # parts in parts
_PICTURE = re.compile(r"(img|image)_size$")
_LAYERS = {"Conv1d": 1, "Conv2d": 2, "Conv3d": 3, "ConvTranspose1d": 1, "ConvTranspose2d": 2, "ConvTranspose3d": 3}


@dataclass(frozen=True)
class Inputs:
    """``values``: the arguments by name, in which ``batch`` is a name. ``use``: the call that they are taken from."""

    values: tuple[Value, ...] = ()
    use: Use | None = None


def inputs(tree: Tree, model: Seen, made: Building) -> Inputs:
    """The arguments of a call."""
    use = called(tree, model)
    if use is not None:
        return Inputs(use=use)
    found = tree.method(model, "forward")
    if found is None:
        return Inputs((Value("", BLANK, f"{model.name} has no forward in the project"),))
    layers = _Layers(tree, model, made.known)
    wanted = [parameter for parameter in parameters(found[1]) if parameter.required]
    doc = "\n".join(filter(None, (ast.get_docstring(found[1]), ast.get_docstring(found[0].node))))
    return Inputs(tuple(_value(parameter, found[1], layers, doc, made.known) for parameter in wanted))


def _value(
    parameter: Parameter, forward: ast.FunctionDef, layers: _Layers, doc: str, known: Mapping[str, object]
) -> Value:
    name, hint = parameter.name, parameter.hint
    if hint in ("int", "float", "bool", "str"):
        return Value(name, BLANK, f"{name} is {'an' if hint == 'int' else 'a'} {hint}, and nothing says which")
    layer = layers.first(name, forward)
    if layer:
        return Value(name, *layer)
    typed = _TYPED.search(hint)
    sizes = typed[2].split() if typed else _documented(name, doc)
    if sizes:
        return _shaped(name, hint, sizes, known, "as its type says" if typed else "as the docstring says")
    if hint and "Tensor" not in hint and hint not in ("Any", "object"):
        return Value(name, BLANK, f"{name} is {hint}, which this cannot make up")
    return _by_name(name, known) or Value(
        name, BLANK, f"{name} is a tensor; no layer, type, docstring or call tells its shape"
    )


def _shaped(name: str, hint: str, sizes: list[str], known: Mapping[str, object], why: str) -> Value:
    """A tensor of these sizes: letters with a usual meaning, numbers, and names of the constructor's arguments."""
    told, guessed = [], []
    for size in sizes:
        number = known.get(size, known.get(size.lower(), UNKNOWN))
        if size.isdecimal():
            told.append(size)
        elif type(number) is int:
            told.append(str(number))
        elif size.lower() in _LETTERS:
            told.append(_LETTERS[size.lower()])
        else:
            configured = [v for k, v in known.items() if k.rpartition(".")[2] == size and type(v) is int]
            told.append(str(configured[0]) if configured else str(SMALL))
            guessed += [] if configured else [size]
    if guessed:
        why += f"; nothing says how large {', '.join(guessed)} is"
    whole = bool(_INTEGERS.search(name)) or "Long" in hint or hint.startswith("Int")
    vocabulary = _vocabulary(known) if whole else 0
    if whole and not vocabulary:
        return Value(name, f"torch.zeros({', '.join(told)}, dtype=torch.long)", why)
    return Value(name, _filled(", ".join(told), vocabulary), why)


def _documented(name: str, doc: str) -> list[str]:
    """The shape that a docstring gives a parameter."""
    for line in doc.splitlines():
        found = re.search(
            rf"(?<!\w){re.escape(name)}(?!\w)[^()\[\]]{{0,40}}(?:\([^()]*[Tt]ensor[^()]*\))?[^()\[\]]{{0,40}}{_SHAPE}",
            line,
        )
        if found:
            sizes = [size.strip() for size in found[1].split(",")]
            if len(sizes) > 1 or sizes[0].lower() in _LETTERS:
                return sizes
    return []


def _by_name(name: str, known: Mapping[str, object]) -> Value | None:
    """What goes by names that everybody uses."""
    text = f"{BATCH}, {LENGTH}"
    if name == "input_ids" and _vocabulary(known):
        return Value(name, _filled(text, _vocabulary(known)), "by its name, and the size of the vocabulary")
    if name == "attention_mask":
        return Value(name, f"torch.ones({text}, dtype=torch.long)", "by its name")
    if name in ("pixel_values", "images", "image"):
        side = _side(known)
        return Value(name, f"torch.randn({BATCH}, 3, {side}, {side})", "by its name")
    return None


def _side(known: Mapping[str, object]) -> int:
    """Of a picture."""
    return next((v for k, v in known.items() if _PICTURE.search(k) and type(v) is int), SIDE)


def _vocabulary(known: Mapping[str, object]) -> int:
    sizes = [v for k, v in known.items() if k.rpartition(".")[2] in ("vocab_size", "n_vocab", "vocabulary_size")]
    return next((size for size in sizes if type(size) is int), 0)


def _filled(sizes: str, vocabulary: int) -> str:
    shape = f"({sizes})" if "," in sizes else f"({sizes},)"
    return f"torch.randint(0, {vocabulary}, {shape})" if vocabulary else f"torch.randn({sizes})"


class _Layers:
    """The layers that a model is made of, and what each takes. ``known``: as ``Building`` has it."""

    def __init__(self, tree: Tree, model: Seen, known: Mapping[str, object], depth: int = 0) -> None:
        self._tree, self._model, self._known, self._depth = tree, model, dict(known), depth
        self._made: dict[str, ast.expr] = {}
        found = tree.method(model, "__init__")
        for node in ast.walk(found[1]) if found else ():
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target = ast.unparse(node.targets[0])
                value = worth(node.value, self._known)
                if value is not UNKNOWN:
                    self._known.setdefault(target.removeprefix("self."), value)
                if target.startswith("self."):
                    self._add(target.removeprefix("self."), node.value)

    def first(self, name: str, function: ast.FunctionDef) -> tuple[str, str] | None:
        """A tensor that suits the first layer that the parameter goes into as it is, and why."""
        for node in _in_order(function):
            if isinstance(node, ast.Call) and name in map(ast.unparse, node.args):
                position = [ast.unparse(argument) for argument in node.args].index(name)
                found = self._given(ast.unparse(node.func), position)
                if found:
                    return found
            elif isinstance(node, ast.Assign) and any(ast.unparse(target) == name for target in node.targets):
                return None  # from here on it is another one
        return None

    def _given(self, function: str, position: int) -> tuple[str, str] | None:
        """What a layer, a part of the model, or a method of it takes at a place among its arguments."""
        if not function.startswith("self.") or self._depth > _DEEPEST:
            return None
        name = function.removeprefix("self.")
        layer = self._made.get(name)
        if layer is None and "." not in name:
            method = self._tree.method(self._model, name)
            return self._inside(self, method[1], position) if method else None
        if layer is None:
            part, _, rest = name.partition(".")
            inner = self._part(self._made.get(part))
            return inner._given(f"self.{rest}", position) if inner else None
        text = self._taken(layer) if isinstance(layer, ast.Call) and position == 0 else ""
        if text:
            return text, f"as {function} takes it"
        inner = self._part(layer)
        forward = self._tree.method(inner._model, "forward") if inner else None
        return self._inside(inner, forward[1], position) if inner and forward else None

    def _inside(self, layers: _Layers, function: ast.FunctionDef, position: int) -> tuple[str, str] | None:
        names = [parameter.name for parameter in parameters(function)]
        if position >= len(names) or layers._depth > _DEEPEST:
            return None
        layers._depth += 1  # a method may call itself
        return layers.first(names[position], function)

    def _part(self, layer: ast.expr | None) -> _Layers | None:
        """The layers of a part that is a class of the project, built with what is known here."""
        if not isinstance(layer, ast.Call):
            return None
        seen = self._tree.named(ast.unparse(layer.func).removesuffix(".from_pretrained"), self._model.path)
        if seen is None or seen.node is self._model.node:
            return None
        known: dict[str, object] = {}
        wanted = constructor(self._tree, seen)
        pairs = [(parameter.name, value) for parameter, value in zip(wanted, layer.args, strict=False)]
        pairs += [(str(keyword.arg), keyword.value) for keyword in layer.keywords]
        for parameter in wanted:
            known[parameter.name] = worth(parameter.default, {})
        for name, value in pairs:
            known[name] = worth(value, self._known)
            start = ast.unparse(value).removeprefix("self.") + "."
            known |= {f"{name}.{k.removeprefix(start)}": v for k, v in self._known.items() if k.startswith(start)}
        told = {name: value for name, value in known.items() if value is not UNKNOWN}
        return _Layers(self._tree, seen, told, self._depth + 1)

    def _add(self, name: str, value: ast.expr) -> None:
        """A layer, or several in a dictionary of them."""
        self._made.setdefault(name, value)
        if isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in ("ModuleDict", "dict"):
            for keyword in value.keywords:
                self._add(f"{name}.{keyword.arg}", keyword.value)
            for argument in value.args:
                if isinstance(argument, ast.Call):
                    for keyword in argument.keywords:
                        self._add(f"{name}.{keyword.arg}", keyword.value)

    def _taken(self, layer: ast.Call) -> str:
        kind = ast.unparse(layer.func).rpartition(".")[2]
        if kind == "Sequential" and layer.args and isinstance(layer.args[0], ast.Call):
            return self._taken(layer.args[0])
        first = layer.args[0] if layer.args else next((k.value for k in layer.keywords), None)
        size = worth(first, self._known)
        if type(size) is not int:
            return ""
        if kind == "Linear":
            return f"torch.randn({BATCH}, {size})"
        if kind == "LayerNorm":
            return f"torch.randn({BATCH}, {LENGTH}, {size})"
        if kind == "Embedding":
            return f"torch.randint(0, {size}, ({BATCH}, {LENGTH}))"
        if kind in _LAYERS:
            return f"torch.randn({', '.join([BATCH, str(size), *[str(_side(self._known))] * _LAYERS[kind]])})"
        return ""


def _in_order(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The calls and assignments of a function as they run, about: a call before what its value is given to."""
    nodes = [node for node in ast.walk(function) if isinstance(node, ast.Call | ast.Assign)]
    return iter(sorted(nodes, key=lambda node: (node.lineno, isinstance(node, ast.Assign), -node.col_offset)))
