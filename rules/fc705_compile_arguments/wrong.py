"""What is wrong with the arguments of one call of torch.compile, as seen on torch 2.13, and how they are meant."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.tables.knobs import MODES, Knobs, meant
from patcher.facts.values.compile_calls import CompileCall
from patcher.facts.values.module_values import Bindings
from patcher.rule import Code, Edit, Replace

_TRUTH: Mapping[str, str] = {"true": "True", "false": "False", "auto": "None", "none": "None"}
_FALSE = frozenset({"false", "no", "off", "0", "none"})
_TRUE = frozenset({"true", "yes", "on"})


@dataclass(frozen=True)
class Wrong:
    """One thing, and what is taken to be meant."""

    node: ast.expr
    message: str
    edits: tuple[Edit, ...] = ()
    assumption: str = ""


def wrong_arguments(call: CompileCall, facts: Facts, knobs: Knobs) -> Iterator[Wrong]:
    """All that is wrong with the arguments of ``call``."""
    bindings = Bindings(facts.syntax)
    node = call.node
    assert isinstance(node, ast.Call)
    for name, value in call.arguments:
        constant = value.value if isinstance(value, ast.Constant) else None
        if name == "dynamic" and isinstance(constant, (str, int)) and not isinstance(constant, bool):
            yield _dynamic(value, constant)
        elif name in ("fullgraph", "disable") and isinstance(constant, str) and constant.lower() in _FALSE:
            told = f"`{name}={constant!r}` counts as true: it is a text that is not empty"
            yield Wrong(value, told, (Replace(value, Code("False")),), assumption=f"`{name}=False` is meant")
        elif name in ("fullgraph", "disable", "dynamic"):
            yield from _substring(name, value, bindings)
    mode, options = call.argument("mode"), call.argument("options")
    unknown = [*_mode(mode, knobs), *_options(options, knobs)] if _for_inductor(call) else []
    yield from unknown
    if _is_given(mode) and _is_given(options):
        both = _both(call, node, knobs)
        yield both if not unknown else Wrong(node, both.message, assumption="fix what is unknown first")
    yield from _backend(call, knobs)


def _dynamic(value: ast.expr, constant: str | int) -> Wrong:
    right = str(bool(constant)) if isinstance(constant, int) else _TRUTH.get(constant.lower())
    message = f"`dynamic={constant!r}` is rejected: it is True, False or None, for automatic"
    if right is None:
        return Wrong(value, message, assumption="which of them is meant?")
    return Wrong(value, message, (Replace(value, Code(right)),), f"`dynamic={right}` is meant")


def _substring(name: str, value: ast.expr, bindings: Bindings) -> Iterator[Wrong]:
    """``text.lower() in "true"``: a part of the word counts as it, and so does nothing."""
    values = bindings.values(value) if isinstance(value, (ast.Name, ast.Attribute)) else [value]
    for v in values:
        match v:
            case ast.Compare(
                left=ast.Call(func=ast.Attribute(attr="lower" | "casefold" | "strip")) as left,
                ops=[ast.In()],
                comparators=[ast.Constant(value=str(word)) as right],
            ) if word in _TRUE:
                told = f"`{ast.unparse(v)}` is true of each part of {word!r}, of the empty text as well"
                new = Code("{0} == {1}", (left, right))
                also = ""
                if name == "dynamic":
                    new, also = (
                        Code(f'{{{{"{word}": True, "false": False}}}}.get({{0}})', (left,)),
                        ", others are automatic",
                    )
                yield Wrong(v, told, (Replace(v, new),), assumption=f"only {word!r} is meant{also}")


# --- mode and options -----------------------------------------------------------------------------------------------


def _both(call: CompileCall, node: ast.Call, knobs: Knobs) -> Wrong:
    message = "`mode` and `options` are given together: torch.compile takes one of them"
    mode, options = call.argument("mode"), call.argument("options")
    given = {k.arg: k.value for k in node.keywords}
    value = mode.value if isinstance(mode, ast.Constant) else None
    written = isinstance(options, ast.Dict) and {"mode", "options"} <= set(given) and None not in given
    if not written or value not in knobs.modes or not (_for_inductor(call) or value == "default"):
        return Wrong(node, message, assumption="what is in the mode has to go into the options")
    assert isinstance(options, ast.Dict)
    mode_of = given.pop("mode" if value == "default" or options.keys else "options")
    kept = Code("{0}", (options,)) if value == "default" else merged(Code("{0}", (mode_of,)), options)
    parts = [*node.args, *(kept if name == "options" else e for name, e in given.items())]
    texts = [*("" for _ in node.args), *(f"{name}=" for name in given)]
    holes = ", ".join(f"{text}{{{n}}}" for n, text in enumerate(texts, 1))
    return Wrong(node, message, (Replace(node, Code(f"{{0}}({holes})", (node.func, *parts))),), "both are meant")


def merged(mode: Code, options: ast.Dict) -> Code:
    """The options of ``mode``, and then ``options``, which win."""
    parts: list[ast.expr | Code] = [mode]
    texts = ["**torch._inductor.list_mode_options({0})"]
    for key, value in zip(options.keys, options.values, strict=True):
        at = len(parts)
        texts.append(f"**{{{at}}}" if key is None else f"{{{at}}}: {{{at + 1}}}")
        parts += [value] if key is None else [key, value]
    return Code(f"{{{{{', '.join(texts)}}}}}", tuple(parts))


def _mode(mode: ast.expr | None, knobs: Knobs) -> Iterator[Wrong]:
    value = mode.value if isinstance(mode, ast.Constant) else None
    if mode is None or not value or (isinstance(value, str) and not knobs.lacks(value, knobs.modes)):
        return
    right = meant(value, knobs.modes) if isinstance(value, str) else None
    message = f"`mode={value!r}` is unknown: there are {', '.join(f'`{m}`' for m in MODES if m in knobs.modes)}"
    edits = (Replace(mode, Code(repr(right).replace("'", '"'))),) if right else ()
    yield Wrong(mode, message, edits, assumption=f"`{right}` is meant" if right else "which of them is meant?")


def _options(options: ast.expr | None, knobs: Knobs) -> Iterator[Wrong]:
    for key in options.keys if isinstance(options, ast.Dict) else ():
        value = key.value if isinstance(key, ast.Constant) else None
        if key is None or not isinstance(value, str) or not knobs.lacks(value.replace("-", "_"), knobs.options):
            continue
        right = meant(value, knobs.options)
        edits = (Replace(key, Code(f'"{right}"')),) if right else ()
        told = f"`{right}` is meant" if right else "take it away, or name the one that is meant"
        yield Wrong(key, f"inductor has no option `{value}`: it is rejected", edits, assumption=told)


def _backend(call: CompileCall, knobs: Knobs) -> Iterator[Wrong]:
    backend = call.argument("backend")
    value = backend.value if isinstance(backend, ast.Constant) else None
    if backend is None or not isinstance(value, str):
        return
    if value not in knobs.backends and (right := meant(value, knobs.backends)) is not None:
        edits = (Replace(backend, Code(f'"{right}"')),)
        message = f"PyTorch has no backend `{value}`: without one of that name from elsewhere it is rejected"
        yield Wrong(backend, message, edits, assumption=f"`{right}` is meant")


def _for_inductor(call: CompileCall) -> bool:
    backend = call.argument("backend")
    unpacked = any(name == "**" for name, _ in call.arguments)
    return (backend is None and not unpacked) or (isinstance(backend, ast.Constant) and backend.value == "inductor")


def _is_given(e: ast.expr | None) -> bool:
    """Whether there surely is a value that is not None."""
    return isinstance(e, (ast.Dict, ast.DictComp)) or (isinstance(e, ast.Constant) and e.value is not None)
