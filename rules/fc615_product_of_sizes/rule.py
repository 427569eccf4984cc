"""FC615: a product of sizes that NumPy takes, or that Python takes of a generator."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.numbers.asked_numbers import ASKING, AskedNumbers
from patcher.facts.syntax.written import integer
from patcher.facts.values.sizes import Sizes
from patcher.rule import Applicability, Code, Finding, Fix, Replace, Rule
from rules.fc615_product_of_sizes.examples import INVALID, VALID

_PRODUCTS = frozenset({"numpy.prod", "numpy.product", "numpy.multiply.reduce"})
#: Methods of tensors, and functions of torch, whose arguments are sizes, or counts of elements.
_METHODS = frozenset("reshape view expand repeat tile new_zeros new_ones new_empty".split())
_FUNCTIONS = frozenset(f"torch.{name}" for name in "reshape zeros ones empty rand randn tile".split())
_WHOLE = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)


class ProductOfSizes(Rule):
    """``x.reshape(n, np.prod(x.shape[1:]))``: NumPy multiplies sizes, and the product is a size again.

    What it does:
        Multiplies them in Python: ``math.prod(x.shape[1:])``, and ``x.shape[1] * x.shape[2]`` for a list of two. Where
        ``math.prod`` is given a generator, it gets a list: ``math.prod([x.shape[i] for i in dims])``.

    Why it breaks compilation:
        Dynamo traces NumPy as operations on tensors. The product is a 0-d tensor there, and where it is needed as a
        size, PyTorch reads it back on the host: graph break, also with ``int(...)`` around it. Of ``math.prod``
        Dynamo takes lists and tuples; at a generator the graph breaks ("Failed to convert args/kwargs to proxy").

    Fix safety:
        Safe: the product is the same integer, and only where it is used as a size of ``reshape``, ``view``, ``zeros``
        and their like, alone or in arithmetic of integers, or made an ``int`` first: anywhere else the type of NumPy
        might be told. Unsafe without an ``int`` around it where there may be no sizes: their product is 1, and NumPy's
        the float 1.0, of which no size can be made. Not fixed are products along an axis or of a given dtype, what is
        not known to be sizes, and divisions by anything but a number that is not 0, of which NumPy makes 0 and Python
        an error. ``x.shape[1:].numel()`` would do the same, but has no symbols: sizes that ``torch.export`` and
        ``make_fx`` are to keep open would become numbers. A list of all that a generator gives has the same product;
        one whose turns may do more than give a number, or end another iterator, stays a generator. An ``int`` around
        numbers that only their annotation calls integers stays.

    References:
        PyTorch, "Data dependent operator" (graph break GB0033).
    """

    code = "FC615"
    name = "product-of-sizes"
    triggers = (b"prod", b"multiply")
    listens_to = (ast.Call,)
    costs = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it is NumPy's product of sizes, and a size itself."""
        assert isinstance(node, ast.Call)
        if facts.syntax.qualified(node.func) == "math.prod" and len(node.args) == 1:
            if isinstance(given := node.args[0], ast.GeneratorExp):
                message = "`math.prod` of a generator is not traced: graph break"
                fix, why = _as_list(node, given), _why_apart(given, facts)
                assumption = why or ("" if fix else "a list does not end it")
                yield Finding(node, message, None if why else fix, assumption=assumption)
            return
        if facts.syntax.qualified(node.func) not in _PRODUCTS or len(node.args) != 1 or node.keywords:
            return
        product = _product(node.args[0], facts)
        replaced = _as_size(node, facts)
        if product is None or replaced is None:
            return
        if facts.syntax.builtin(replaced) == "int" and not _is_whole(node.args[0], facts):
            replaced = node
        message = "NumPy multiplies sizes, and the product is read back as a size: graph break"
        edits = (Replace(replaced, product),)
        if replaced is node and not isinstance(node.args[0], (ast.List, ast.Tuple)):
            assumption = "the shape has at least one dimension: the product of no sizes is a float in NumPy"
            yield Finding(node, message, Fix(edits, Applicability.UNSAFE), assumption)
        else:
            yield Finding(node, message, Fix(edits))

    def handles(self, node: ast.AST, facts: Facts) -> bool:
        """Whether what ``node`` asks for its number is a product that is reported there."""
        asked = facts.ask(AskedNumbers).at(node) if isinstance(node, ASKING) else None
        if asked is None:
            return False
        inside = set(ast.walk(asked.node))
        products = (n for n in ast.walk(asked.asked) if isinstance(n, ast.Call))
        named = facts.inference.definitions(asked.asked) if isinstance(asked.asked, ast.Name) else ()
        made = (d.value for d in named if isinstance(d.value, ast.Call))
        return any(found.node in inside for call in (*products, *made) for found in self.check(call, facts))

    invalid = INVALID
    valid = VALID


