"""FC201: a number that is read out of a tensor though the host knows it, or though a tensor would do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.checks.caught import Caught
from patcher.facts.checks.lasting import Lasting
from patcher.facts.effects.gradient_mode import GradientMode
from patcher.facts.numbers.asked_numbers import AskedNumbers
from patcher.facts.numbers.known_numbers import Known, KnownNumbers
from patcher.facts.tables import torch_api as api
from patcher.facts.values.certainty import Certainty
from patcher.rule import Applicability, Code, Cost, Example, Finding, Fix, NearMiss, Replace, Rule
from rules.fc201_item_call.array_bounds import ArrayBounds
from rules.fc201_item_call.examples import INVALID, VALID
from rules.fc201_item_call.number_flow import is_size

_DATA = "what it holds is known only when the code runs"
#: Reductions to a tensor of the same dtype that shares no memory with its source.
_REDUCTIONS = frozenset("max min amax amin mean median norm std var".split())
_TOGETHER = ("max", "min", "amax", "amin", "sum", "prod")


class ItemCall(Rule):
    """Numbers that are read out of tensors with ``.item()``, ``int()`` or by using a 0-d tensor as a size.

    What it does:
        Where the code itself put the number into the tensor (``torch.tensor(x.shape[1]).item()``,
        ``torch.IntTensor([width])[0]`` as the bound of a slice, ``torch.tensor(x.shape).prod().item()``), writes that
        number in its place. Bounds of slices that pass through a NumPy array (``where = np.array(columns[name])``,
        ``x[:, where[0] : where[1]]``) are taken from what the array was made of. Where the number only goes into
        arithmetic with the tensor that it was computed from (``x - x.max().item()``), lets the 0-d tensor go there,
        detached where gradients may be recorded. In ``assert t.item()``, drops the call: Dynamo has an operator for
        asserting a tensor. Reports every other read, also of numbers that NumPy makes there (``int(np.prod(sizes))``;
        not ``float(np.sqrt(width))``, which Dynamo works out).

    Why it breaks compilation:
        A number that is read out of a tensor does not exist while Dynamo traces: the graph ends, and Python goes on
        with the number. Measured on torch 2.13, transformers 5.23.0, VitsModel: reading a width out of a tensor of one
        element breaks in a loop, so the frame is left to run eagerly; 23 graphs become 18.

    Fix safety:
        Safe where it is made, but for bounds that pass through an array: what that is made of is taken for a list or a
        tuple of integers, which nothing in the code may say. A known number is written only when everything it is made
        of still has its value there (names bound once, attributes that the function does not assign) and is an integer,
        and when nothing changes the tensor in between; without ``.item()``, only when every use is a size and would
        take an integer as well. In arithmetic, the tensor takes the number's place when both have one dtype and the
        same tensor is their source, hence one device, for ``+``, ``-`` and ``*``: a division by a number is a
        multiplication on a GPU; not where it went through what autocast makes float32 of (``norm``, ``exp``). An
        assertion that fails in compiled code raises RuntimeError, when the device gets there; AssertionError in eager
        code, as before. It stays where something may catch that error, or would see what was set before it, and is
        unsafe where a docstring tells of it, as in FC102. Everything else is reported, without a fix.

    References:
        PyTorch, graph break GB0124 (``Tensor.item()``); VITS and other models with WaveNet layers.
    """

    code: ClassVar[str] = "FC201"
    removed_by: ClassVar[tuple[str, ...]] = ("capture_scalar_outputs",)
    name: ClassVar[str] = "item-call"
    triggers: ClassVar[tuple[bytes, ...]] = (
        b".item()",
        b"int(",
        b"float(",
        b"bool(",
        b"map(",
        b".numpy()",
        b"Tensor([",
        b"tensor(",
        b"array(",
        b".tolist()",
    )
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call, ast.Subscript)
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)
    yields_to: ClassVar[tuple[str, ...]] = ("FC301", "FC615")  # strategies of the first answer for a cache

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it reads a number out of a tensor, or makes a 0-d tensor that something else reads."""
        assert isinstance(node, (ast.Call, ast.Subscript))
        tensor, bare = _read(node, facts), _may_be_known(node)
        if tensor is None and (asked := facts.ask(AskedNumbers).at(node)) is not None and asked.named:
            yield Finding(
                node, f"`{_short(node)}` reads a number out of a tensor: the graph ends here", assumption=_DATA
            )
            return
        if tensor is None and not bare:
            return
        if tensor is None:
            if isinstance(node, ast.Call) and (bounds := facts.ask(ArrayBounds).of(node)) is not None:
                message = "the host knows these bounds of a slice: compiled code makes a tensor of them and reads it"
                taken = Fix((Replace(node, Code("{0}", (bounds.source,))),), Applicability.UNSAFE)
                yield Finding(bounds.slices[0], message, taken, bounds.assumption)  # where the graph ends
                return
            known = facts.ask(KnownNumbers).scalar(node)
            if known is not None and _is_size(node, facts):
                yield Finding(
                    node, "the host knows this number, and reads it from a tensor", _replace(node, known, facts)
                )
            return
        assert isinstance(node, ast.Call)
        known = facts.ask(KnownNumbers).scalar(tensor)
        message = f"`{_short(node)}` reads a number out of a tensor: the graph ends here"
        if known is not None:
            fix = _replace(node, known, facts)
            yield Finding(node, message, fix, assumption="" if fix else "a builtin is another name here")
        elif (dropped := _dropped(node, tensor, facts)) is not None:
            kept, relied_on = _error_is_kept(node, facts)
            safety = Applicability.UNSAFE if relied_on else Applicability.SAFE
            fix = None if kept else Fix((Replace(node, dropped),), safety)
            yield Finding(node, message, fix, assumption=kept or relied_on)
        else:
            yield Finding(node, message, assumption=_DATA)

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _short(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) < 60 else f"{text[:56]} ..."


