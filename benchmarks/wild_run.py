"""Count what classes cost as they are, or as a patched tree has them; run by ``wild_zoo.py``.

    PY wild_run.py FOLDER NAME...                     # FOLDER/NAME.json, and FOLDER/NAME.pt: what eager code gives
    PY wild_run.py --like OTHER FOLDER NAME...        # the same, with outputs compared with those of OTHER
    PY wild_run.py --set SETTINGS --like OTHER FOLDER NAME...  # with settings of PyTorch, in JSON
    PY wild_run.py --set SETTINGS --each FURTHER --like OTHER FOLDER NAME...  # the same, and each of these on top

A class is counted as in ``census.py``: in a forked process of its own, with three calls. The tree that is imported is
the first of ``PYTHONPATH``. A setting is what `patcher.settings.TorchSetting` holds: kind, name and value.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.append(str(Path(__file__).resolve().parent))
import torch
import zoo_fourth
import zoo_third
import zoo_wild2
from census import compiled, forked, made, numbers, seed, warm_up

from patcher.harness.worker import in_force

Json = dict[str, Any]


def settings_of(text: str) -> list[Json]:
    """Of lists of kind, name and value."""
    return [dict(zip(("kind", "name", "value"), told, strict=True)) for told in json.loads(text)]


def options_of(settings: Sequence[Json]) -> Json:
    """What ``torch.compile`` is given."""
    return {"backend": "eager", **{s["name"]: s["value"] for s in settings if s["kind"] == "argument"}}


def counts(name: str, settings: Sequence[Json], eager: list[list[Any]]) -> Json:
    with in_force(settings):
        return compiled(name, (), eager, options_of(settings))


def one(name: str, folder: Path, like: Path | None, settings: Sequence[Json], further: Sequence[Json]) -> Json:
    """``eager``: whether eager outputs are those of ``like``; ``files``: what was imported of the class's packages."""
    model, calls = made(name)
    eager: list[list[Any]] = []
    for args, kwargs in calls:
        seed()
        eager.append(numbers(model(*args, **kwargs)))
    same: list[bool] = []
    if like is None:
        torch.save(eager, folder / f"{name}.pt")
    else:
        before = torch.load(like / f"{name}.pt")
        same = [_equal(old, new) for old, new in zip(before, eager, strict=True)]
        eager = before
    counted = counts(name, settings, eager)
    more = [{"setting": setting, "counted": counts(name, [*settings, setting], eager)} for setting in further]
    return {"eager": same, "counted": counted, "further": more, "files": sorted(_files(name))}


def _equal(old: list[Any], new: list[Any]) -> bool:
    """Bit for bit, in order; what is not a number is equal to itself."""
    return len(old) == len(new) and all(
        a.shape == b.shape and a.dtype == b.dtype and torch.equal(a.nan_to_num(), b.nan_to_num())
        for a, b in zip(old, new, strict=True)
    )


def _files(name: str) -> set[str]:
    found = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    tops = {
        package.partition(".")[0]
        for package in (zoo_wild2.CLASSES | zoo_third.CLASSES | zoo_fourth.CLASSES)[name].packages
    }
    paths = {file.rpartition("site-packages/")[2] for file in found if file and "site-packages/" in file}
    return {path for path in paths if path.partition("/")[0] in tops and path.endswith(".py")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--like", type=Path)
    parser.add_argument("--set", default="[]")
    parser.add_argument("--each", default="[]")
    given = parser.parse_args()
    torch.set_num_threads(1)
    warm_up()
    settings, further = settings_of(given.set), settings_of(given.each)
    for name in given.names:
        file = given.folder / f"{name}.json"
        forked(name, file, lambda name: one(name, given.folder, given.like, settings, further))
        print(name, flush=True)


if __name__ == "__main__":
    main()
