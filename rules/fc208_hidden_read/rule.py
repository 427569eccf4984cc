"""FC208: a tensor where Python or PyTorch needs a number, so that it is read without a name that says so."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.compiling.in_force import InForce
from patcher.facts.numbers.asked_numbers import ASKING, Asked, AskedNumbers
from patcher.facts.syntax.written import short
from patcher.facts.tables.captured import taken_in_by
from patcher.rule import Applicability, Code, Edit, Finding, Fix, Insert, Replace, Rule
from rules.fc208_hidden_read.examples import INVALID, VALID

_DATA = "the value is data-dependent"


class HiddenRead(Rule):
    """``x[:, start:end]`` with ``start = position[0]``: a tensor stands where a number is needed, and is read.

    What it does:
        Reports where a tensor is asked for its number though no ``.item()`` says so: bounds of slices, 0-d tensors as
        indices, ``range``, sizes (``torch.zeros(n, 3)``, ``view``, ``expand``, ``repeat``, ``split``, ``pad``),
        functions of ``math``, ``any`` and ``all`` of Python, ``in``, ``and`` and ``not``, lists that are
        repeated, text (``str(n)``, ``"%d" % n``), ``torch.equal``; numbers and arrays of NumPy, which
        are tensors in a graph (``if array.any()``, ``range(np.max(sizes))``, ``x.permute(*np.argsort(dims))``), where
        Dynamo does not know what they hold: of ``np.sqrt(width)`` it does, of ``np.prod(sizes)`` it does not;
        and where data decides how many rows there are (``torch.where(mask)``, ``unique``, ``x[y != 0]``), whether a
        branch is taken, or what a comprehension keeps, as far as other rules do not tell of it.
        It says what the line costs, and which setting of PyTorch takes it into the graph. Iterating over a tensor or
        unpacking it, ``max`` and ``sum`` of tensors, formatted strings and ``.numpy()`` alone cost nothing, and are
        not reported.

    Why it breaks compilation:
        A number that is in a tensor does not exist while Dynamo traces: the graph breaks there. After the bound of a
        slice, and in a loop, PyTorch does not resume: the function falls back to eager. Measured on torch
        2.13, timesfm 3.0.2, decoding: the bounds of two writes into a cache cost 5 breaks and 3 functions in each
        layer; 22 graphs become one without them.

    Fix safety:
        There is one fix: ``torch.bincount(x, minlength=n)`` becomes ``x.new_zeros(n).scatter_add(0, x,
        torch.ones_like(x))``, which has as many entries whatever ``x`` holds; that it holds nothing of ``n`` or more,
        which raises, is taken for granted. For all else there is none: what would do instead depends on what the number
        is for. Often a Python integer can be kept beside the tensor, and ``torch.where`` or a mask over a whole buffer
        reads what the slice read. Slices that are written from a tensor on are FC306's.

    References:
        PyTorch, graph break GB0124 (``Tensor.item()``); docs/captured.md has a row for each way.
    """

    code = "FC208"
    name = "hidden-read"
    triggers = tuple(
        word.encode()
        for word in "[ range( math. while any( all( where( unique nonzero zeros( ones( empty( arange( linspace( full( "
        "numpy view( reshape( expand( repeat( tile( split( chunk( pad( roll( topk( equal allclose str( repr( sorted( "
        "assert Tensor: bincount(".split()
    )
    listens_to = ASKING
    costs = ("graph break",)
    yields_to = (
        "FC301",
        "FC102",
        "FC306",
        "FC402",
        "FC404",
        "FC405",
        "FC614",
        "FC615",
        "FC711",
    )

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it asks a tensor for its number."""
        found = facts.ask(AskedNumbers).at(node)
        if found is None or found.named:  # FC201 tells of those
            return
        settings = taken_in_by(found.way, facts.settings.target_torch)
        if facts.ask(InForce).takes_in(settings):
            return
        taken = "".join(f"; `{name}` takes it into the graph" for name in sorted(settings)[:1])
        counted = _counted(found.node, facts)
        yield Finding(found.asked, _message(found), *(counted or (None, _DATA + taken)))

    invalid = INVALID
    valid = VALID


def _counted(call: ast.AST, facts: Facts) -> tuple[Fix, str] | None:
    """Counts of numbers of which there are ``minlength``, added up by place; and what is taken for granted."""
    match call:
        case ast.Call(func=func, args=[numbers], keywords=[ast.keyword(arg="minlength", value=limit)]) if (
            facts.syntax.qualified(func) == "torch.bincount"
        ):
            pass
        case ast.Call(
            func=ast.Attribute(value=numbers, attr="bincount"),
            args=[],
            keywords=[ast.keyword(arg="minlength", value=limit)],
        ):
            pass
        case _:
            return None
    held = facts.inference.of(limit)
    if held.is_tensor or held.data:
        return None
    if facts.writing.why_not_first(call):
        return None
    dtype = facts.inference.of(numbers).dtype
    wide = dtype is not None and dtype.which == "torch.int64"
    edits, name = list[Edit](), numbers.id if isinstance(numbers, ast.Name) and wide else ""
    if not name:
        name = facts.writing.fresh_local("_counted", call)
        kept = Code(f"{name} = {{0}}{'' if wide else '.long()'}", (numbers,))
        edits.append(Insert(facts.syntax.statement_of(call), (kept,)))
    ones = facts.writing.spelling("torch.ones_like", call)
    code = Code(f"{name}.new_zeros({{0}}).scatter_add(0, {name}, {ones}({name}))", (limit,))
    granted = f"`{short(numbers)}` holds no number that is `{short(limit)}` or more, which raises"
    return Fix((*edits, Replace(call, code)), Applicability.UNSAFE), granted


def _message(found: Asked) -> str:
    told = "decides how many rows there are" if found.sized else "is read for its number here"
    what = f"`{short(found.asked)}` {told}: graph break"
    if found.looped:
        return f"{what} in a loop, and the function falls back to eager"
    return f"{what}, and the function falls back to eager: no graph goes on behind it" if found.gives_up else what
