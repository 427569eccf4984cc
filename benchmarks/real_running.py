"""What the programs that run scripts of others have in common. For ``real_scripts.py``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch


class Recorded:
    """Losses that gradients are asked of; every call of torch.compile gets ``backend``, where it names none."""

    def __init__(self, backend: str) -> None:
        self.losses: list[str] = []
        back, compiling = torch.Tensor.backward, torch.compile

        def backward(tensor: torch.Tensor, *args: Any, **more: Any) -> None:
            self.losses.append(float(tensor.detach()).hex())
            back(tensor, *args, **more)

        def compiled(*args: Any, **more: Any) -> Any:
            if backend == "eager":
                more.pop("mode", None)
                more["backend"] = backend
            return compiling(*args, **more)

        torch.Tensor.backward = backward  # type: ignore[method-assign]
        torch.compile = compiled  # type: ignore[assignment]

    def write(self, told: str, outputs: Sequence[torch.Tensor], keys: Sequence[str], loads: str) -> None:
        """Write it down, with what a loaded model gives, the names in the checkpoint, and whether they load."""
        from torch._dynamo.utils import counters

        flat = torch.cat([out.detach().double().flatten() for out in outputs])
        said = {
            "losses": self.losses,
            "graphs": counters["stats"]["unique_graphs"],
            "breaks": sum(counters["graph_break"].values()),
            "keys": len(keys),
            "prefixed": sum("_orig_mod" in key for key in keys),
            "loads": loads,
            "outputs": [float(value).hex() for value in flat],
        }
        Path(f"{told}.json").write_text(json.dumps(said))


def loads(model: torch.nn.Module, state: dict[str, Any]) -> str:
    """Load ``state`` strictly; without the names of torch.compile where that fails."""
    try:
        model.load_state_dict(state)
    except RuntimeError:
        model.load_state_dict({key.replace("_orig_mod.", ""): value for key, value in state.items()})
        return "no"
    return "yes"
