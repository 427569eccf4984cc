"""FC503: a tensor whose sizes change, given to compiled code without a mark."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.running.eager_calls import EagerCalls, Given
from patcher.rule import Applicability, Code, Cost, Example, Finding, Fix, Insert, NearMiss, Rule, Where, block
from patcher.settings import Varied

_ASK = "torch.compiler.is_compiling"
_MAYBE = "torch._dynamo.maybe_mark_dynamic"
_UNBACKED = "torch._dynamo.decorators.mark_unbacked"

_CORE = """
def make():
    return Net()

def hook(obj, be):
    obj._forward_core = torch.compile(obj._forward_core, backend=be)
    return obj
"""
_MASKED = _CORE + "\ncalls = [(torch.ones(b, 4), torch.ones(b, 1)) for b in (2, 3, 4)] + [(torch.ones(5, 4),)]\n"
_PLAIN = _CORE + "\ncalls = [(torch.ones(b, 4),) for b in (2, 3, 4)]\n"
_BLOCKS = """
def make():
    return Net()

def hook(obj, be):
    for block in obj.blocks:
        block.compile(backend=be)
    return obj

calls = [(torch.ones(b, 4),) for b in (2, 3, 4)]
"""


class UnmarkedDynamicDim(Rule):
    """A tensor whose sizes change between calls, given to compiled code without a mark.

    What it does:
        Marks the tensors that a run has seen in several sizes, in the eager code right before the call of what is
        compiled: ``torch._dynamo.maybe_mark_dynamic(x, 0)`` under ``if not torch.compiler.is_compiling():``. Marked
        are exactly the parameters and dimensions for which the run compiled again. It needs that run: ``diagnose``
        and ``prove`` make one, and without it the rule is silent. Where a size was 1 at times it uses
        ``mark_unbacked``, for 1 is compiled apart otherwise; ``--strategy dynamic-dim=maybe`` or ``=unbacked``
        decides for all.

    Why it breaks compilation:
        The first graph is compiled for the sizes of the first call. At the second size everything is compiled again,
        this time with that size as a symbol, and for each further dimension that changes once more. A mark says it
        the first time. Measured on torch 2.13, batches of 2, 3 and 4: one recompile without the mark, none with it.
        Batches of 3, 2 and 1: two without a mark, one with ``maybe_mark_dynamic``, none with ``mark_unbacked``. It is
        the same on torch 2.6.

    Fix safety:
        Unsafe, though results do not change: a mark is an attribute on the tensor, that eager code never looks at. It
        loads ``torch._dynamo`` also in a program that compiles nothing, and one kernel for all sizes may be slower
        than one for each. A mark inside of what is compiled is an error, so each stands behind a test that is False
        there: where the caller is compiled as well, nothing happens and nothing is gained. Code that asks for the
        value of a size (``if x.shape[0] > 8``) breaks the graph with ``mark_unbacked`` (an error with ``fullgraph``),
        and is compiled again with the other. An argument without a name is not marked, nor a weight, nor one that is no
        tensor there.

    References:
        The batch variation of the nanoVLM report; PyTorch, "Dynamic shapes" (mark_dynamic, mark_unbacked).
    """

    code: ClassVar[str] = "FC503"
    name: ClassVar[str] = "unmarked-dynamic-dim"
    costs: ClassVar[tuple[Cost, ...]] = ("recompilation", "dynamic shape")
    triggers: ClassVar[tuple[bytes, ...]] = (b"forward", b"torch.compile", b".compile(")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call,)
    where: ClassVar[Where] = Where.ANYWHERE
    strategy_key: ClassVar[str] = "dynamic-dim"
    strategies: ClassVar[tuple[str, ...]] = ("auto", "maybe", "unbacked")

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it is the first call in its statement of what was compiled again for other sizes."""
        assert isinstance(node, ast.Call)
        if not facts.settings.evidence or facts.ask(EagerCalls).callee(node) is None:
            return
        if node is not (calls := facts.ask(EagerCalls).beside(node))[0]:
            return
        marked = [g for call in calls for g in facts.ask(EagerCalls).arguments(call)]
        if not marked:
            return
        callee = (facts.ask(EagerCalls).callee(node) or "").rpartition(".")[2]
        sizes = dict.fromkeys(f"{_dimensions(g.dims)} of `{g.parameter}`" for g in marked)
        message = f"`{callee}` was compiled again for other sizes in {', '.join(sizes)}: a mark says it at once"
        chosen = facts.settings.strategy(self.strategy_key)
        ones = {g: g.dims if chosen == "unbacked" else g.ones if chosen == "auto" else () for g in marked}
        edit = Insert(facts.syntax.statement_of(node), (_guarded(ones, facts),))
        assumption = "eager code makes this call, and one kernel for all sizes is fast enough"
        if any(ones.values()):
            assumption += "; no Python code asks what the size is"
        strategy = "unbacked" if any(ones.values()) else "maybe"
        yield Finding(node, message, Fix((edit,), Applicability.UNSAFE), assumption, strategy)

    invalid: ClassVar[tuple[Example, ...]] = (
        Example(
            title="a wrapper around a core that is compiled",
            before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, mask=None):
        return self._forward_core(x, mask)

    def _forward_core(self, x, mask=None):
        h = self.lin(x)
        return h if mask is None else h * mask
""",
            after="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, mask=None):
        if not torch.compiler.is_compiling():
            if isinstance(x, torch.Tensor):
                torch._dynamo.maybe_mark_dynamic(x, 0)
            if isinstance(mask, torch.Tensor):
                torch._dynamo.maybe_mark_dynamic(mask, 0)
        return self._forward_core(x, mask)

    def _forward_core(self, x, mask=None):
        h = self.lin(x)
        return h if mask is None else h * mask
""",
            run=_MASKED,
            unsafe=True,
            evidence=(Varied("", "Net._forward_core", "x", 0), Varied("", "Net._forward_core", "mask", 0)),
        ),
        Example(
            title="blocks that are compiled one by one: each gets another tensor",
            before="""class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        return x + self.lin(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(2)])

    def forward(self, x):
        for block in self.blocks:
            # one after the other
            x = block(x)  # residual
        return x
""",
            after="""class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        return x + self.lin(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(2)])

    def forward(self, x):
        for block in self.blocks:
            if not torch.compiler.is_compiling() and isinstance(x, torch.Tensor):
                torch._dynamo.maybe_mark_dynamic(x, 0)
            # one after the other
            x = block(x)  # residual
        return x
""",
            run=_BLOCKS,
            unsafe=True,
            evidence=(Varied("", "Block.forward", "x", 0),),
        ),
        Example(
            title="two dimensions, and a size that is 1 at times",
            before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h = self.lin(x.float())
        return self._forward_core(hidden=h)

    def _forward_core(self, hidden):
        return hidden.tanh() + 1
""",
            after="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h = self.lin(x.float())
        if not torch.compiler.is_compiling() and isinstance(h, torch.Tensor):
            torch._dynamo.maybe_mark_dynamic(h, 1)
            torch._dynamo.decorators.mark_unbacked(h, 0)
        return self._forward_core(hidden=h)

    def _forward_core(self, hidden):
        return hidden.tanh() + 1
""",
            run=_CORE + "\ncalls = [(torch.ones(b, t, 4),) for b, t in ((1, 2), (2, 3), (3, 4), (1, 5))]\n",
            unsafe=True,
            evidence=(
                Varied("", "Net._forward_core", "hidden", 1),
                Varied("", "Net._forward_core", "hidden", 0, one=True),
            ),
        ),
        Example(
            title="marks of that kind where they are asked for",
            before="""class Net(nn.Module):
    def forward(self, x):
        if x.dim() == 1:
            x = x[None]
        return self._forward_core(x)

    def _forward_core(self, x):
        return x.sin() * 2
""",
            after="""class Net(nn.Module):
    def forward(self, x):
        if x.dim() == 1:
            x = x[None]
        if not torch.compiler.is_compiling():
            torch._dynamo.decorators.mark_unbacked(x, (0, 1))
        return self._forward_core(x)

    def _forward_core(self, x):
        return x.sin() * 2
""",
            run=_CORE + "\ncalls = [(torch.ones(b, b + 1),) for b in (1, 2, 3)]\n",
            unsafe=True,
            strategies={"dynamic-dim": "unbacked"},
            evidence=(Varied("", "Net._forward_core", "x", 0), Varied("", "Net._forward_core", "x", 1)),
        ),
        Example(
            title="what torch.compile has made, under another name",
            before="""class Encoder(nn.Module):
    def forward(self, x, *, scale=1.0):
        return x.cos() * scale


class Net(nn.Module):
    def __init__(self, backend="eager"):
        super().__init__()
        self.encoder = torch.compile(Encoder(), backend=backend)
        self.encoder._orig_mod.eval()

    def forward(self, x):
        first = self.encoder(x).amax(-1, keepdim=True)
        return first + self.encoder(first, scale=2.0)
""",
            after="""class Encoder(nn.Module):
    def forward(self, x, *, scale=1.0):
        return x.cos() * scale


class Net(nn.Module):
    def __init__(self, backend="eager"):
        super().__init__()
        self.encoder = torch.compile(Encoder(), backend=backend)
        self.encoder._orig_mod.eval()

    def forward(self, x):
        if not torch.compiler.is_compiling() and isinstance(x, torch.Tensor):
            torch._dynamo.maybe_mark_dynamic(x, 0)
        first = self.encoder(x).amax(-1, keepdim=True)
        if not torch.compiler.is_compiling():
            torch._dynamo.maybe_mark_dynamic(first, 0)
        return first + self.encoder(first, scale=2.0)
""",
            run="""
def make():
    return Net()

def hook(obj, be):
    return Net(be)

calls = [(torch.ones(b, 4),) for b in (2, 3, 4)]
""",
            unsafe=True,
            evidence=(Varied("", "Encoder.forward", "x", 0),),
        ),
        Example(
            title="handed on by its name, from a method of another name",
            before="""class Net(nn.Module):
    def forward(self, x):
        return self._forward_core(mask=None, x=x)

    def _forward_core(self, x, mask):
        return x.sin() + 1
""",
            after="""class Net(nn.Module):
    def forward(self, x):
        if not torch.compiler.is_compiling() and isinstance(x, torch.Tensor):
            torch._dynamo.maybe_mark_dynamic(x, 0)
        return self._forward_core(mask=None, x=x)

    def _forward_core(self, x, mask):
        return x.sin() + 1
""",
            run=_PLAIN,
            unsafe=True,
            evidence=(Varied("", "Net._forward_core", "x", 0),),
        ),
    )

    valid: ClassVar[tuple[NearMiss, ...]] = (
        NearMiss(
            title="nothing has varied",
            source="""class Net(nn.Module):
    def forward(self, x):
        return self._forward_core(x)

    def _forward_core(self, x):
        return x.sin() + 1
""",
        ),
        NearMiss(
            title="a call in the compiled function itself",
            source="""class Net(nn.Module):
    def forward(self, x, depth=2):
        if depth:
            return self.forward(x + 1, depth - 1)
        return x
""",
            evidence=(Varied("", "Net.forward", "x", 0),),
        ),
        NearMiss(
            title="marked already, in a loop over names",
            source="""class Net(nn.Module):
    def forward(self, x, mask=None):
        if not torch.compiler.is_compiling():
            for tensor in (x, mask):
                if tensor is not None:
                    torch._dynamo.mark_dynamic(tensor, 0)
        return self._forward_core(x, mask)

    def _forward_core(self, x, mask):
        return x if mask is None else x * mask
""",
            evidence=(Varied("", "Net._forward_core", "x", 0), Varied("", "Net._forward_core", "mask", 0)),
        ),
        NearMiss(
            title="another function of that name",
            source="""class Block(nn.Module):
    def forward(self, x):
        return x.sin()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        return self.block(x)
""",
            evidence=(Varied("", "Other.forward", "x", 0), Varied("", "Net.forward", "x", 0)),
        ),
        NearMiss(
            title="the default is what varied",
            source="""class Net(nn.Module):
    def forward(self, x):
        return self._forward_core(x)

    def _forward_core(self, x, mask=None):
        return x if mask is None else x * mask
""",
            evidence=(Varied("", "Net._forward_core", "mask", 0),),
        ),
        NearMiss(
            title="the number of items in a list",
            source="""class Net(nn.Module):
    def forward(self, parts):
        return self._forward_core(parts)

    def _forward_core(self, parts):
        return torch.cat(parts)
""",
            evidence=(Varied("", "Net._forward_core", "parts", None),),
        ),
        NearMiss(
            title="a caller that is compiled: there, a mark is an error",
            source="""class Net(nn.Module):
    @torch.compile(backend="eager")
    def forward(self, x):
        return self._forward_core(x)

    def _forward_core(self, x):
        return x.sin() + 1
""",
            reported=True,
            evidence=(Varied("", "Net._forward_core", "x", 0),),
        ),
        NearMiss(
            title="no tensor here, no value on some path, given by a star",
            source="""class Net(nn.Module):
    def forward(self, x, *more):
        if self.training:
            y = x
        pair = (x, x)
        return self._forward_core(pair) + self._forward_core(y) + self._forward_core(*more)

    def _forward_core(self, x):
        return x[0] + 1
""",
            reported=True,
            evidence=(Varied("", "Net._forward_core", "x", 0),),
        ),
        NearMiss(
            title="no place for a statement before the call",
            source="""class Net(nn.Module):
    def forward(self, x):
        if x.dim() == 1: x = self._forward_core(x)
        elif self._forward_core(x).sum() > 0:
            x = x + 1
        while self._forward_core(x).sum() > 0:
            x = x - 1
        return [self._forward_core(y) for y in x]

    def _forward_core(self, x):
        return x + 1
""",
            reported=True,
            evidence=(Varied("", "Net._forward_core", "x", 0),),
        ),
    )


