"""Make PyTorch model source friendly to ``torch.compile``. The only place that knows both the engine and the rules."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from patcher import cli
from patcher.rule import Rule
from rules import load_rules


def main(rules: Sequence[Rule] | None = None) -> int:
    """Run the command line; returns its exit status."""
    return cli.main(load_rules() if rules is None else rules)


if __name__ == "__main__":
    sys.exit(main())
