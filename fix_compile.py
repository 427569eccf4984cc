"""Make PyTorch model source friendly to ``torch.compile``. The only place that knows both the engine and the rules.

It is also the door for rules of other packages: ``from fix_compile import Rule, Facts, Finding``; what stands in
``__all__`` stays (docs/own-rules.md).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

# `patcher` and `rules` lie beside this file in a checkout, and in `_fix_compile` beside it where it is installed. They
# are looked for there first: the environment, or the project that is patched, may have others of these names.
_HERE = Path(__file__).resolve().parent
_PRIVATE = _HERE / "_fix_compile"
sys.path.insert(0, str(_PRIVATE if _PRIVATE.is_dir() else _HERE))

if TYPE_CHECKING:
    from patcher.facts import Facts
    from patcher.facts.effects.totality import Effects
    from patcher.facts.effects.unchanged import Unchanged
    from patcher.facts.values.certainty import Certainty, Grade
    from patcher.own_rules.examined import examined
    from patcher.rule import (
        Applicability,
        Code,
        Cost,
        Decorate,
        Enclose,
        Example,
        Finding,
        Fix,
        Insert,
        NearMiss,
        Replace,
        ReplaceStatements,
        Rule,
        Where,
        block,
    )

#: Where what is promised to rules of other packages is really defined.
_DOOR = {
    "patcher.rule": (
        "Applicability", "Code", "Cost", "Decorate", "Enclose", "Example", "Finding", "Fix", "Insert", "NearMiss",
        "Replace", "ReplaceStatements", "Rule", "Where", "block",
    ),
    "patcher.facts": ("Facts",),
    "patcher.facts.values.certainty": ("Certainty", "Grade"),
    "patcher.facts.effects.unchanged": ("Unchanged",),
    "patcher.facts.effects.totality": ("Effects",),
    "patcher.own_rules.examined": ("examined",),
}  # fmt: skip

__all__ = [
    "Applicability",
    "Certainty",
    "Code",
    "Cost",
    "Decorate",
    "Effects",
    "Enclose",
    "Example",
    "Facts",
    "Finding",
    "Fix",
    "Grade",
    "Insert",
    "NearMiss",
    "Replace",
    "ReplaceStatements",
    "Rule",
    "Unchanged",
    "Where",
    "block",
    "examined",
    "main",
]


def __getattr__(name: str) -> Any:
    """What other packages import from here, loaded when it is asked for."""
    from importlib import import_module

    for module, names in _DOOR.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main(rules: Sequence[Rule] | None = None) -> int:
    """Run the command line; returns its exit status. Ctrl-C is a line at any moment, also while all this is loaded."""
    try:
        from patcher import cli
        from patcher.own_rules.found import own_rules
        from rules import load_rules

        if rules is not None:
            return cli.main(rules)
        ours = load_rules()
        own = own_rules(ours)
        return cli.main((*ours, *own.rules), own=own)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