def _dimensions(dims: tuple[int, ...]) -> str:
    return f"dimension{'s' if len(dims) > 1 else ''} {' and '.join(map(str, dims))}"


def _guarded(ones: Mapping[Given, tuple[int, ...]], facts: Facts) -> Code:
    """The marks, for eager code alone, each for a tensor alone. Keys: what is marked; values: what may be 1 of it."""
    marks: dict[str, list[Code]] = {}
    for given, unbacked in ones.items():
        assert given.name is not None
        name = given.name
        test = "" if given.sure else f"isinstance({name.id}, {facts.writing.spelling('torch.Tensor', name)})"
        lines = marks.setdefault(test, [])
        for what, dims in ((_MAYBE, tuple(d for d in given.dims if d not in unbacked)), (_UNBACKED, unbacked)):
            call = f"{facts.writing.spelling(what, name)}({name.id}, {dims[0] if len(dims) == 1 else dims})"
            lines += [Code(call)] if dims and Code(call) not in lines else []
    ask = f"if not {facts.writing.spelling(_ASK, next(iter(ones)).name or ast.Name(''))}()"
    (first, lines), *others = marks.items()
    if first and not others:
        return block(Code(f"{ask} and {first}:"), lines)
    tested = [block(Code(f"if {test}:"), ls) for test, ls in marks.items() if test]
    return block(Code(f"{ask}:"), [*marks.get("", ()), *tested])
