"""A value for each thing that must be given, or a blank with the reason why there is none."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from patcher.newcase.tree import Seen, Tree, Use, built, called

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
    return Inputs(tuple(_argument(tree, model, parameter, found[1], doc, made.known) for parameter in wanted))


def _argument(
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


_ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}
UNKNOWN = object()


@dataclass(frozen=True)
class Parameter:
    """``hint``: its annotation as it is written, or "". ``default``: its expression, None for none."""

    name: str
    hint: str = ""
    default: ast.expr | None = None
    named_only: bool = False

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is None


def parameters(function: ast.FunctionDef) -> tuple[Parameter, ...]:
    """Those of a method, without ``self``; what is gathered (``*args``) is left out."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    defaults += arguments.defaults
    found = [_parameter(a, d, False) for a, d in zip(plain, defaults, strict=True)][1:]
    return (*found, *(_parameter(a, d, True) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)))


def constructor(tree: Tree, seen: Seen) -> tuple[Parameter, ...]:
    """What a class is built with: the parameters of ``__init__``, or the fields of a dataclass."""
    if seen.is_dataclass and seen.method("__init__") is None:
        fields: dict[str, Parameter] = {}
        for above in reversed(tree.above(seen)):
            for node in above.node.body:
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    hint = ast.unparse(node.annotation)
                    if "ClassVar" not in hint:
                        fields[node.target.id] = Parameter(node.target.id, hint, node.value)
        return tuple(fields.values())
    found = tree.method(seen, "__init__")
    return parameters(found[1]) if found else ()


def worth(expression: ast.expr | None, known: Mapping[str, object]) -> object:
    """What an expression comes to with what is known of names and attributes (``config.width``); ``UNKNOWN``."""
    if expression is None:
        return UNKNOWN
    if isinstance(expression, ast.Constant):
        return expression.value
    if isinstance(expression, ast.Name | ast.Attribute):
        return known.get(ast.unparse(expression).removeprefix("self."), UNKNOWN)
    if isinstance(expression, ast.Tuple | ast.List):
        inside = [worth(item, known) for item in expression.elts]
        return UNKNOWN if UNKNOWN in inside else tuple(inside)
    if isinstance(expression, ast.UnaryOp) and isinstance(expression.op, ast.USub):
        value = worth(expression.operand, known)
        return -value if isinstance(value, int | float) else UNKNOWN
    if isinstance(expression, ast.BinOp) and type(expression.op) in _ARITHMETIC:
        left, right = worth(expression.left, known), worth(expression.right, known)
        if type(left) is int and type(right) is int and (right or not isinstance(expression.op, ast.FloorDiv)):
            return _ARITHMETIC[type(expression.op)](left, right)
    if isinstance(expression, ast.Call) and ast.unparse(expression.func) in ("field", "dataclasses.field"):
        return next((worth(k.value, known) for k in expression.keywords if k.arg == "default"), UNKNOWN)
    return UNKNOWN


def _parameter(argument: ast.arg, default: ast.expr | None, named_only: bool) -> Parameter:
    hint = ast.unparse(argument.annotation) if argument.annotation else ""
    return Parameter(argument.arg, hint.strip("'\""), default, named_only)


BLANK = "..."  # a value that has to be filled in; its line says so
_PLAIN = {"int", "float", "str", "bool", "complex"}
_CONFIGURATION = re.compile(r"(config|cfg|args|opts?|params|hparams|settings)$", re.IGNORECASE)
_DEPTH = 3  # of configurations in configurations


@dataclass(frozen=True)
class Value:
    """``text``: an expression, ``BLANK`` for none; ``why``: where it is from, or why there is none."""

    name: str
    text: str
    why: str = ""
    lines: tuple[Value, ...] = ()

    @property
    def blanks(self) -> tuple[Value, ...]:
        """Itself, or those inside it, that have to be filled in."""
        inside = tuple(blank for value in self.lines for blank in value.blanks)
        return (self,) if self.text == BLANK else inside


@dataclass
class Building:
    """How a model is built. ``call``: the class's name. ``values``: its arguments by name, in order.

    ``known``: what names in its source come to (``width``, ``config.width``). ``classes``: that the case imports.
    ``use``: the call in the project that this is taken from, if one is.
    """

    values: tuple[Value, ...] = ()
    known: dict[str, object] = field(default_factory=dict)
    classes: list[Seen] = field(default_factory=list)
    use: Use | None = None


def building(tree: Tree, model: Seen) -> Building:
    """How the project says that a model is built: by a call of its own, else by configuration classes and defaults."""
    made = Building(classes=[model])
    wanted = constructor(tree, model)
    use = built(tree, model)
    given = _given(use, wanted) if use else {}
    if use is not None and all(p.name in given for p in wanted if p.required):
        made.use = use
        made.classes += use.classes
        made.values = tuple(Value(name, text) for name, text in given.items())
    else:
        made.values = tuple(_value(tree, model, parameter, made) for parameter in wanted if parameter.required)
    made.known = _known(tree, model, wanted, made)
    return made


def _given(use: Use, wanted: Sequence[Parameter]) -> dict[str, str]:
    """The arguments of a call by the names of the parameters; those beyond them make it none."""
    if len(use.arguments) > len(wanted):
        return {}
    found = dict(zip((parameter.name for parameter in wanted), use.arguments, strict=False))
    return {**found, **dict(use.keywords)}


