"""One form for graphs that say the same in other words, so that one pattern matches many spellings.

Runs in the process of ``fusions.py``. What numbers come out is that of the code as it was written only up to rounding:
these graphs are compared and shown, and run for a check, nothing more. Standard library and torch.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import torch
import torch.fx

aten = torch.ops.aten

DIGITS = 7  # of constants: 0.79788456 and math.sqrt(2 / math.pi) are the same one
REACH = 12  # steps back from a factor to see whether it is made of the other one
_NOTHING_DONE = (
    aten.alias.default, aten.detach.default, aten.clone.default, aten.expand.default, aten.view.default,
    aten._to_copy.default, aten.slice.Tensor,
)  # fmt: skip
_VIEWS = (aten._unsafe_view.default, aten.reshape.default)
_ONCE = (
    aten.sub.Tensor, aten._to_copy.default, aten.neg.default, aten.pow.Tensor_Scalar, aten.slice.Tensor,
    aten.unsqueeze.default,
)  # fmt: skip
_OTHER_WAY_ROUND = (aten.mul.Tensor, aten.add.Tensor)

Node = torch.fx.Node


def normalised(module: Any) -> Any:
    """The graph of ``module`` in one form; changed in place, and returned."""
    graph = module.graph
    for step in 2 * (_without_nothing, _spelled, _products, _ordered):  # what one has made, another has to look at
        for node in list(graph.nodes):
            if node.op == "call_function" and not node._erased:
                step(node)
        _once(graph)
        graph.eliminate_dead_code()
    for node in list(graph.nodes):
        if node.op == "call_function" and not node._erased:
            _matmul(node)
    graph.eliminate_dead_code()
    graph.lint()
    module.recompile()
    return module


def shape(node: Any) -> tuple[Any, ...] | None:
    """Sizes of the tensor that a node gives, None where it gives none."""
    value = node.meta.get("val") if isinstance(node, Node) else None
    return tuple(value.shape) if isinstance(value, torch.Tensor) else None


def dtype(node: Any) -> Any:
    """Of the tensor that a node gives, or None."""
    value = node.meta.get("val") if isinstance(node, Node) else None
    return value.dtype if isinstance(value, torch.Tensor) else None


def same(one: Any, other: Any) -> bool:
    """Whether sizes are the same; symbols are compared by name, for asking them for a number would be a guard."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    return one is not None and str(one) == str(other)


def _is_float(node: Any) -> bool:
    kind = dtype(node)
    return kind is not None and bool(kind.is_floating_point)


def _product(sizes: tuple[Any, ...]) -> Any:
    found: Any = 1
    for size in sizes:
        found = size if isinstance(found, int) and found == 1 else found * size
    return found


