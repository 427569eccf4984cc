"""FC613: a bar that shows how far a loop is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from patcher.facts import Facts
from patcher.rule import Code, Edit, Enclose, Finding, Fix, Insert, Replace, Rule, block
from rules.fc613_progress_bar.bars import Bar, Bars
from rules.fc613_progress_bar.examples import INVALID, VALID

#: Longer than this, in characters, what is gone through gets a name rather than to be written twice.
_SHORT = 50


class ProgressBar(Rule):
    """``for t in tqdm(steps):``: a bar for people, around what compiled code goes through.

    What it does:
        Lets compiled code go through the items themselves, ``for t in (steps if torch.compiler.is_compiling() else
        tqdm(steps)):``, or with a name for them and an ``if`` above the loop, and leaves what the bar is told
        (``bar.set_postfix(...)``) to where there is one. A bar in a loop that breaks as it is, or beside such a loop,
        is not fixed: the function would run eagerly as before.

    Why it breaks compilation:
        Dynamo does not trace ``tqdm``. The graph breaks where the bar is made, and since the loop takes its items from
        it, the whole function falls back to eager: a sampler of a diffusion model runs eagerly, with a graph for each
        step.

    Fix safety:
        Safe for what the code computes: a bar hands on the items that it is given, in their order. Only where the bar
        is gone through, told what to show, and nothing else: what reads ``bar.n``, hands the bar on or holds it in a
        ``with`` is reported and not fixed, and so is one that is given what may change something. The items get a name
        only where they are the first that their statement evaluates, and are no generator, which the name would keep
        open. Compiled code shows no bar, so that what it is told cannot fail there. An iterator that is left by
        ``break`` and gone on with goes on behind the last item that was taken, with a bar around it and without; one
        that nothing else holds is closed there, either way.

    References:
        PyTorch, "Attempted to call function marked as skipped" (graph break GB0007) and "Attempted to inline function
        marked as skipped" (GB0008).
    """

    code = "FC613"
    name = "progress-bar"
    triggers = (b"tqdm",)
    listens_to = (ast.Call,)
    costs = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it makes a bar in compiled code."""
        assert isinstance(node, ast.Call)
        bar = facts.ask(Bars).of(node)
        if bar is None or facts.eager_only(node):
            return
        message = "a progress bar is not traced: graph break, and the loop over it runs eagerly"
        compiling = facts.writing.spelled("torch.compiler.is_compiling", node)
        if bar.reason or compiling is None:
            yield Finding(node, message, assumption=bar.reason or "`torch` is not imported above it")
            return
        without = _without(bar, compiling, facts)
        if not without:
            yield Finding(node, message, assumption="what it goes through is too long to be written twice there")
            return
        told = Code(f"if isinstance({{0}}, {bar.kind}):")  # what compiled code has left may run on in eager code
        shown = (Enclose((facts.syntax.statement_of(t),), replace(told, parts=(t,))) for t in bar.told)
        yield Finding(node, message, Fix((*without, *shown), only_loop=True))

    def handles(self, node: ast.AST, facts: Facts) -> bool:
        """Whether ``node`` makes a bar."""
        return isinstance(node, ast.Call) and facts.ask(Bars).of(node) is not None

    invalid = INVALID
    valid = VALID


def _without(bar: Bar, compiling: str, facts: Facts) -> tuple[Edit, ...]:
    """What lets compiled code go through the items of ``bar`` by themselves; nothing where they need a name first."""
    parts = tuple(bar.items)
    items = Code(f"range({', '.join(f'{{{n}}}' for n in range(len(parts)))})" if bar.counted else "{0}", parts)
    either = Code(f"{{0}} if {compiling}() else {{1}}", (items, bar.call))
    if bar.counted or len(ast.unparse(bar.call)) + len(ast.unparse(parts[0])) <= _SHORT:
        return (Replace(bar.call, either),)
    statement = bar.named_above
    if statement is None:
        return ()
    if (named := _named(statement, bar.call)) is not None:
        if isinstance(parts[0], ast.Name):
            return (Replace(bar.call, either),)
        told = block(Code(f"if not {compiling}():"), [Code(f"{named} = {{0}}", (_over(bar.call, parts[0], named),))])
        return (Replace(bar.call, Code("{0}", parts)), Insert(statement, (told,), after=True))
    name = facts.writing.fresh_local("_items", statement)
    if isinstance(parts[0], ast.Name):
        return (Insert(statement, (Code(f"{name} = {{0}}", (either,)),)), Replace(bar.call, Code(name)))
    shown = Code(f"{name} = {{0}}", (_over(bar.call, parts[0], name),))
    made = Insert(statement, (Code(f"{name} = {{0}}", parts), block(Code(f"if not {compiling}():"), [shown])))
    return (made, Replace(bar.call, Code(name)))


def _named(statement: ast.stmt, call: ast.Call) -> str | None:
    """The one name that ``statement`` gives to the bar, where that bar is told nothing of what had the name before."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is call:
            asked = {n.id for n in ast.walk(call) if isinstance(n, ast.Name)}
            return name if name not in asked else None
    return None


def _over(call: ast.Call, items: ast.expr, name: str) -> Code:
    """``call``, with ``name`` for ``items``, and all else as it is written."""
    given = [(f"{k.arg}=" if k.arg else "**", k.value) for k in call.keywords]
    kept = [*(("", a) for a in call.args), *given]
    others = [e for _, e in kept if e is not items]
    texts = [before + (name if e is items else f"{{{others.index(e) + 1}}}") for before, e in kept]
    return Code(f"{{0}}({', '.join(texts)})", (call.func, *others))
