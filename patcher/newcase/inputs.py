"""What a model is called with: as its project calls it, else by layers, types, docstrings and names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from patcher.newcase.tree import Seen, Tree, Use, called
from patcher.newcase.values import BLANK, UNKNOWN, Building, Parameter, Value, parameters, worth

BATCH = "batch"  # the name of the dimension that the calls of a case vary
LENGTH, SIDE, SMALL = 16, 32, 8  # of a sequence; of a picture; of what has no size anywhere
_LETTERS: Mapping[str, str] = {
    **dict.fromkeys(("b", "n", "bs", "bsz", "batch", "batch_size", "batchsize"), BATCH),
    **dict.fromkeys(("t", "l", "s", "seq", "seq_len", "seqlen", "length", "sequence", "sequence_length"), str(LENGTH)),
    **dict.fromkeys(("h", "w", "height", "width", "img_h", "img_w"), str(SIDE)),
}
_SHAPE = r"[\(\[]\s*((?:\w+\s*,\s*)*\w+)\s*,?\s*[\)\]]"
_TYPED = re.compile(r"(\w+)\[\s*[\w.]*Tensor\s*,\s*['\"]([^'\"]+)['\"]\s*\]")
_INTEGERS = re.compile(r"(^|_)(ids?|idx|indices|index|tokens?|labels|targets?)$")
_PICTURE = re.compile(r"(img|image)_size$")


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
    wanted = [parameter for parameter in parameters(found[1]) if parameter.required]
    doc = "\n".join(filter(None, (ast.get_docstring(found[1]), ast.get_docstring(found[0].node))))
    return Inputs(tuple(_value(tree, model, parameter, found[1], doc, made.known) for parameter in wanted))


def _value(
    tree: Tree, model: Seen, parameter: Parameter, forward: ast.FunctionDef, doc: str, known: Mapping[str, object]
) -> Value:
    name, hint = parameter.name, parameter.hint
    if hint in ("int", "float", "bool", "str"):
        return Value(name, BLANK, f"{name} is {'an' if hint == 'int' else 'a'} {hint}, and nothing says which")
    layer = _layer(tree, model, known, name, forward)
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


def _layer(
    tree: Tree, model: Seen, known: Mapping[str, object], name: str, forward: ast.FunctionDef
) -> tuple[str, str] | None:
    """A tensor that suits the first layer of the model that the parameter goes into as it is, and why."""
    made, known = dict[str, ast.expr](), dict(known)
    found = tree.method(model, "__init__")
    for node in ast.walk(found[1]) if found else ():
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = ast.unparse(node.targets[0]), worth(node.value, known)
            made.setdefault(target, node.value)
            if value is not UNKNOWN:
                known.setdefault(target.removeprefix("self."), value)
    for step in _in_order(forward):
        if isinstance(step, ast.Call) and step.args and ast.unparse(step.args[0]) == name:
            function = ast.unparse(step.func)
            layer = made.get(function)
            text = _taken(layer, known) if isinstance(layer, ast.Call) else ""
            if text:
                return text, f"as {function} takes it"
        elif isinstance(step, ast.Assign) and any(ast.unparse(target) == name for target in step.targets):
            return None  # from here on it is another one
    return None


def _taken(layer: ast.Call, known: Mapping[str, object]) -> str:
    kind = ast.unparse(layer.func).rpartition(".")[2]
    if kind == "Sequential" and layer.args and isinstance(layer.args[0], ast.Call):
        return _taken(layer.args[0], known)
    size = worth(layer.args[0] if layer.args else next((k.value for k in layer.keywords), None), known)
    if type(size) is not int:
        return ""
    told = {
        "Linear": f"torch.randn({BATCH}, {size})",
        "LayerNorm": f"torch.randn({BATCH}, {LENGTH}, {size})",
        "Embedding": f"torch.randint(0, {size}, ({BATCH}, {LENGTH}))",
    }
    dimensions = re.fullmatch(r"Conv(?:Transpose)?([123])d", kind)
    if dimensions:
        return f"torch.randn({', '.join([BATCH, str(size), *[str(_side(known))] * int(dimensions[1])])})"
    return told.get(kind, "")


def _in_order(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The calls and assignments of a function as they run, about: a call before what its value is given to."""
    nodes = [node for node in ast.walk(function) if isinstance(node, ast.Call | ast.Assign)]
    return iter(sorted(nodes, key=lambda node: (node.lineno, isinstance(node, ast.Assign), -node.col_offset)))