def number(value: Any) -> bool:
    """Whether it is a plain number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _rounded(value: float) -> float:
    if not math.isfinite(value) or value == 0:
        return float(value)
    return float(f"{value:.{DIGITS}g}")


def _replaced(node: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
    """``node``, said anew by an operator that gives the same."""
    with node.graph.inserting_before(node):
        new = node.graph.call_function(target, args, kwargs)
    new.meta.update(node.meta)
    node.replace_all_uses_with(new)
    node.graph.erase_node(node)
    return new


def _made(before: Any, like: Any, target: Any, *args: Any) -> Any:
    """A new node in front of another, of the shape and dtype of ``like``."""
    with before.graph.inserting_before(before):
        new = before.graph.call_function(target, args)
    new.meta.update({key: value for key, value in before.meta.items() if key != "val"})
    new.meta["val"] = like.meta.get("val")
    return new


def _without_nothing(node: Any) -> None:
    """Views and copies that give what they got; negative dimensions; one kind of view."""
    if node.target in _VIEWS:
        node = _replaced(node, aten.view.default, *node.args)
    if node.target in _NOTHING_DONE:
        source = node.args[0]
        kept = isinstance(source, Node) and same(shape(source), shape(node)) and dtype(source) == dtype(node)
        here = not isinstance(node.kwargs.get("device"), torch.device) or _device(source) == _device(node)
        if kept and here:
            node.replace_all_uses_with(source)
            node.graph.erase_node(node)
            return
    if node.target is aten._to_copy.default and "dtype" in node.kwargs and _device(node.args[0]) == _device(node):
        node.kwargs = {"dtype": node.kwargs["dtype"]}
    if node.target in (aten.mean.dim, aten.sum.dim_IntList, aten.var.correction) and len(node.args) > 1:
        of = shape(node.args[0])
        if of is not None and isinstance(node.args[1], (list, tuple)):
            dims = sorted(d - len(of) if isinstance(d, int) and d >= 0 else d for d in node.args[1])
            node.args = (node.args[0], dims, *node.args[2:])


def _device(node: Any) -> Any:
    value = node.meta.get("val") if isinstance(node, Node) else None
    return value.device if isinstance(value, torch.Tensor) else None


def _spelled(node: Any) -> None:
    """One operator for what several say: squares, roots, quotients, means."""
    target, args = node.target, node.args
    if target is aten.mul.Tensor and args[0] is args[1]:
        _replaced(node, aten.pow.Tensor_Scalar, args[0], 2)
    elif target is aten.mul.Tensor and (cube := _cube(args)) is not None:
        _replaced(node, aten.pow.Tensor_Scalar, cube, 3)
    elif target is aten.square.default:
        _replaced(node, aten.pow.Tensor_Scalar, args[0], 2)
    elif target is aten.pow.Tensor_Scalar and number(args[1]):
        if args[1] == -0.5:
            _replaced(node, aten.rsqrt.default, args[0])
        elif args[1] == 0.5:
            _replaced(node, aten.sqrt.default, args[0])
        elif args[1] == int(args[1]):
            node.args = (args[0], int(args[1]))
    elif target is aten.reciprocal.default and _is(args[0], aten.sqrt.default):
        _replaced(node, aten.rsqrt.default, args[0].args[0])
    elif target is aten.div.Tensor and _is(args[1], aten.sqrt.default):
        root = _made(node, args[1], aten.rsqrt.default, args[1].args[0])
        _replaced(node, aten.mul.Tensor, args[0], root)
    elif target is aten.div.Tensor and number(args[1]) and args[1] != 0 and _is_float(node):
        total = args[0]
        if _is(total, aten.sum.dim_IntList) and _count(total) == args[1]:
            _replaced(node, aten.mean.dim, *total.args)
        else:
            _replaced(node, aten.mul.Tensor, total, _rounded(1 / args[1]))
    elif target is aten.div.Tensor and isinstance(args[1], Node) and not node.kwargs:
        whole = shape(args[1])
        if whole is not None and dtype(args[1]) == dtype(node):  # else it is another kind of division
            _replaced(node, aten.mul.Tensor, args[0], _made(node, args[1], aten.reciprocal.default, args[1]))
    elif target is aten.std.correction:
        spread = _made(node, node, aten.var.correction, *args)
        spread.kwargs = dict(node.kwargs)
        _replaced(node, aten.sqrt.default, spread)
    elif target is aten.unsqueeze.default and _is(args[0], aten.add.Tensor) and number(args[0].args[1]):
        inner = _made(
            node, node, aten.unsqueeze.default, args[0].args[0], args[1]
        )  # the number does not mind the shape
        _replaced(node, aten.add.Tensor, inner, args[0].args[1])
    elif target is aten.mul.Tensor and _is(args[0], aten.rsqrt.default) and args[1] == 1:
        node.replace_all_uses_with(args[0])
    elif target in (aten.mul.Scalar, aten.add.Scalar, aten.sub.Scalar, aten.div.Scalar):
        _spelled(_replaced(node, getattr(aten, target._schema.name.partition("::")[2]).Tensor, *args))
    elif target is aten.sub.Tensor and number(args[1]) and not node.kwargs:
        _replaced(node, aten.add.Tensor, args[0], -args[1])


def _is(node: Any, target: Any) -> bool:
    return isinstance(node, Node) and node.op == "call_function" and node.target is target


def _cube(args: tuple[Any, ...]) -> Any:
    """``x``, where the factors are ``x * x`` and ``x``."""
    for square, other in (args[:2], args[1::-1]):
        if _is(square, aten.pow.Tensor_Scalar) and square.args[0] is other and square.args[1] == 2:
            return other
    return None


def _count(total: Any) -> Any:
    """How many elements go into each sum; None where that is a symbol."""
    of, dims = shape(total.args[0]), total.args[1] if len(total.args) > 1 else None
    if of is None or not isinstance(dims, (list, tuple)):
        return None
    found = _product(tuple(of[d] for d in dims))
    return found if isinstance(found, int) else None


def _products(node: Any) -> None:
    """Constant factors come last, all in one: ``0.5 * x * y`` is ``(x * y) * 0.5``; constants are rounded."""
    if node.target not in (aten.mul.Tensor, aten.add.Tensor) or not _is_float(node):
        return
    first, second = node.args[:2]
    if number(second):
        if _is(first, node.target) and number(first.args[1]) and not (first.kwargs or node.kwargs):
            both = operator.mul if node.target is aten.mul.Tensor else operator.add
            node.args = (first.args[0], _rounded(both(first.args[1], second)))
        else:
            node.args = (first, _rounded(second), *node.args[2:])
        return
    if node.target is aten.mul.Tensor:
        for at, factor in enumerate((first, second)):
            if _is(factor, aten.mul.Tensor) and number(factor.args[1]) and len(factor.users) == 1:
                if dtype(factor.args[0]) != dtype(factor):
                    continue
                others = [factor.args[0] if i == at else arg for i, arg in enumerate((first, second))]
                if not (made_of(others[0], others[1]) or made_of(others[1], others[0]) or others[0] is others[1]):
                    continue  # the constant belongs to what it stands with: a gate is another thing
                inner = _made(node, node, aten.mul.Tensor, *others)
                outer = _replaced(node, aten.mul.Tensor, inner, factor.args[1])
                _products(inner)
                _products(outer)
                return


def _ordered(node: Any) -> None:
    """Of two factors or terms, the one that is made of the other comes second."""
    if node.target in _OTHER_WAY_ROUND and not node.kwargs and all(isinstance(arg, Node) for arg in node.args):
        first, second = node.args
        if made_of(first, second):
            node.args = (second, first)


def made_of(node: Any, other: Any) -> bool:
    """Whether a node is computed from another, within a few steps."""
    layer, met = [node], {node}
    for _ in range(REACH):
        layer = [source for one in layer for source in one.all_input_nodes if source not in met]
        met.update(layer)
        if other in met:
            return node is not other
    return False


def _once(graph: Any) -> None:
    """What is computed twice of the same, in the same way, is computed once."""
    known: dict[Any, Any] = {}
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target in _ONCE:
            key = (node.target, str(node.args), str(node.kwargs))
            if key in known:
                node.replace_all_uses_with(known[key])
                graph.erase_node(node)
            else:
                known[key] = node


def _matmul(node: Any) -> None:
    """``matmul`` of more than three dimensions, which comes as a ``bmm`` between views, and of three."""
    if node.target is not aten.bmm.default:
        return
    left, right = node.args
    ranks = [shape(left), shape(right)]
    if None in ranks:
        return
    sides = [_unfolded(side) for side in (left, right)]
    user = next(iter(node.users), None)
    if len(node.users) == 1 and _is(user, aten.view.default) and all(side is not None for side in sides):
        one, other = (shape(side) for side in sides)
        wanted = (*one[:-1], other[-1]) if one and other else ()
        if one and other and same(one[:-2], other[:-2]) and same(shape(user), wanted):
            _replaced(user, aten.matmul.default, *sides)
            return
    _replaced(node, aten.matmul.default, left, right)


def _unfolded(side: Any) -> Any:
    """What a view has made three dimensions of, the last two of which it kept."""
    if not _is(side, aten.view.default):
        return None
    whole, flat = shape(side.args[0]), shape(side)
    if whole is None or flat is None or len(whole) <= len(flat) or not same(whole[-2:], flat[-2:]):
        return None
    return side.args[0]
