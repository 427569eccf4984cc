"""A parameter more: where it goes in each kind of signature, and how that is laid out."""

from __future__ import annotations

import ast

import pytest

from patcher.edits import apply
from patcher.rule import AddParameter, Code, Fix

LONG = "def f(first_of_these: int = 1, second_of_these: int = 2, third_of_these=3) -> None:\n    pass\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f():", "def f(new):"),
        ("def f(a, b):", "def f(a, b, new):"),
        ("def f(a, b=1):", "def f(a, b=1, *, new):"),
        ("def f(a, *, b=1, **k):", "def f(a, *, b=1, new, **k):"),
        ("def f(**k):", "def f(new, **k):"),
        ("def f(*a):", "def f(*a, new):"),
        ("def f(a, /):", "def f(a, /, new):"),
        ("def f(a, b=1, /):", "def f(a, b=1, /, *, new):"),
        ("async def f(a) -> int:", "async def f(a, new) -> int:"),
        (
            "def f(\n    a: int,  # one\n    b: str,  # two\n):",
            "def f(\n    a: int,  # one\n    b: str,  # two\n    new,\n):",
        ),
        ("def f(\n    a=1,\n    b=2\n):", "def f(\n    a=1,\n    b=2,\n    *,\n    new\n):"),
        ("def f(\n    a,\n    **k,\n):", "def f(\n    a,\n    new,\n    **k,\n):"),
        ("def f(\n    b=3,  # two\n    # end\n):", "def f(\n    b=3,  # two\n    # end\n    *,\n    new,\n):"),
        ("def f(a: int,\n      b: str):", "def f(a: int,\n      b: str, new):"),
    ],
)
def test_a_parameter_more(before: str, after: str) -> None:
    for indent in ("", "    "):
        text = "".join(f"{indent}{line}\n" for line in f"{before}\n    pass".split("\n"))
        wanted = "".join(f"{indent}{line}\n" for line in f"{after}\n    pass".split("\n"))
        head = "class A:\n" if indent else ""
        assert with_parameter(head + text) == head + wanted


def test_what_becomes_too_long_is_taken_apart() -> None:
    assert with_parameter(LONG, limit=88) == (
        "def f(\n    first_of_these: int = 1,\n    second_of_these: int = 2,\n    third_of_these=3,\n    *,\n    new,\n"
        ") -> None:\n    pass\n"
    )
    assert with_parameter(LONG, limit=120).startswith(LONG[: LONG.index(")")] + ", *, new)")
    variable = LONG.replace("third_of_these=3", "*these, **more")
    assert "    *these,\n    new,\n    **more,\n) ->" in with_parameter(variable, limit=60)


def with_parameter(text: str, limit: int | None = None) -> str:
    tree = ast.parse(text)
    [function] = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    new = apply(text, [Fix((AddParameter(function, Code("new")),))], limit=limit)
    compile(new, "<new>", "exec")
    return new
