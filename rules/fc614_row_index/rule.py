"""FC614: a row of a tensor, picked by a number that is in a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.rule import Applicability, Code, Edit, Finding, Fix, Replace, Rule
from rules.fc614_row_index.examples import INVALID, VALID
from rules.fc614_row_index.picked import Picked, PickedItems, PickedRows


class RowIndex(Rule):
    """``table[scores.argmax()]``, ``x[i, n] = eos``: a row is picked by a tensor that holds one number.

    What it does:
        Picks by a tensor of one row, and takes that row: ``table[scores.argmax()[None]][0]``; writes by one, ``x[i,
        n[None]] = eos``. Out of a list of tensors, ``chain[parents[i]]``, compiled code picks a row of their stack.

    Why it breaks compilation:
        PyTorch reads the number of a 0-d index on the host, to make a view, unless the tensor came into the graph as it
        is. The graph breaks there; in a loop, and where it is written to, the whole function falls back to eager. A
        tensor of one row is an index like any other, and stays on the device.

    Fix safety:
        Unsafe. The numbers are the same where index and tensor are plain, dense tensors of one device and the index
        holds an int32 or int64. What is read is a copy and no view: what is written into it does not arrive, and what
        is written into the tensor later is not seen. The index is kept for gradients. What is written must have the
        dtype of the tensor, and the index be no view of it. An index that is too large is an error of another type, on
        a GPU an assertion of the device. Not fixed for anything but numbers and slices beside the index. Nothing is
        said where the number of the row is read at once (``x[i].item()``).

    References:
        PyTorch, "Data dependent operator" (graph break GB0033).
    """

    code = "FC614"
    name = "row-index"
    triggers = (b"[",)
    listens_to = (ast.Subscript,)
    costs = ("graph break",)
    yields_to = ("FC301", "FC102", "FC306", "FC402", "FC405", "FC711")

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it picks a row by a number that is in a tensor."""
        assert isinstance(node, ast.Subscript)
        if _is_read(node, facts):
            return  # FC201 and FC202 tell of the number that is read there: no index keeps the graph whole
        if (assumption := facts.ask(PickedItems).of(node)) is not None:
            yield _of_a_list(node, assumption, facts)
            return
        picked = facts.ask(PickedRows).of(node)
        if picked is None:
            return
        which = " and ".join(f"`{ast.unparse(e)}`" for e in picked.indices)
        message = f"the number in {which} is read on the host to pick a row: graph break"
        if picked.reason:
            yield Finding(node, message, assumption=picked.reason)
            return
        yield Finding(node, message, Fix(_edits(picked), Applicability.UNSAFE), picked.assumption)

    def handles(self, node: ast.AST, facts: Facts) -> bool:
        """Whether ``node`` picks a row by a number that is in a tensor."""
        if not isinstance(node, ast.Subscript):
            return False
        return facts.ask(PickedRows).of(node) is not None or facts.ask(PickedItems).of(node) is not None

    invalid = INVALID
    valid = VALID


def _is_read(node: ast.Subscript, facts: Facts) -> bool:
    """Whether the host reads the number of what ``node`` picks where it stands: ``x[i].item()``, ``int(x[i])``."""
    parent = facts.syntax.parents.get(node)
    match parent:
        case ast.Attribute(attr="item" | "tolist"):
            return isinstance(facts.syntax.parents.get(parent), ast.Call)
        case ast.Call(args=[ast.expr() as given]):
            return given is node and facts.syntax.builtin(parent) in ("int", "float", "bool")
    return False


def _edits(picked: Picked) -> tuple[Edit, ...]:
    rows: dict[ast.expr, Code] = {e: Code("{0}[None]", (e,)) for e in picked.indices}
    if not isinstance(picked.node.ctx, ast.Load):
        return tuple(Replace(e, code) for e, code in rows.items())
    index = picked.node.slice
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    kept = [p for p in parts if not isinstance(p, ast.Slice)]
    texts = [ast.unparse(p) if isinstance(p, ast.Slice) else f"{{{kept.index(p) + 1}}}" for p in parts]
    taken = f".squeeze({picked.before})" if picked.before else "[0]"
    row = Code(f"{{0}}[{', '.join(texts)}]{taken}", (picked.node.value, *(rows.get(p, p) for p in kept)))
    return (Replace(picked.node, row),)


def _of_a_list(node: ast.Subscript, assumption: str, facts: Facts) -> Finding:
    message = f"the number in `{ast.unparse(node.slice)}` is read on the host to pick out of a list: graph break"
    torch = facts.writing.spelled("torch", node)
    if torch is None:
        return Finding(node, message, assumption="`torch` is not imported here")
    stacked = Code(f"{torch}.stack({{0}})[{{1}}[None]][0]", (node.value, node.slice))
    chosen = Code(f"{{0}} if {torch}.compiler.is_compiling() else {{1}}", (stacked, node))
    return Finding(node, message, Fix((Replace(node, chosen),), Applicability.UNSAFE), assumption)
