"""Count what Dynamo makes of cases: one JSON line for each, on standard output.

    PYTHONPATH=PATCHED python tests/gains/count.py NAME [NAME ...]
    python tests/gains/count.py --list
    python tests/gains/count.py --cases benchmarks/transformers_unlisted.py

Without a name all cases are counted. Packages are imported from PYTHONPATH first. ``--cases`` names another file that
holds ``CASES``; ``--calls 1`` compiles the first call alone, in less than half of the time; 0 none. Each case runs in a
fork with one thread: all calls eagerly, then compiled with the backend "eager" and default settings. The eager calls
come first, since some models install hooks on their first call.

| key | |
|---|---|
| ``graphs``, ``breaks`` | graphs handed to the backend, and Dynamo's log records of breaks, in the first call |
| ``recompiles`` | in the second and third call; 0 with less than three calls |
| ``launches`` | graphs launched in the last compiled call |
| ``digest`` | a hash of all outputs of the eager calls: types, shapes and bytes |
| ``differs`` | whether compiled outputs differ from the eager ones of the same tree by more than 1e-4, relative |
| ``sites`` | the places of the breaks, with Dynamo's reason |
| ``where`` | the files of the case's package that were imported |
| ``seconds`` | CPU seconds of the case, imports included |
| ``failure`` | instead of all but the name: why there are no figures |
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib
import json
import os
import resource
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT))  # last: a patched package comes first

import torch  # noqa: E402
import torch._dynamo  # noqa: E402

from patcher.harness import leaves  # noqa: E402
from patcher.harness.listener import Listener, listening  # noqa: E402
from patcher.harness.running_case import seed  # noqa: E402

TOLERANCE = 1e-4

Json = dict[str, Any]


def count(case: Any, compiled_calls: int = 3) -> Json:
    """Run one case, with so many of its calls compiled."""
    package = importlib.import_module(case.package)
    folders = [f"{Path(folder).absolute()}/" for folder in package.__path__]

    def shown(place: str) -> str:
        kept = next((folder for folder in folders if place.startswith(folder)), "")
        return place.removeprefix(kept)

    with torch.no_grad():
        model, calls = case.build()
        eager = [_called(model, call) for call in calls]
        listener = Listener(shown)
        listener.count_graphs()
        model.get_submodule(case.compiled).compile(backend="eager")
        with listening(listener, verbose=False):
            counts, compiled = [listener.counts()] * (not compiled_calls), []
            for call in calls[:compiled_calls]:
                compiled.append(_called(model, call))
                counts.append(listener.counts())
    files = (getattr(module, "__file__", None) or "" for module in list(sys.modules.values()))
    return {
        "name": case.name,
        "graphs": counts[0]["graphs"],
        "breaks": counts[0]["breaks"],
        "recompiles": counts[-1]["recompiles"] - counts[0]["recompiles"],
        "launches": counts[-1]["launches"] - (counts[-2]["launches"] if len(counts) > 1 else 0),
        "digest": leaves.digest_all(leaf for output in eager for leaf in output),
        "differs": any(_differ(ours, theirs) for ours, theirs in zip(compiled, eager, strict=False)),
        "sites": sorted({f"{where}: {reason}" for where, reason in listener.breaks}),
        "where": sorted({shown(file) for file in files if shown(file) != file}),
    }


def _called(model: Any, call: Any) -> list[tuple[str, Any]]:
    """All leaves of what a call returns; it gets copies, since some models write into their arguments."""
    arguments, options = copy.deepcopy(call)
    seed()
    return leaves.snapshot(leaves.leaves(model(*arguments, **options), "output"))


def _differ(ours: list[tuple[str, Any]], theirs: list[tuple[str, Any]]) -> bool:
    """Whether two outputs have other leaves, or numbers that are apart relative to the largest of their tensor."""
    if [name for name, _ in ours] != [name for name, _ in theirs]:
        return True
    for (_, a), (_, b) in zip(ours, theirs, strict=True):
        if not (torch.is_tensor(a) and torch.is_tensor(b)):
            if type(a) is not type(b) or a != b:
                return True
        elif a.shape != b.shape or a.dtype != b.dtype:
            return True
        elif not a.dtype.is_floating_point:
            if not torch.equal(a, b):
                return True
        elif a.numel():
            most = float(b.double().nan_to_num(0.0, 0.0, 0.0).abs().max())
            if not torch.allclose(a.double(), b.double(), rtol=0.0, atol=TOLERANCE * most, equal_nan=True):
                return True
    return False


def forked(case: Any, compiled_calls: int) -> Json:
    """Count in a fork: no compiled code and no patched module is left for the next case."""
    with tempfile.TemporaryFile("w+") as answer:
        child = os.fork()
        if not child:
            try:
                with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):  # noqa: PTH123
                    told = count(case, compiled_calls)
            except BaseException as error:
                if not isinstance(error, Exception):
                    told = {"name": case.name, "failure": type(error).__name__}
                else:
                    traceback.print_exc()
                    told = {"name": case.name, "failure": f"{type(error).__name__}: {error}"[:500]}
            used = resource.getrusage(resource.RUSAGE_SELF)
            json.dump({**told, "seconds": round(used.ru_utime + used.ru_stime, 1)}, answer)
            answer.flush()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        answer.seek(0)
        text = answer.read()
    return json.loads(text) if text else {"name": case.name, "failure": f"wait status {status}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--cases", type=Path, default=Path(__file__).with_name("cases.py"))
    parser.add_argument("--list", action="store_true", help="print the names and packages")
    parser.add_argument("--calls", type=int, default=3, help="so many calls are compiled")
    options = parser.parse_args()
    sys.path.append(str(options.cases.resolve().parent))
    cases = {case.name: case for case in importlib.import_module(options.cases.stem).CASES}
    if unknown := [name for name in options.names if name not in cases]:
        parser.error(f"no such case: {', '.join(unknown)}")
    chosen = [cases[name] for name in options.names or cases]
    if options.list:
        for case in chosen:
            sys.stdout.write(f"{case.name} {case.package}\n")
        return
    torch.set_num_threads(1)
    os.environ["HF_HUB_OFFLINE"] = "1"
    once = torch.nn.Linear(2, 2)
    once.compile(backend="eager")  # what Dynamo imports on its first call is imported once for all
    once(torch.ones(1, 2))
    torch._dynamo.reset()
    if any(case.package == "transformers" for case in chosen):
        importlib.import_module("transformers.modeling_utils")
    for case in chosen:
        sys.stdout.write(json.dumps(forked(case, options.calls)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
