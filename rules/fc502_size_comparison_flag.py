"""FC502: a comparison of sizes where an operator wants a bool."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts, api
from patcher.rule import Applicability, Code, Cost, Example, Finding, Fix, NearMiss, Replace

_RUN = """
def make():
    return Net()

def qk(n, m=None):
    q = torch.arange(16.0 * n).view(2, 2, n, 4) / 100
    k = torch.arange(16.0 * (m or n)).view(2, 2, m or n, 4).sin()
    return q, k

calls = [qk(n) for n in (3, 5, 6, 7)] + [qk(1, n) for n in (4, 5, 6)]
"""


class SizeComparisonFlag:
    """A comparison of sizes, or of ints that change between calls, that ends in an operator's bool argument.

    What it does:
        Writes ``True if t == t_kv else False`` for ``t == t_kv``, where the flag is made: in the call, where a local
        name is assigned, in the call of a function or module that passes it on, also one of another file, or at the
        ``return`` of one that works it out. ``bool(t == t_kv)`` becomes the same. Of ``t == t_kv and flag`` only the
        comparison is wrapped when ``flag`` is not known to be a bool, for the result may be ``flag`` itself.

    Why it breaks compilation:
        Once a size is dynamic, a comparison of it is a symbolic bool, also ``t > 1``, whose value is known. Operators
        such as ``scaled_dot_product_attention`` take True and False only: the graph ends before the call, that runs
        eagerly. ``and``, ``or``, ``&`` and ``bool()`` hand the symbolic bool on; a test makes a guard of it, and the
        arms are constants. Measured on torch 2.13, attention over 3, 5, 6 and 7 words, then of one word over 4, 5
        and 6: two breaks with ``==``, also inside of ``bool()``, none with the conditional expression, and two
        recompiles either way. Left alone, as they do not break: ``not x``, ``t > 1 and flag``, ints of a module.

    Fix safety:
        Safe: a comparison of numbers is True or False, and so is the conditional expression; it is evaluated once, in
        the same place. What is compared need not be known to be numbers when the operator is sure to get the flag, for
        it raises for everything but True and False. Elsewhere, an operand that may be a tensor makes the rewrite
        unsafe, and one that is known to be a tensor is never touched. Each outcome gets a graph of its own: one that
        comes up only later is compiled then.

    References:
        The attention fixes of the nanoVLM and Toto reports; PyTorch, "Dynamic shapes" (SymBool).
    """

    code: ClassVar[str] = "FC502"
    name: ClassVar[str] = "size-comparison-flag"
    triggers: ClassVar[tuple[bytes, ...]] = (
        b".shape",  # for an operator that stands in another file
        b".size(",
        *sorted({n.rpartition(".")[2].encode() for n in api.BOOL_ARGUMENTS}),
    )
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Compare,)
    fixed_in: ClassVar[tuple[int, int] | None] = None
    costs: ClassVar[tuple[Cost, ...]] = ("graph break", "dynamic shape", "recompilation")

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it is the first comparison of a flag that an operator is to get."""
        assert isinstance(node, ast.Compare)
        if not facts.flags.varies(node) or not facts.reached(node) or facts.eager_only(node):
            return
        root = facts.flags.root(node)
        comparisons = facts.flags.symbolic(root)
        if node not in comparisons[:1] or (reach := facts.flags.reach(root)) is None:
            return
        message = f"a comparison of sizes is no bool while compiling: as `{reach.argument}` it ends the graph"
        doubtful = [e for c in comparisons for e in facts.flags.unproven(c)]
        doubtful = [] if reach.strict or facts.flags.is_bool_call(root) else doubtful
        only = reach.strict and reach.argument in api.BOOL_OR_ERROR
        edits = tuple(_edits(root, facts, reach.strict or bool(doubtful), only))
        if doubtful:
            assumption = f"`{ast.unparse(doubtful[0])}` is a number, not a tensor"
            yield Finding(root, message, Fix(edits, Applicability.UNSAFE), assumption)
        else:
            yield Finding(root, message, Fix(edits))

    invalid: ClassVar[tuple[Example, ...]] = (
        Example(
            title="in the call",
            before="""class Net(nn.Module):
    def forward(self, q, k):
        return F.scaled_dot_product_attention(
            q,
            k,
            k,
            is_causal=q.shape[2] == k.shape[2],  # not while decoding
        )
""",
            after="""class Net(nn.Module):
    def forward(self, q, k):
        return F.scaled_dot_product_attention(
            q,
            k,
            k,
            is_causal=True if q.shape[2] == k.shape[2] else False,  # not while decoding
        )
""",
            run=_RUN,
        ),
        Example(
            title="named first",
            before="""class Net(nn.Module):
    def forward(self, q, k):
        new, total = q.size(2), k.size(2)
        causal = (new == total and new > 1)  # not while decoding
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)
""",
            after="""class Net(nn.Module):
    def forward(self, q, k):
        new, total = q.size(2), k.size(2)
        causal = (True if new == total and new > 1 else False)  # not while decoding
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)
""",
            run=_RUN,
        ),
        Example(
            title="bool() does not help",
            before="""class Net(nn.Module):
    def forward(self, q, k):
        return F.scaled_dot_product_attention(q, k, k, None, 0.0, bool(q.shape[2] > 1))
""",
            after="""class Net(nn.Module):
    def forward(self, q, k):
        return F.scaled_dot_product_attention(q, k, k, None, 0.0, True if q.shape[2] > 1 else False)
""",
            run=_RUN,
        ),
        Example(
            title="together with a flag of any kind",
            before="""class Net(nn.Module):
    def __init__(self, causal=True):
        super().__init__()
        self.causal = causal

    def forward(self, q, k):
        flag = self.switch(q)
        return F.scaled_dot_product_attention(q, k, k, is_causal=q.shape[2] == k.shape[2] and flag)

    def switch(self, q):
        return self.causal
""",
            after="""class Net(nn.Module):
    def __init__(self, causal=True):
        super().__init__()
        self.causal = causal

    def forward(self, q, k):
        flag = self.switch(q)
        return F.scaled_dot_product_attention(q, k, k, is_causal=True if q.shape[2] == k.shape[2] and flag else False)

    def switch(self, q):
        return self.causal
""",
            run=_RUN,
        ),
        Example(
            title="how far the text is, counted outside",
            before="""from torch.nn.functional import scaled_dot_product_attention as attend


class Net(nn.Module):
    def forward(self, q, k, offset=None, mask=None):
        if offset is None:
            offset = k.shape[2] - q.shape[2]
        return self.attention(q, k, offset, mask)

    def attention(self, q, k, offset, mask):
        return attend(q, k, k, mask, is_causal=(mask is None and offset == 0))
""",
            after="""from torch.nn.functional import scaled_dot_product_attention as attend


class Net(nn.Module):
    def forward(self, q, k, offset=None, mask=None):
        if offset is None:
            offset = k.shape[2] - q.shape[2]
        return self.attention(q, k, offset, mask)

    def attention(self, q, k, offset, mask):
        return attend(q, k, k, mask, is_causal=(True if mask is None and offset == 0 else False))
""",
            run=_RUN,
        ),
        Example(
            title="passed on by a method",
            before="""class Net(nn.Module):
    def _attend(self, q, k, causal=False):
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)

    def forward(self, q, k):
        first = self._attend(q, k, q.shape[2] == k.shape[2])  # nothing cached yet
        return self._attend(first, k, causal=k.shape[2] != q.shape[2] or first.shape[2] > 1)
""",
            after="""class Net(nn.Module):
    def _attend(self, q, k, causal=False):
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)

    def forward(self, q, k):
        first = self._attend(q, k, True if q.shape[2] == k.shape[2] else False)  # nothing cached yet
        return self._attend(first, k, causal=True if k.shape[2] != q.shape[2] or first.shape[2] > 1 else False)
""",
            run=_RUN,
        ),
        Example(
            title="one of several assignments, of a number that is not known",
            before="""class Net(nn.Module):
    def forward(self, q, k, cache=None):
        if cache is None:
            causal = True
        else:
            k = torch.cat([cache.keys, k], dim=2)
            causal = cache.length == 0
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)
""",
            after="""class Net(nn.Module):
    def forward(self, q, k, cache=None):
        if cache is None:
            causal = True
        else:
            k = torch.cat([cache.keys, k], dim=2)
            causal = True if cache.length == 0 else False
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)
""",
            run="""
class Cache:
    def __init__(self, length):
        self.length = length
        self.keys = torch.ones(2, 2, length, 4)

def make():
    return Net()

def qk(n):
    return (torch.arange(16.0 * n).view(2, 2, n, 4) / 100,) * 2

calls = [(*qk(3), Cache(n)) for n in (0, 4, 5, 6)]
""",
        ),
        Example(
            title="worked out by a function of its own",
            before="""class Net(nn.Module):
    def forward(self, x):
        x = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=self.small(x))
        return F.dropout(x, 0.0, small := x.shape[2] == x.shape[3]) + small

    def small(self, x):
        if x.ndim != 4:
            return False
        return x.shape[2] <= 8 or x.shape[3] <= 8
""",
            after="""class Net(nn.Module):
    def forward(self, x):
        x = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=self.small(x))
        return F.dropout(x, 0.0, small := (True if x.shape[2] == x.shape[3] else False)) + small

    def small(self, x):
        if x.ndim != 4:
            return False
        return True if x.shape[2] <= 8 or x.shape[3] <= 8 else False
""",
            run="""
def make():
    return Net()

calls = [(torch.arange(2.0 * n * n).view(1, 2, n, n),) for n in (3, 5, 6, 7)]
""",
        ),
        Example(
            title="handed on to other modules of the file",
            before="""class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 4)

    def forward(self, q, k, causal=False):
        return self.attend(q, k, causal)

    def attend(self, q, k, causal):
        return self.out(F.scaled_dot_product_attention(q, k, k, is_causal=causal))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Attention()
        self.layers = nn.ModuleList([Attention() for _ in range(2)])

    def forward(self, q, k):
        q = self.first.attend(q, k, q.shape[2] == k.shape[2])
        causal = k.shape[2] == q.shape[2] or k.shape[2] < 2
        for i, layer in enumerate(self.layers):
            q = layer(q, k, causal=causal)
        return q
""",
            after="""class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 4)

    def forward(self, q, k, causal=False):
        return self.attend(q, k, causal)

    def attend(self, q, k, causal):
        return self.out(F.scaled_dot_product_attention(q, k, k, is_causal=causal))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Attention()
        self.layers = nn.ModuleList([Attention() for _ in range(2)])

    def forward(self, q, k):
        q = self.first.attend(q, k, True if q.shape[2] == k.shape[2] else False)
        causal = True if k.shape[2] == q.shape[2] or k.shape[2] < 2 else False
        for i, layer in enumerate(self.layers):
            q = layer(q, k, causal=causal)
        return q
""",
            run=_RUN,
        ),
        Example(
            title="a number that is not known, where another branch has the flag too",
            before="""class Net(nn.Module):
    def forward(self, q, k, offset):
        causal = offset == 0
        if self.training:
            return causal
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)
""",
            after="""class Net(nn.Module):
    def forward(self, q, k, offset):
        causal = True if offset == 0 else False
        if self.training:
            return causal
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)
""",
            run="""
def make():
    return Net().eval()

def qk(n):
    return (torch.arange(16.0 * n).view(2, 2, n, 4) / 100,) * 2

calls = [(*qk(3), n) for n in (0, 4, 5, 6)]
""",
            unsafe=True,
        ),
    )

    valid: ClassVar[tuple[NearMiss, ...]] = (
        NearMiss(
            title="tensors that are compared",
            source="""class Net(nn.Module):
    def forward(self, q, k, lengths):
        if self.training:
            return self._attend(q, k, lengths.sum() == 0)
        return F.scaled_dot_product_attention(q, k, k, is_causal=lengths.amax() == k.shape[2])

    def _attend(self, q, k, causal):
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal) if isinstance(causal, bool) else q * causal
""",
        ),
        NearMiss(
            title="a conditional expression already",
            source="""class Net(nn.Module):
    def forward(self, q, k):
        causal = True if q.shape[2] == k.shape[2] else False
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)
""",
        ),
        NearMiss(
            title="a test that is no comparison of sizes",
            source="""class Net(nn.Module):
    def __init__(self, kind, causal):
        super().__init__()
        self.kind = kind
        self.causal = causal

    def forward(self, q, k, mask=None):
        y = F.scaled_dot_product_attention(q, k, k, mask, is_causal=mask is None and self.causal)
        z = F.scaled_dot_product_attention(q, k, k, is_causal=self.kind == "decoder")
        return F.scaled_dot_product_attention(y, z, z, is_causal=q.ndim == 4 and q.dtype == k.dtype)
""",
        ),
        NearMiss(
            title="ints that a module holds are static",
            source="""class Net(nn.Module):
    def __init__(self, window: int):
        super().__init__()
        self.window = window

    def forward(self, q, k):
        return F.scaled_dot_product_attention(q, k, k, is_causal=self.window == 0)
""",
        ),
        NearMiss(
            title="sizes first, the flag last",
            source="""class Net(nn.Module):
    def __init__(self, causal: bool):
        super().__init__()
        self.causal = causal

    def forward(self, q, k, mask=None):
        causal = q.shape[2] > 1 and mask is None and self.causal  # sizes of 0 and 1 are static: the last one decides
        return F.scaled_dot_product_attention(q, k, k, mask, is_causal=causal)
""",
        ),
        NearMiss(
            title="not makes a bool of it",
            source="""class Net(nn.Module):
    def forward(self, q, k):
        return F.scaled_dot_product_attention(q, k, k, is_causal=not (q.shape[2] == k.shape[2]))
""",
        ),
        NearMiss(
            title="a comparison that only Python tests",
            source="""class Net(nn.Module):
    def forward(self, q, k):
        causal = q.shape[2] == k.shape[2]
        if causal:
            k = k * 2
        return F.scaled_dot_product_attention(q, k, k, is_causal=False) * 2
""",
        ),
        NearMiss(
            title="places in a loop are static",
            source="""class Net(nn.Module):
    def forward(self, q, k):
        for i in range(3):
            q = F.scaled_dot_product_attention(q, k, k, is_causal=i == 0)
        return q
""",
        ),
        NearMiss(
            title="code that is never compiled",
            source="""def prepare(q, k):
    return F.scaled_dot_product_attention(q, k, k, is_causal=q.shape[2] == k.shape[2])
""",
        ),
        NearMiss(
            title="another module that makes something else of it",
            source="""class Attention(nn.Module):
    def forward(self, q, k, causal=False):
        return self.attend(q, k, not causal)

    def attend(self, q, k, causal):
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)

    def masked(self, q, k, causal):
        mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril() if causal else None
        return F.scaled_dot_product_attention(q, k, k, mask)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = Attention()

    def forward(self, q, k):
        return self.own(self.own.masked(q, k, q.shape[2] == k.shape[2]), k, causal=q.shape[2] != k.shape[2])
""",
        ),
        NearMiss(
            title="a tensor that another module is given",
            source="""class Attention(nn.Module):
    def forward(self, q, k, causal=False):
        return F.scaled_dot_product_attention(q, k, k, is_causal=bool(causal))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = Attention()

    def forward(self, q, k, lengths):
        return self.own(q, k, causal=lengths.amax() == k.shape[2])
""",
        ),
        NearMiss(
            title="an argument of a function that is not known",
            source="""from elsewhere import attention


class Net(nn.Module):
    def forward(self, q, k):
        return attention(q, k, k, is_causal=q.shape[2] == k.shape[2])
""",
        ),
    )


