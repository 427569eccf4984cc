"""Operators as they are written by hand, and PyTorch's own for each: one pattern for each way to write it.

Runs in the process of ``fusions.py``. Patterns are functions that PyTorch's pattern matcher traces; ``fusion_form``
makes one spelling of many first. Standard library and torch.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import torch._inductor.pattern_matcher as matcher
import torch.nn.functional as F

from . import fusion_form

aten = torch.ops.aten
EPS, SCALE, FILL = 1.2345e-6, 0.1234567, -12345.0  # stand for any number: no constant of a pattern is one of them
_HALF, _FULL = torch.bfloat16, torch.float32


@dataclass(frozen=True)
class Pattern:
    """One way to write an operator. ``how``: in words.

    ``anchor``: an operator that is in every match. ``scalars``: arguments that are numbers, with what stands for any.
    """

    switch: str
    how: str
    search: Callable[..., Any]
    replace: Callable[..., Any]
    examples: tuple[Any, ...]
    anchor: Any
    scalars: dict[str, float] = field(default_factory=dict)


# ---------------------------------------------------------------------------------------------------------------------
# What a match becomes: an operator of our own, so that it is one node on every device.

_LIBRARY = torch.library.Library("fused", "DEF")


def _operator(name: str, schema: str, function: Callable[..., Any]) -> Callable[..., Any]:
    _LIBRARY.define(f"{name}{schema}")
    _LIBRARY.impl(name, function, "CompositeExplicitAutograd")
    made: Callable[..., Any] = getattr(torch.ops.fused, name).default
    return made


def _rms_norm(x: Any, weight: Any, eps: float, back: bool) -> Any:
    wide = x.float()
    normal = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (normal if weight is None else normal * weight).to(_kind(back, x, weight))


def _layer_norm(x: Any, weight: Any, bias: Any, eps: float, back: bool) -> Any:
    wide = F.layer_norm(x.float(), x.shape[-1:], None, None, eps)
    wide = wide if weight is None else wide * weight
    return (wide if bias is None else wide + bias).to(_kind(back, x, weight, bias))


def _kind(back: bool, x: Any, *others: Any) -> Any:
    """The dtype that the code by hand gives: that of ``x`` where the cast back comes last, else what all come to."""
    kinds = [x.dtype] if back else [one.dtype for one in (x, *others) if one is not None]
    return functools.reduce(torch.promote_types, kinds)


def _attention(q: Any, k: Any, v: Any, mask: Any, scale: float) -> Any:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)


def _rope_half(x: Any, cos: Any, sin: Any, back: bool) -> Any:
    first, second = x.chunk(2, -1)
    return _rotated(x, torch.cat((-second, first), -1), cos, sin, back)


def _rope_pairs(x: Any, cos: Any, sin: Any, back: bool) -> Any:
    real, imaginary = x.unflatten(-1, (-1, 2)).unbind(-1)
    return _rotated(x, torch.stack((-imaginary, real), -1).flatten(-2), cos, sin, back)


def _rotated(x: Any, turned: Any, cos: Any, sin: Any, back: bool) -> Any:
    return (x.float() * cos + turned.float() * sin).to(x.dtype) if back else x * cos + turned * sin


rms_norm = _operator("rms_norm", "(Tensor x, Tensor? weight, float eps, bool back) -> Tensor", _rms_norm)
layer_norm = _operator(
    "layer_norm", "(Tensor x, Tensor? weight, Tensor? bias, float eps, bool back) -> Tensor", _layer_norm
)
gelu = _operator(
    "gelu", "(Tensor x, str approximate) -> Tensor", lambda x, approximate: F.gelu(x, approximate=approximate)
)
silu = _operator("silu", "(Tensor x) -> Tensor", F.silu)
modulate = _operator(
    "modulate", "(Tensor x, Tensor scale, Tensor shift) -> Tensor", lambda x, scale, shift: x * (1 + scale) + shift
)
attention = _operator("attention", "(Tensor q, Tensor k, Tensor v, Tensor? mask, float scale) -> Tensor", _attention)
rope_half = _operator("rope", "(Tensor x, Tensor cos, Tensor sin, bool back) -> Tensor", _rope_half)
rope_pairs = _operator("rope_pairs", "(Tensor x, Tensor cos, Tensor sin, bool back) -> Tensor", _rope_pairs)


# ---------------------------------------------------------------------------------------------------------------------
# The patterns.


def _x(kind: Any = _FULL, *sizes: int) -> Any:
    return torch.ones(*(sizes or (2, 3, 8)), dtype=kind)


def _both_ways(one: Any, other: Any, turned: bool) -> Any:
    return other * one if turned else one * other


def _rms_norms() -> Iterator[Pattern]:
    def normal(wide: Any, eps: float) -> Any:
        return wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)

    def made(how: str, search: Callable[..., Any], *examples: Any, weighted: bool = True) -> Pattern:
        back = how.endswith("cast back")
        names = ("x", "weight", "eps") if weighted else ("x", "eps")
        replace = _named(names, lambda x, weight, eps: rms_norm(x, weight, eps, back), ("x", "weight", "eps"))
        return Pattern("rms-norm", how, _named(names, search), replace, examples, aten.rsqrt.default, {"eps": EPS})

    weight, half = _x(_FULL, 8), _x(_HALF)
    for turned in (False, True):
        yield made(
            "weight, one dtype",
            lambda x, weight, eps, turned=turned: _both_ways(normal(x, eps), weight, turned),
            _x(), weight,
        )  # fmt: skip
        yield made(
            "in float32, weight inside, cast back",
            lambda x, weight, eps, turned=turned: _both_ways(normal(x.float(), eps), weight, turned).to(x.dtype),
            half, weight,
        )  # fmt: skip
        yield made(
            "in float32, cast back, then the weight",
            lambda x, weight, eps, turned=turned: _both_ways(normal(x.float(), eps).to(x.dtype), weight, turned),
            half, _x(_HALF, 8),
        )  # fmt: skip
        yield made(
            "the mean in float32, cast back, then the weight",
            lambda x, weight, eps, turned=turned: _both_ways(
                (x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype), weight, turned
            ),
            half, _x(_HALF, 8),
        )  # fmt: skip
    yield made("no weight, one dtype", normal, _x(), weighted=False)
    yield made(
        "no weight, in float32, cast back", lambda x, eps: normal(x.float(), eps).to(x.dtype), half, weighted=False
    )


_NORM = ("x", "weight", "bias", "eps")
_ATTENTION = ("q", "k", "v", "mask", "scale", "fill")


def _layer_norms() -> Iterator[Pattern]:
    def normal(wide: Any, eps: float, of_pytorch: bool) -> Any:
        apart = wide - wide.mean(-1, keepdim=True)
        spread = wide.var(-1, keepdim=True, unbiased=False) if of_pytorch else apart.pow(2).mean(-1, keepdim=True)
        return apart * torch.rsqrt(spread + eps)

    names = {True: "var", False: "mean of squares"}
    affine = (("weight", "bias"), ("weight",), ())
    for of_pytorch, parts, turned, cast in itertools.product((True, False), affine, (False, True), ("", "in", "out")):
        if turned and not parts:
            continue
        if cast == "out" and not parts:
            continue  # it is the same as "in"

        def search(
            x: Any, weight: Any, bias: Any, eps: float, of: bool = of_pytorch, turned: bool = turned, cast: str = cast
        ) -> Any:
            y = normal(x.float() if cast else x, eps, of)
            y = y.to(x.dtype) if cast == "out" else y
            if weight is not None:
                y = _both_ways(y, weight, turned)
            if bias is not None:
                y = y + bias
            return y.to(x.dtype) if cast == "in" else y

        told = [" and ".join(parts) or "no weight", names[of_pytorch]]
        told += {"": [], "in": ["in float32, cast back"], "out": ["in float32, cast back, then the weight"]}[cast]
        kind = _HALF if cast == "out" else _FULL
        examples = (_x(_HALF if cast else _FULL), *(_x(kind, 8) for _ in parts))
        names_of = ("x", *parts, "eps")
        yield Pattern(
            "layer-norm", ", ".join(told), _named(names_of, search, _NORM),
            _named(names_of, functools.partial(layer_norm, back=cast == "in"), _NORM),
            examples, aten.rsqrt.default, {"eps": EPS},
        )  # fmt: skip


def _named(names: tuple[str, ...], function: Callable[..., Any], every: tuple[str, ...] = ()) -> Callable[..., Any]:
    """``function`` with these parameters and no others: the matcher goes by their names.

    ``every``: those that it takes, where it is to get None for those that are not named.
    """

    def called(*args: Any) -> Any:
        given = dict(zip(names, args, strict=True))
        return function(*(given.get(name) for name in every or names))

    called.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    return called


def _gelus() -> Iterator[Pattern]:
    root = math.sqrt(2 / math.pi)
    tanh = {
        "x + 0.044715 * x ** 3": lambda x: 0.5 * x * (1 + torch.tanh(root * (x + 0.044715 * torch.pow(x, 3)))),
        "x * (1 + 0.044715 * x ** 2)": lambda x: 0.5 * x * (1 + torch.tanh(root * x * (1 + 0.044715 * x * x))),
    }
    for how, search in tanh.items():
        yield Pattern(
            "gelu-tanh", how, search, lambda x: gelu(x, "tanh"), (_x(),), aten.tanh.default
        )  # fmt: skip
    yield Pattern(
        "gelu-erf", "with erf", lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))), lambda x: gelu(x, "none"),
        (_x(),), aten.erf.default,
    )  # fmt: skip


def _silus() -> Iterator[Pattern]:
    yield Pattern("silu", "x * sigmoid(x)", lambda x: x * torch.sigmoid(x), silu, (_x(),), aten.sigmoid.default)
    yield Pattern("silu", "x / (1 + exp(-x))", lambda x: x / (1 + torch.exp(-x)), silu, (_x(),), aten.exp.default)


def _modulations() -> Iterator[Pattern]:
    for turned, first in itertools.product((False, True), (False, True)):

        def search(x: Any, scale: Any, shift: Any, turned: bool = turned, first: bool = first) -> Any:
            product = _both_ways(x, 1 + scale, turned)
            return shift + product if first else product + shift

        yield Pattern(
            "modulate", "x * (1 + scale) + shift", _named(("x", "scale", "shift"), search),
            lambda x, scale, shift: modulate(x, scale, shift),
            (_x(), _x(_FULL, 2, 1, 8), _x(_FULL, 2, 1, 8)), aten.add.Tensor,
        )  # fmt: skip


def _ropes() -> Iterator[Pattern]:
    def slices(x: Any) -> tuple[Any, Any]:
        return x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]

    def chunks(x: Any) -> Any:
        return x.chunk(2, -1)

    def halves(x: Any, parts: Callable[[Any], Any]) -> Any:
        first, second = parts(x)
        return torch.cat((-second, first), -1)

    def strided(x: Any) -> Any:
        return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)

    def unbound(x: Any) -> Any:
        real, imaginary = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
        return torch.stack((-imaginary, real), -1).flatten(-2)

    turns: dict[str, tuple[Callable[[Any], Any], Any]] = {
        "halves, slices": (lambda x: halves(x, slices), aten.cat.default),
        "halves, chunk": (lambda x: halves(x, chunks), aten.cat.default),
        "pairs, strided": (strided, aten.stack.default),
        "pairs, unbind": (unbound, aten.stack.default),
    }
    example = _x(_FULL, 2, 4, 3, 8), _x(_FULL, 3, 8), _x(_FULL, 3, 8)
    for (how, (turn, anchor)), turned in itertools.product(turns.items(), (False, True)):

        def search(x: Any, cos: Any, sin: Any, turn: Any = turn, turned: bool = turned) -> Any:
            return _both_ways(x, cos, turned) + _both_ways(turn(x), sin, turned)

        def in_float(x: Any, cos: Any, sin: Any, turn: Any = turn, turned: bool = turned) -> Any:
            return (_both_ways(x.float(), cos, turned) + _both_ways(turn(x).float(), sin, turned)).to(x.dtype)

        made = rope_half if how.startswith("halves") else rope_pairs
        names = ("x", "cos", "sin")
        replace, replace_in_float = (_named(names, functools.partial(made, back=back)) for back in (False, True))
        yield Pattern("rope", how, _named(names, search), replace, example, anchor)
        half = (_x(_HALF, 2, 4, 3, 8), *example[1:])
        yield Pattern("rope", f"{how}, in float32", _named(names, in_float), replace_in_float, half, anchor)


def _attentions() -> Iterator[Pattern]:
    scales = ("scores times a number", "query times a number", "no scale")
    masks = ("mask added", "mask filled in", "no mask")
    for scaling, masking, cast in itertools.product(scales, masks, (False, True)):

        def search(
            q: Any, k: Any, v: Any, mask: Any, scale: Any, fill: Any, way: Any = (scaling, masking, cast)
        ) -> Any:
            scaling, masking, cast = way
            q = q * scale if scaling == scales[1] else q
            scores = torch.matmul(q, k)
            scores = scores * scale if scaling == scales[0] else scores
            if masking == masks[0]:
                scores = scores + mask
            if masking == masks[1]:
                scores = scores.masked_fill(mask, fill)
            weights = torch.softmax(scores, -1, dtype=_FULL).to(q.dtype) if cast else torch.softmax(scores, -1)
            return torch.matmul(weights, v)

        def replace(q: Any, k: Any, v: Any, mask: Any, scale: Any, fill: Any, masking: str = masking) -> Any:
            keep = mask.logical_not() if masking == masks[1] else mask
            return attention(q, k.transpose(-1, -2), v, keep, 1.0 if scale is None else scale)

        kind = _HALF if cast else _FULL
        mask = [_x(torch.bool if masking == masks[1] else kind, 3, 3)] if masking != masks[2] else []
        parts = ("q", "k", "v", *(["mask"] if mask else []), *(["scale"] if scaling != scales[2] else []))
        q = _x(kind, 2, 4, 3, 8)
        told = ", ".join([scaling, masking, *(["softmax in float32"] if cast else [])])
        parts = (*parts, *(["fill"] if masking == masks[1] else []))
        scalars = {name: value for name, value in (("scale", SCALE), ("fill", FILL)) if name in parts}
        yield Pattern(
            "attention", told, _named(parts, search, _ATTENTION), _named(parts, replace, _ATTENTION),
            (q, q.transpose(-1, -2).clone(), q.clone(), *mask), aten._softmax.default, scalars,
        )  # fmt: skip


PATTERNS: dict[str, Callable[[], Iterator[Pattern]]] = {
    "rms-norm": _rms_norms,
    "layer-norm": _layer_norms,
    "rope": _ropes,
    "gelu-tanh": lambda: (p for p in _gelus() if p.switch == "gelu-tanh"),
    "gelu-erf": lambda: (p for p in _gelus() if p.switch == "gelu-erf"),
    "silu": _silus,
    "modulate": _modulations,
    "attention": _attentions,
}
SWITCHES = tuple(PATTERNS)

#: PyTorch's own operators, as Dynamo's graph calls them: what needs no rewrite.
OWN: dict[str, tuple[Any, ...]] = {
    "rms-norm": (F.rms_norm, torch.rms_norm),
    "layer-norm": (F.layer_norm, torch.layer_norm),
    "rope": (),
    "gelu-tanh": (F.gelu,),
    "gelu-erf": (F.gelu,),
    "silu": (F.silu,),
    "modulate": (),
    "attention": (F.scaled_dot_product_attention,),
}


def forward_graph(function: Callable[..., Any], args: Any, **_: Any) -> Any:
    """The graph of a function, undecomposed, in the form that graphs have here."""
    if "get_decomp_fn" in inspect.signature(matcher.fwd_only).parameters:
        return fusion_form.normalised(matcher.fwd_only(function, args, get_decomp_fn=dict))
    kept = matcher.select_decomp_table  # releases before 2.13 take inductor's table, which is asked for here
    matcher.select_decomp_table = dict
    try:
        return fusion_form.normalised(matcher.fwd_only(function, args))
    finally:
        matcher.select_decomp_table = kept


def register(pattern: Pattern, into: Any, noted: Callable[[Pattern, Any], bool]) -> None:
    """Hand a pattern to PyTorch's matcher; ``noted`` is told of each match, and says whether it is to be replaced."""
    known = inspect.signature(matcher.register_replacement).parameters
    more: dict[str, Any] = {"get_decomp_fn": dict} if "get_decomp_fn" in known else {}
    more |= {"skip_duplicates": True} if "skip_duplicates" in known else {}
    with torch.no_grad():
        matcher.register_replacement(
            pattern.search,
            pattern.replace,
            pattern.examples,
            forward_graph,
            into,
            extra_check=lambda match: noted(pattern, match),
            scalar_workaround=dict(pattern.scalars),
            **more,
        )