def _read(node: ast.Call | ast.Subscript, facts: Facts) -> ast.expr | None:
    """The tensor whose number ``node`` reads, for sure."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="item"), args=[], keywords=[]):
            foreign = (facts.syntax.qualified(value) or ast.unparse(value)).partition(".")[0] in (
                "np",
                "numpy",
                "random",
            )
            return None if foreign or facts.value(value).python == "foreign" else value
        case ast.Call(func=ast.Name(id="int" | "float") as name, args=[value], keywords=[]):
            if facts.value(value).is_tensor or (name.id == "int" and facts.ask(KnownNumbers).scalar(value) is not None):
                return value if facts.syntax.is_builtin(name) and not facts.value(value).is_number else None
    return None


def _may_be_known(node: ast.Call | ast.Subscript) -> bool:
    """Whether it is worth asking if ``node`` is a 0-d tensor of a known number: a cheap test."""
    match node:
        case ast.Subscript(slice=ast.Constant(value=int()) | ast.UnaryOp()):
            return isinstance(node.value, (ast.Name, ast.Call))
        case ast.Call(func=ast.Attribute(attr=attr), args=[*_]):
            return attr in _TOGETHER or (attr in ("tensor", "as_tensor", "array", "asarray") and len(node.args) == 1)
    return False


def _is_size(node: ast.expr, facts: Facts) -> bool:
    """Whether all uses of the 0-d tensor ``node`` are sizes, one of which makes the host read it."""
    content = node.args[0] if isinstance(node, ast.Call) and node.args else None
    if isinstance(content, (ast.List, ast.Tuple)):
        return False  # one dimension
    return is_size(facts, node)


def _replace(node: ast.expr, known: Known, facts: Facts) -> Fix | None:
    if known.builtin is not None and not facts.syntax.is_builtin(ast.Name(known.builtin)):
        return None
    return Fix((Replace(node, Code(known.template, known.parts)),))


def _dropped(node: ast.Call, tensor: ast.expr, facts: Facts) -> Code | None:
    """``tensor`` in the place of the number that ``node`` reads out of it, when that changes nothing."""
    if not isinstance(node.func, ast.Attribute):
        return None
    statement = facts.syntax.statement_of(node)
    if isinstance(statement, ast.Assert) and statement.test is node:
        plain = isinstance(statement.msg, ast.Constant | None) and facts.ask(Certainty).is_used(tensor)
        return Code("{0}", (tensor,)) if plain else None
    uses: list[ast.expr] = [node]
    if isinstance(statement, ast.Assign) and statement.value is node:
        function, target = facts.syntax.function_of(node), statement.targets[0]
        flow = facts.flow(function) if function is not None else None
        d = flow.by_node.get(target) if flow is not None else None
        if flow is None or d is None or len(statement.targets) > 1 or d.name in flow.captured:
            return None
        uses = [*flow.uses.get(d, [])]
        if not uses or any(len(flow.reaching[u]) != 1 for u in uses if isinstance(u, ast.Name)):
            return None
    if not facts.value(tensor).is_scalar_tensor or not all(_takes_tensor(u, tensor, facts) for u in uses):
        return None
    mode = facts.ask(GradientMode)
    if mode.may_be_in_inference_mode(node) and not all(map(mode.in_inference_mode, uses)):
        return None  # a tensor that no backward pass outside of it can use
    return Code("{0}.detach()", (tensor,))


def _error_is_kept(node: ast.Call, facts: Facts) -> tuple[str, str]:
    """Why the error of the assertion that ``node`` is the condition of has to stay, and who relies on its type.

    Compiled code raises it in the graph, as a RuntimeError.
    """
    statement = facts.syntax.statement_of(node)
    if not isinstance(statement, ast.Assert):
        return "", ""
    caught, names = facts.ask(Caught), ["AssertionError"]
    kept = caught.why(statement, names, around=True) or facts.ask(Lasting).why(statement)
    return kept, caught.relied_on(statement, names)


def _takes_tensor(use: ast.expr, tensor: ast.expr, facts: Facts) -> bool:
    """Whether ``use`` is an operand beside the tensor that ``tensor`` was computed from, of the same dtype."""
    parent = facts.syntax.parents[use]
    if not isinstance(parent, ast.BinOp) or not isinstance(parent.op, (ast.Add, ast.Sub, ast.Mult)):
        return False
    other = parent.left if parent.right is use else parent.right
    a, b = facts.value(other), facts.value(tensor)
    if not a.is_tensor or a.dtype is None or b.dtype is None or not a.dtype.same(b.dtype):
        return False
    source = _source(tensor)
    if not (
        isinstance(tensor, ast.Call) and isinstance(tensor.func, ast.Attribute) and tensor.func.attr in _REDUCTIONS
    ):
        return False
    if not isinstance(other, ast.Name) or source is None or not facts.ask(Certainty).is_used(source):
        return False  # or an array, which has the same methods
    return _same_object(other, source, facts)


def _source(e: ast.expr) -> ast.Name | None:
    """The name whose tensor ``e`` is made of, by methods without arguments: ``x`` for ``x.abs().max()``.

    None where one of them gives another dtype under autocast: the tensor would be rounded to that of ``x`` again.
    """
    while isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and not e.args and not e.keywords:
        if e.func.attr in api.AUTOCAST_TO_FLOAT32:
            return None
        e = e.func.value
    return e if isinstance(e, ast.Name) else None


def _same_object(a: ast.Name, b: ast.Name, facts: Facts) -> bool:
    function = facts.syntax.function_of(a)
    if function is None or a.id != b.id:
        return False
    reaching = facts.flow(function).reaching
    return len(reaching.get(a, ())) == 1 and reaching.get(a) == reaching.get(b)