def _edits(e: ast.expr, facts: Facts, strict: bool, only: bool) -> Iterator[Replace]:
    """Make bools of the symbolic comparisons that ``e`` may be: of all at once where that changes nothing else.

    ``only``: where ``e`` ends, everything but a bool is an error.
    """
    if not facts.flags.symbolic(e):
        return
    binds = any(isinstance(n, ast.NamedExpr) for n in ast.walk(e))
    match e:
        case ast.Call(args=[argument]):  # bool(argument); its brackets stay when a comment may stand in them
            alone = (e.lineno, e.end_lineno) == (argument.lineno, argument.end_lineno)
            yield Replace(e if alone else argument, Code("True if {0} else False", (argument,)))
        case ast.IfExp(body=body, orelse=orelse):
            yield from _edits(body, facts, strict, only)
            yield from _edits(orelse, facts, strict, only)
        case ast.NamedExpr(value=value):
            yield from _edits(value, facts, strict, only)
        case _ if (not binds and (facts.flags.is_bool(e, strict) or only)) or isinstance(e, ast.Compare):
            yield Replace(e, Code("True if {0} else False", (e,)))
        case ast.BoolOp(values=values):
            for value in values:
                yield from _edits(value, facts, strict, only)
        case ast.BinOp(left=left, right=right):
            yield from _edits(left, facts, strict, only)
            yield from _edits(right, facts, strict, only)
