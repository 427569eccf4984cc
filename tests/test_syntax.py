"""The shape of a module as the one walk has it, against what it means."""

from __future__ import annotations

import ast
import itertools
import symtable
from collections.abc import Iterator
from pathlib import Path

import pytest

from patcher.facts.syntax.tree import Syntax, own_nodes, walk

ROOT = Path(__file__).resolve().parent.parent
ODD = """\
import torch as t
@t.decorated(lambda a=(z := 1): a)
class A(B, metaclass=(lambda: M)()):
    x: int = [i for i in range(3)][0]
    @staticmethod
    def f(p, /, q=lambda u: u, *r, s: str = "", **k) -> None:
        class C:
            def g(self): return self.x if 1 < 2 <= 3 else (lambda v: v)(x)
        async def h():
            async with a as b, c: await d
        def i(y=p): return y
    if x:
        def late(self): return [w for w in self if w if not w]
match x:
    case {"a": [1, *rest], **more} if more: pass
"""
MARKS = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
TEXTS = {
    "odd": ODD,
    **{str(p.relative_to(ROOT)): p.read_text(encoding="utf-8") for p in sorted(ROOT.glob("fixtures/*/*.py"))[:6]},
    "tree.py": (ROOT / "patcher/facts/syntax/tree.py").read_text(encoding="utf-8"),
}


@pytest.fixture(params=TEXTS.values(), ids=TEXTS.keys())
def syntax(request: pytest.FixtureRequest) -> Syntax:
    return Syntax(ast.parse(request.param))


def nodes(syntax: Syntax) -> Iterator[ast.AST]:
    return (n for n in ast.walk(syntax.tree) if not isinstance(n, MARKS))


def test_what_is_below_a_node(syntax: Syntax) -> None:
    for node in nodes(syntax):
        below = syntax.subtree(node)
        assert len(below) == len(set(below))
        assert set(below) == {n for n in ast.walk(node) if not isinstance(n, MARKS)}
        assert below[0] is node


def test_what_is_below_a_node_level_by_level(syntax: Syntax) -> None:
    for node in nodes(syntax):
        assert list(walk(node)) == [n for n in ast.walk(node) if not isinstance(n, MARKS)]


def test_what_is_around_a_node(syntax: Syntax) -> None:
    for node in nodes(syntax):
        line = [node, *syntax.ancestors(node)]
        pairs = list(itertools.pairwise(line))
        function = next((p for c, p in pairs if isinstance(p, FUNCTIONS) and c in p.body), None)
        cls = next((p for _, p in pairs if isinstance(p, ast.ClassDef)), None)
        below = line[: line.index(cls)] if cls is not None else []
        outermost = next((n for n in reversed(below) if isinstance(n, (*FUNCTIONS, ast.Lambda))), None)
        assert syntax.function_of(node) is function
        assert syntax.class_of(node) is cls
        assert syntax.method_of(node) is (outermost if isinstance(outermost, FUNCTIONS) else None)
        scopes = (*FUNCTIONS, ast.Lambda, ast.ClassDef, ast.Module)
        assert list(syntax.around(node).scopes) == [p for p in line[1:] if isinstance(p, scopes)]


def test_a_node_that_was_made(syntax: Syntax) -> None:
    for node in [n for n in nodes(syntax) if isinstance(n, (ast.Return, *FUNCTIONS, ast.ClassDef))]:
        made = ast.Name("new", ast.Load())
        assert syntax.function_of(made) is None
        syntax.parents[made] = node
        assert syntax.function_of(made) is syntax.function_of(node)
        assert syntax.class_of(made) is (node if isinstance(node, ast.ClassDef) else syntax.class_of(node))
        assert next(iter(syntax.subtree(made))) is made


def test_the_own_nodes_of_a_function(syntax: Syntax) -> None:
    for function in [n for n in nodes(syntax) if isinstance(n, FUNCTIONS)]:
        own = list(own_nodes(function))
        expected = {
            n
            for n in syntax.subtree(function)
            if any(n in syntax.subtree(s) for s in function.body)
            and not any(
                isinstance(p, (*FUNCTIONS, ast.ClassDef, ast.Lambda))
                for p in list(syntax.ancestors(n))[: list(syntax.ancestors(n)).index(function)]
            )
        }
        assert set(own) == expected and len(own) == len(expected)
        lines = [n.lineno for n in own if isinstance(n, ast.stmt)]
        assert lines == sorted(lines)


