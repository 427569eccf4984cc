"""Signs that a module of this file computes a row of its result of more than one row of what it is given."""

from __future__ import annotations

import ast

from patcher.facts.syntax.tree import Syntax
from patcher.facts.syntax.written import given

#: Modules of PyTorch that mix rows, or have a state that depends on which rows there are.
_MODULES = frozenset(
    "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm InstanceNorm1d InstanceNorm2d LSTM GRU RNN MultiheadAttention "
    "TransformerEncoder TransformerEncoderLayer Conv1d Conv2d Conv3d".split()
)
#: Functions and methods that bring different rows together.
_TOGETHER = frozenset(
    "scaled_dot_product_attention bmm roll flip transpose permute t sort argsort nonzero unique scatter_add index_add "
    "batch_norm conv1d outer cdist".split()
)
#: Those that need to be told to work along the last dimensions.
_ALONG = frozenset(
    "softmax log_softmax cumsum cumprod sum mean amax amin argmax argmin norm any all logsumexp std var max min "
    "prod topk median".split()
)


def mixes(cls: ast.ClassDef, syntax: Syntax) -> str | None:
    """What in ``cls``, or in a class of this file that it makes use of, mixes rows; None when nothing is seen."""
    known = {c.name: c for c in syntax.by_type[ast.ClassDef]}
    stack, seen = [cls], {cls}
    while stack:
        for n in ast.walk(stack.pop()):
            if (sign := _sign(n)) is not None:
                return sign
            if isinstance(n, ast.Name) and (other := known.get(n.id)) is not None and other not in seen:
                seen.add(other)
                stack.append(other)
    return None


def _sign(n: ast.AST) -> str | None:
    match n:
        case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
            pass
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Constant(value=0)):
            return ast.unparse(n)
        case _:
            return None
    arguments = given(n)
    texts = [ast.unparse(a) for a in arguments]
    if name in _MODULES or name in _TOGETHER:
        return name
    if name in _ALONG and not any(t.startswith("-") for t in texts):
        numbers = len(arguments) > 1 and isinstance(n.func, ast.Name)  # max(a, b)
        return None if numbers else name
    return f"{name}(0)" if name in ("unsqueeze", "size", "cat") and "0" in texts else None
