"""What this torch can be told about compiling: modes, backends, arguments, options, settings; by asking it.

    python docs/tables/knobs.py --into patcher/facts/tables/knobs.json    # beside other versions of torch

Standard library and torch, nothing of ours.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch._dynamo.config
import torch._functorch.config
import torch._inductor
import torch._inductor.config

#: The modules with settings, by the names that code has for them.
CONFIGS = {
    "torch._dynamo.config": torch._dynamo.config,
    "torch._functorch.config": torch._functorch.config,
    "torch._inductor.config": torch._inductor.config,
}


def knobs() -> dict[str, Any]:
    """``modes``, ``backends``, ``arguments``, ``options`` of torch.compile; ``settings``, and ``aliases`` of these."""
    entries = {name: dict(config._config) for name, config in CONFIGS.items()}
    aliases = {f"{n}.{k}": e.alias for n, config in entries.items() for k, e in config.items() if e.alias}
    return {
        "modes": sorted(torch._inductor.list_mode_options()),
        "backends": sorted(torch._dynamo.list_backends(exclude_tags=())),
        "arguments": sorted(set(inspect.signature(torch.compile).parameters) - {"model"}),
        "options": sorted(torch._inductor.list_options()),
        "settings": {n: sorted({*config, *_plain(CONFIGS[n])}) for n, config in entries.items()},
        "aliases": dict(sorted(aliases.items())),
    }


def _plain(config: Any) -> set[str]:
    """Names of a module of settings that are none, and may be set all the same."""
    return {name for name in dir(config) if not name.startswith("__")}


def document(found: Mapping[str, Any], version: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """``known`` with what was found for this version of torch (2.13)."""
    return dict(sorted({**known, ".".join(version.split(".")[:2]): dict(found)}.items()))


def written(table: Mapping[str, Any]) -> str:
    """The text of the file."""
    return json.dumps(table, indent=1) + "\n"


def main() -> None:
    """Put what this torch has into a table."""
    into = Path(sys.argv[sys.argv.index("--into") + 1])
    known = json.loads(into.read_text(encoding="utf-8")) if into.exists() else {}
    into.write_text(written(document(knobs(), torch.__version__, known)), encoding="utf-8")


if __name__ == "__main__":
    main()
