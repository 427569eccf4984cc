"""Beside outputs: whether gradients, state and errors stay what they were in a patched tree; run by ``wild_zoo.py``.

    PY wild_check.py FOLDER NAME...                       # FOLDER/NAME.check.json, and .check.pt: what eager code gives
    PY wild_check.py --like OTHER FOLDER NAME...          # the same, compared with OTHER/NAME.check.pt
    PY wild_check.py --set SETTINGS --like OTHER FOLDER NAME...     # compiled with settings, as for ``wild_run.py``

Each class makes its three calls in eager mode and compiled, with gradients on. **Gradients**: of all outputs that have
any, weighted and summed up, for floating inputs and parameters. **State**: parameters, buffers, and what else modules
hold under public names as tensors or numbers, after the calls. **Errors**: of three bad calls (another dtype, one more
element, one dimension less) in eager mode, whether they raise what they raised, or return what they returned.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.append(str(Path(__file__).resolve().parent))
import torch
from census import apart, forked, made, numbers, seed, warm_up
from wild_run import options_of, settings_of

from patcher.harness.running_case import module_attributes, tensors
from patcher.harness.worker import in_force

Json = dict[str, Any]
Tensors = list[torch.Tensor]


def stepped(name: str, options: Json | None) -> Json:
    """What three calls give, compiled with ``options`` or in eager mode: gradients by call, and state after them."""
    model, calls = made(name)
    runner = model if options is None else torch.compile(model, **options)
    weights = []
    if isinstance(model, torch.nn.Module):
        weights = [p for p in model.parameters() if p.is_floating_point() or p.is_complex()]
        for weight in weights:
            weight.requires_grad_()
    gradients: list[Any] = []
    for args, kwargs in calls:
        inputs, given = _asking((args, kwargs))
        seed()
        try:
            with torch.enable_grad():
                loss = _loss(runner(*given[0], **given[1]))
                wanted = [*inputs, *weights]
                found = () if loss is None else torch.autograd.grad(loss, wanted, allow_unused=True)
            gradients.append([torch.empty(0) if g is None else g.detach().clone() for g in found])
        except Exception as error:  # that is the result
            gradients.append(type(error).__name__)
    return {"gradients": gradients, "state": dict(_state(model))}


def _asking(call: Any) -> tuple[Tensors, Any]:
    """The call with floating tensors that have gradients, each a copy of one of the leaves that are told first."""
    inputs: Tensors = []

    def asking(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or not leaf.is_floating_point():
            return leaf
        inputs.append(leaf.detach().clone().requires_grad_())
        with torch.enable_grad():
            return inputs[-1].clone()  # no leaf: it may be written into

    return inputs, torch.utils._pytree.tree_map(asking, call)


def _loss(output: Any) -> torch.Tensor | None:
    """All that has gradients, weighted, so that what leaves a normalisation has other gradients than zero."""
    parts = [(t.abs() if t.is_complex() else t).double().flatten() for t in tensors(output) if t.requires_grad]
    return torch.stack([p @ torch.cos(torch.arange(len(p)).double()) for p in parts]).sum() if parts else None


def _state(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    if not isinstance(model, torch.nn.Module):
        return
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        yield name, tensor.detach().clone()
    for name, value in module_attributes(model).items():
        if not any(part.startswith("_") for part in name.split(".")):
            for number, tensor in enumerate(numbers(value)):
                yield f"{name}/{number}", tensor


def failing(name: str) -> Json:
    """What bad calls do in eager mode: the type of what they raise, or what they return."""
    found: Json = {}
    for title, spoil in SPOILS.items():
        model, calls = made(name)
        done = [False]

        def once(leaf: Any, spoil: Any = spoil, done: list[bool] = done) -> Any:
            if done[0] or not isinstance(leaf, torch.Tensor) or not leaf.numel() or not leaf.dim():
                return leaf
            done[0] = True
            return spoil(leaf)

        args, kwargs = torch.utils._pytree.tree_map(once, calls[0])
        seed()
        try:
            found[title] = numbers(model(*args, **kwargs))
        except Exception as error:  # that is the result
            found[title] = type(error).__name__
    return found


SPOILS: dict[str, Callable[[Any], Any]] = {
    "another dtype": lambda t: t.double() if t.is_floating_point() else t.float(),
    "one more element": lambda t: torch.cat([t, t[..., :1]], -1),
    "one dimension less": lambda t: t[0],
}


def one(name: str, folder: Path, like: Path | None, settings: Sequence[Json]) -> Json:
    """What differs, in words or as the largest relative difference; "" and 0.0 where nothing does."""
    eager, errors = stepped(name, None), failing(name)
    torch._dynamo.reset()
    with in_force(settings):
        compiled = stepped(name, options_of(settings))
    if like is None:
        torch.save({"eager": eager, "errors": errors}, folder / f"{name}.check.pt")
    before = {"eager": eager, "errors": errors} if like is None else torch.load(like / f"{name}.check.pt")
    return {
        "graded": sum(bool(g) and not isinstance(g, str) for g in before["eager"]["gradients"]),
        "gradients": _all_apart(before["eager"]["gradients"], eager["gradients"]),
        "state": _named_apart(before["eager"]["state"], eager["state"]),
        "errors": {title: _fate(before["errors"][title], told) for title, told in errors.items()},
        "compiled gradients": _all_apart(before["eager"]["gradients"], compiled["gradients"]),
        "compiled state": _named_apart(before["eager"]["state"], compiled["state"]),
    }


def _all_apart(old: list[Any], new: list[Any]) -> float | str:
    return max((_apart(a, b) for a, b in zip(old, new, strict=True)), key=_order, default=0.0)


def _named_apart(old: dict[str, torch.Tensor], new: dict[str, torch.Tensor]) -> float | str:
    names = [name for name in old if name in new]  # what the patched code adds is its own
    gone = [name for name in old if name not in new]
    return f"{gone[0]} is gone" if gone else _apart([old[n] for n in names], [new[n] for n in names])


def _apart(old: Any, new: Any) -> float | str:
    if isinstance(old, str) or isinstance(new, str):
        return 0.0 if old == new else f"{_short(old)} became {_short(new)}"
    return apart(old, new)


def _order(distance: float | str) -> float:
    return float("inf") if isinstance(distance, str) else distance


def _fate(old: Any, new: Any) -> str:
    """What a bad call came to; two words where it is not what it was."""
    if isinstance(old, str) and isinstance(new, str):
        return old if old == new else f"{old} became {new}"
    if _apart(old, new) == 0.0:
        return "returns"
    return f"{_short(old)} became {'another result' if _short(old) == _short(new) else _short(new)}"


def _short(result: Any) -> str:
    return result if isinstance(result, str) else "a result"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--like", type=Path)
    parser.add_argument("--set", default="[]")
    given = parser.parse_args()
    torch.set_num_threads(1)
    warm_up()
    settings = settings_of(given.set)
    for name in given.names:
        file = given.folder / f"{name}.check.json"
        forked(name, file, lambda name: one(name, given.folder, given.like, settings))
        print(name, flush=True)


if __name__ == "__main__":
    main()