def test_a_builtin_is_what_no_scope_around_it_binds() -> None:
    text = (
        "def own(x):\n    callable = x\n    return callable(x)\n\n\ndef other(x):\n    return callable(x)\n\n\n"
        "def nested(len):\n    return [len(n) for n in x]\n\n\ndef plain(x):\n    return len(x)\n\n\n"
        "def maker():\n    global max\n    max = 1\n\n\ndef largest(x):\n    return max(x)\n"
    )
    syntax = Syntax(ast.parse(text))
    called = [n.func for n in syntax.by_type[ast.Call] if isinstance(n.func, ast.Name)]
    assert {f.lineno: syntax.is_builtin(f) for f in called} == {3: False, 7: True, 11: False, 15: True, 24: False}


BINDING = """\
import a
from b import c as d
e: int = (f := 1)
for g, (h, *i) in []: pass
with open(e) as j: pass
try: pass
except OSError as k: pass
match e:
    case {"x": [l, *m], **n} if l: pass
    case (int() as o) | [o]: pass
    case str(p=q): pass
def r(s, /, t, *u, v=w, **x):
    global y, z
    y = aa = 1
    match t:
        case (bb, cc): z += bb
    def dd(ee):
        nonlocal aa
        aa = ff = ee
    import hh
class ii:
    jj = 1
    match jj:
        case kk: pass
    def ll(self): mm = 1
"""


def test_what_a_scope_binds_is_what_the_compiler_says() -> None:
    syntax = Syntax(ast.parse(BINDING))
    scopes = {n.lineno: n for n in (*syntax.functions, *syntax.by_type[ast.ClassDef])}
    tables = [symtable.symtable(BINDING, "x", "exec")]
    seen = 0
    for table in tables:
        tables += table.get_children()
        scope = scopes.get(table.get_lineno(), syntax.tree)
        seen += 1
        names = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_parameter()}
        imported = {s.get_name() for s in table.get_symbols() if s.is_imported()}
        of_another = {s.get_name() for s in table.get_symbols() if s.is_declared_global() or s.is_nonlocal()}
        methods = {t.get_name() for t in table.get_children()} if isinstance(scope, ast.ClassDef) else set()
        if scope is syntax.tree:
            names |= {"y", "z"}  # which the compiler leaves to the function that says `global`
        assert syntax.bound_in(scope) - of_another == names - imported - of_another - methods, table.get_name()
    assert seen == 5


@pytest.mark.parametrize(
    ("text", "name", "what"),
    [
        ("from math import exp\nfrom cmath import exp", "exp", "cmath.exp"),
        ("from cmath import exp\nimport math as exp", "exp", "math"),
        ("import math as exp\nfrom cmath import exp", "exp", "cmath.exp"),
        ("try:\n    from math import exp\nexcept ImportError:\n    from cmath import exp", "exp", "math.exp"),
        (
            "try:\n    import missing as m\nexcept ImportError:\n    m = None\n    from cmath import exp",
            "exp",
            "cmath.exp",
        ),
        ("from math import exp\ntry:\n    from cmath import exp\nexcept ImportError:\n    pass", "exp", "cmath.exp"),
        ("if 1:\n    from math import exp\nelse:\n    from cmath import exp", "exp", "math.exp"),
        ("def f():\n    from cmath import exp\nfrom math import exp", "exp", "math.exp"),
    ],
)
def test_an_import_is_the_one_that_python_keeps(text: str, name: str, what: str) -> None:
    syntax = Syntax(ast.parse(text))
    assert syntax.imports[name] == syntax.imports_anywhere[name] == what
    namespace: dict[str, object] = {}
    exec(compile(text, "x", "exec"), namespace)
    value = namespace[name]
    assert ".".join(filter(None, (getattr(value, "__module__", None), value.__name__))) == what