def _value(tree: Tree, model: Seen, parameter: Parameter, made: Building) -> Value:
    configuration = _configuration(tree, model, parameter)
    if configuration is not None:
        made.classes.append(configuration)
        return _built(tree, configuration, parameter.name, made, 0)
    return Value(parameter.name, BLANK, _reason(parameter, model))


def _built(tree: Tree, seen: Seen, name: str, made: Building, depth: int) -> Value:
    """A call of a configuration class with what it does not give itself."""
    lines = []
    for parameter in constructor(tree, seen):
        if not parameter.required:
            continue
        inner = tree.named(parameter.hint, seen.path) if parameter.hint.isidentifier() and depth < _DEPTH else None
        if inner is not None:
            made.classes.append(inner)
            lines.append(_built(tree, inner, parameter.name, made, depth + 1))
        else:
            lines.append(Value(parameter.name, BLANK, _reason(parameter, seen)))
    return Value(name, seen.name, "" if lines else f"all defaults of {seen.name}", tuple(lines))


def _reason(parameter: Parameter, seen: Seen) -> str:
    what = f"{parameter.name} is {_a(parameter.hint)}" if parameter.hint else f"{parameter.name} has no type"
    return f"{what}, no default, and in no call of {seen.name} that can be copied"


def _a(hint: str) -> str:
    return f"an {hint}" if hint[:1] in "aeiouAEIO" else f"a {hint}"


def _configuration(tree: Tree, model: Seen, parameter: Parameter) -> Seen | None:
    """The class that a parameter holds: by its type, by ``config_class``, or by what is read of it."""
    hint = parameter.hint.split("|")[0].strip().removeprefix("Optional[").removesuffix("]")
    if hint.rpartition(".")[2].isidentifier() and hint not in _PLAIN:
        seen = tree.named(hint, model.path)
        if seen is not None and not tree.is_model(seen):
            return seen
    if hint or not _CONFIGURATION.search(parameter.name):
        return None
    for above in tree.above(model):
        for node in above.node.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "config_class":
                return tree.named(ast.unparse(node.value), above.path)
    read = {
        node.attr
        for above in tree.above(model)
        for node in ast.walk(above.node)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in (parameter.name, f"self.{parameter.name}")
    }
    fitting = [seen for seen in _configurations(tree, model) if read and read <= _fields(tree, seen)]
    return fitting[0] if len(fitting) == 1 else None


def _configurations(tree: Tree, model: Seen) -> Iterator[Seen]:
    """The classes that can be configurations: those of the model's file, else all in the project."""
    near = [seen for seen in tree.classes(model.path) if _CONFIGURATION.search(seen.name)]
    if near:
        yield from near
        return
    for file in tree.naming("Config", "Args", "Params"):
        if not tree.is_test(file):
            yield from (seen for seen in tree.classes(file) if _CONFIGURATION.search(seen.name))


def _fields(tree: Tree, seen: Seen) -> set[str]:
    names = {parameter.name for parameter in constructor(tree, seen)}
    for above in tree.above(seen):
        for node in ast.walk(above.node):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names.add(node.attr)
            elif isinstance(node, ast.FunctionDef):
                names.add(node.name)  # a property
            elif isinstance(node, ast.AnnAssign | ast.Assign) and node in above.node.body:
                targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def _known(tree: Tree, model: Seen, wanted: Sequence[Parameter], made: Building) -> dict[str, object]:
    """What the names of the constructor's source come to: arguments, defaults, and fields of configurations."""
    known: dict[str, object] = {}
    given = {value.name: value for value in made.values}
    for parameter in wanted:
        value = given.get(parameter.name)
        expression = _parsed(value.text) if value is not None and value.text != BLANK else parameter.default
        if expression is None:
            continue
        known[parameter.name] = worth(expression, {})
        name = expression.func.id if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Name) else ""
        name = expression.id if isinstance(expression, ast.Name) else name
        seen = tree.named(name, model.path) if name else None
        if seen is not None:
            known |= {f"{parameter.name}.{field}": worth for field, worth in _worths(tree, seen, expression).items()}
    return {name: value for name, value in known.items() if value is not UNKNOWN}


def _worths(tree: Tree, seen: Seen, expression: ast.expr) -> Mapping[str, object]:
    """The fields of a configuration that is built like that."""
    wanted = constructor(tree, seen)
    found: dict[str, object] = {}
    for parameter in wanted:  # one field may be made of those above it
        found[parameter.name] = worth(parameter.default, found)
    for above in reversed(tree.above(seen)):
        for node in above.node.body:  # attributes of the class
            if isinstance(node, ast.AnnAssign | ast.Assign) and node.value is not None:
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                found.setdefault(ast.unparse(target), worth(node.value, found))
    if isinstance(expression, ast.Call):
        for parameter, argument in zip(wanted, expression.args, strict=False):
            found[parameter.name] = worth(argument, {})
        found |= {str(keyword.arg): worth(keyword.value, {}) for keyword in expression.keywords}
    return {name: value for name, value in found.items() if value is not UNKNOWN}


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
