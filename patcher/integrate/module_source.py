"""The new module, put together: what calls the compiler, and options for the kind of command line that a script has."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

from patcher.state_dict_source import UNCOMPILE

_ADDS = "add_compile_arguments"
_EXCLUDED = "torch_compile"
#: What changes among the imports where a command of click gets the options.
_CLICK = (
    ("import argparse\n", "import functools\n"),
    ("import MethodType\n", "import MethodType, SimpleNamespace\n"),
    ("import TYPE_CHECKING, Any\n", "import TYPE_CHECKING, Any\n\nimport click\n"),
)


def composed(kind: str, excluded: Sequence[str] = ()) -> str:
    """The text of the module.

    ``kind``: what its options are added to. ``excluded``: options of the script that compile in another way, by their
    names as attributes.
    """
    text = _read("companion")
    others = ", ".join(f'"{name}"' for name in dict.fromkeys([_EXCLUDED, *excluded]))
    old = f'_OTHER_OPTIONS = ("{_EXCLUDED}",)'
    text = text.replace(old, f"_OTHER_OPTIONS = ({others}{',' if ',' not in others else ''})")
    if kind == "fields":
        text = text.replace(_adding(text) + "\n\n\n", "").replace("import argparse\n", "")
    elif kind == "click":
        other = _read("companion_click")
        text = text.replace(_adding(text), other[other.index("_DEFAULTS = ") :].rstrip())
        for own, other in _CLICK:
            text = text.replace(own, other)
    return f"{text}\n\n{UNCOMPILE}"


def _read(name: str) -> str:
    return Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")


def _adding(text: str) -> str:
    """The function in ``text`` that adds the options."""
    (function,) = (s for s in ast.parse(text).body if isinstance(s, ast.FunctionDef) and s.name == _ADDS)
    return "\n".join(text.splitlines()[function.lineno - 1 : function.end_lineno])
