"""Make PyTorch model source friendly to ``torch.compile``. The only place that knows both the engine and the rules."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

# `patcher` and `rules` lie beside this file in a checkout, and in `_fix_compile` beside it where it is installed. They
# are looked for there first: the environment, or the project that is patched, may have others of these names.
_HERE = Path(__file__).resolve().parent
_PRIVATE = _HERE / "_fix_compile"
sys.path.insert(0, str(_PRIVATE if _PRIVATE.is_dir() else _HERE))

from patcher import cli
from patcher.rule import Rule
from rules import load_rules


def main(rules: Sequence[Rule] | None = None) -> int:
    """Run the command line; returns its exit status."""
    return cli.main(load_rules() if rules is None else rules)


if __name__ == "__main__":
    sys.exit(main())