def _as_list(call: ast.Call, given: ast.GeneratorExp) -> Fix | None:
    """A list in place of the generator; None where several loops, or something to wait for, are in it."""
    if (
        call.keywords
        or len(given.generators) > 1
        or any(isinstance(n, (ast.Await, ast.NamedExpr)) for n in ast.walk(given))
    ):
        return None
    (turn,) = given.generators
    if turn.is_async:
        return None
    tests = "".join(f" if {{{n}}}" for n in range(3, 3 + len(turn.ifs)))
    made = Code("[{0} for {1} in {2}" + tests + "]", (given.elt, turn.target, turn.iter, *turn.ifs))
    return Fix((Replace(call, Code("{0}({1})", (call.func, made))),))  # the generator shares the call's parentheses


def _why_apart(given: ast.GeneratorExp, facts: Facts) -> str:
    """What of ``given`` may be missed, or seen, when all of it is evaluated before the first multiplication."""
    (turn, *_) = given.generators
    reasons = map(facts.ask(Unchanged).why_impure, (given.elt, *turn.ifs))
    return next((f"{reason}, turn by turn" for reason in reasons if reason), "")


def _product(sizes: ast.expr, facts: Facts) -> Code | None:
    """The product of ``sizes`` in Python's own integers."""
    match sizes:
        case ast.List(elts=[_, *_] as parts) | ast.Tuple(elts=[_, *_] as parts):
            if all(_is_one(p, facts) for p in parts):
                return Code(" * ".join(f"{{{n}}}" for n in range(len(parts))), tuple(parts))
            return None
        case ast.Subscript(value=whole, slice=ast.Slice()):
            pass
        case _:
            whole = sizes
    match whole:
        case (
            ast.Attribute(value=of, attr="shape")
            | ast.Call(func=ast.Attribute(value=of, attr="size"), args=[], keywords=[])
        ):
            prod = facts.writing.spelling("math.prod", sizes)
            return Code(f"{prod}({{0}})", (sizes,)) if facts.value(of).is_tensor else None
    return None


def _is_whole(sizes: ast.expr, facts: Facts) -> bool:
    """Whether ``sizes`` are integers of Python for sure, whatever annotations say: their product needs no ``int``."""
    asked = facts.ask(Sizes)
    if isinstance(sizes, (ast.List, ast.Tuple)):
        return all(map(asked.is_count, sizes.elts))
    return asked.is_shape(sizes)


def _as_size(product: ast.expr, facts: Facts) -> ast.expr | None:
    """What of ``product`` and the ``int()`` around it is a size; None where it may be anything else."""
    parent = facts.syntax.parents[product]
    if facts.syntax.builtin(parent) == "int" and isinstance(parent, ast.Call) and len(parent.args) == 1:
        return parent
    child: ast.AST = product
    while isinstance(parent, ast.BinOp) and isinstance(parent.op, _WHOLE):
        other = parent.right if parent.left is child else parent.left
        if not _is_one(other, facts) or not _divides(parent):
            return None
        child, parent = parent, facts.syntax.parents[parent]
    if isinstance(parent, (ast.List, ast.Tuple)):
        child, parent = parent, facts.syntax.parents[parent]
    if not isinstance(parent, ast.Call) or child not in parent.args:
        return None
    method = parent.func.attr if isinstance(parent.func, ast.Attribute) else ""
    what = facts.syntax.qualified(parent.func)
    if what is None and isinstance(parent.func, ast.Attribute) and method in _METHODS:
        return product if facts.value(parent.func.value).is_tensor else None
    return product if what in _FUNCTIONS else None


def _divides(e: ast.BinOp) -> bool:
    """Whether ``e`` is no division, or one by a number that is not 0."""
    return not isinstance(e.op, ast.FloorDiv) or bool(integer(e.right))


def _is_one(e: ast.expr, facts: Facts) -> bool:
    """Whether ``e`` is one integer of Python, a size of a tensor, say, and not all of them."""
    python = facts.value(e).python
    match e:
        case ast.Subscript(slice=index):
            return python in ("int", "size") and not isinstance(index, ast.Slice)
        case ast.Call(func=ast.Attribute(attr="size"), args=[_], keywords=[]):
            return python in ("int", "size")
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _WHOLE):
            return _is_one(left, facts) and _is_one(right, facts)
        case ast.Name() if python == "size":
            return all(d.how == "assign" and len(d.path) == 1 for d in facts.inference.definitions(e))
    return python == "int"
