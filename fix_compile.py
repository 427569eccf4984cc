"""Make PyTorch model source friendly to ``torch.compile``. The only place that knows both the engine and the rules."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

# `patcher` and `rules` lie beside this file in a checkout, and in `_fix_compile` beside it where it is installed. They
# are looked for there first: the environment, or the project that is patched, may have others of these names.
_HERE = Path(__file__).resolve().parent
_PRIVATE = _HERE / "_fix_compile"
sys.path.insert(0, str(_PRIVATE if _PRIVATE.is_dir() else _HERE))

if TYPE_CHECKING:
    from patcher.rule import Rule


def main(rules: Sequence[Rule] | None = None) -> int:
    """Run the command line; returns its exit status. Ctrl-C is a line at any moment, also while all this is loaded."""
    try:
        from patcher import cli
        from rules import load_rules

        return cli.main(load_rules() if rules is None else rules)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
