"""FC201: a number that is read out of a tensor though the host knows it, or though a tensor would do."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.numbers.asked_numbers import AskedNumbers
from patcher.rule import Applicability, Code, Finding, Fix, Replace, Rule
from rules.fc201_item_call.array_bounds import ArrayBounds
from rules.fc201_item_call.examples import INVALID, VALID
from rules.fc201_item_call.known_numbers import KnownNumbers

_DATA = "the value is data-dependent"
_AS_MADE = "the tensor holds what it was made of, whole numbers that fit, one at least"


class ItemCall(Rule):
    """Numbers that are read out of tensors with ``.item()``, ``int()`` or by using a 0-d tensor as a size.

    What it does:
        Where the code itself put the number into the tensor (``torch.tensor(x.shape[1]).item()``,
        ``torch.tensor(x.shape).prod().item()``, ``torch.IntTensor([width])[0]`` that a function gets), writes that
        number in its place. Bounds of slices that pass through a NumPy array (``where = np.array(columns[name])``,
        ``x[:, where[0] : where[1]]``) are taken from what the array was made of. Reports every other read, also of
        numbers that NumPy makes there (``int(np.prod(sizes))``; not ``float(np.sqrt(width))``, which Dynamo works out).

    Why it breaks compilation:
        A number that is read out of a tensor does not exist while Dynamo traces: graph break, and Python goes on
        with the number.

    Fix safety:
        Unsafe: that what the tensor was made of are integers that fit into it, one of them at least, and that nothing
        writes to the tensor before the read, is assumed. An element that is handed on as it is may be needed as a
        tensor there; what bounds pass through an array were made of may be no list of integers.

    References:
        PyTorch, graph break GB0124 (``Tensor.item()``); VITS and other models with WaveNet layers.
    """

    code = "FC201"
    removed_by = ("capture_scalar_outputs",)
    name = "item-call"
    triggers = (
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
    listens_to = (ast.Call, ast.Subscript)
    costs = ("graph break",)
    yields_to = ("FC301", "FC615")  # strategies of the first answer for a cache

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it reads a number out of a tensor, or makes a 0-d tensor that something else reads."""
        assert isinstance(node, (ast.Call, ast.Subscript))
        tensor, known = _read(node, facts), facts.ask(KnownNumbers)
        if tensor is not None:
            number = known.scalar(tensor) if ast.unparse(getattr(node, "func", node)) != "float" else None
            message = f"`{_short(node)}` reads a number out of a tensor: graph break"
            yield Finding(node, message, _replaced(node, number), _DATA if number is None else _AS_MADE)
        elif (asked := facts.ask(AskedNumbers).at(node)) is not None and asked.named:
            yield Finding(node, f"`{_short(node)}` reads a number out of a tensor: graph break", assumption=_DATA)
        elif isinstance(node, ast.Call):
            if (bounds := facts.ask(ArrayBounds).of(node)) is not None:
                message = "the host knows these bounds of a slice: compiled code makes a tensor of them and reads it"
                taken = _replaced(node, Code("{0}", (bounds.source,)))
                yield Finding(bounds.slices[0], message, taken, bounds.assumption)  # where the graph breaks
        elif _may_be_size(node, facts) and (number := known.scalar(node)) is not None:
            message = "the host knows this number, and reads it from a tensor"
            yield Finding(
                node, message, _replaced(node, number), f"`{_short(node)}` is only used as a number where it goes"
            )

    invalid = INVALID
    valid = VALID


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


def _may_be_size(node: ast.Subscript, facts: Facts) -> bool:
    """Whether ``node`` is an element that bounds a slice or is handed to a function: ``gated(x, width[0])``."""
    parent = facts.syntax.parents[node]
    used = isinstance(parent, ast.Slice) or (isinstance(parent, ast.Call) and node in parent.args)
    return used and isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Constant)


def _replaced(node: ast.expr, number: Code | None) -> Fix | None:
    return Fix((Replace(node, number),), Applicability.UNSAFE) if number is not None else None
