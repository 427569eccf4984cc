"""Where Dynamo breaks in what a package's own tests call, for ``forecast.py``; a plugin of pytest.

    PY forecast_tests.py FOLDER SOURCE PACKAGE...   # PY: of the environment in which the packages are installed

SOURCE is the unpacked source distribution: its tests, the doctests of the installed packages and the Python blocks of
its README run with every outermost call of a module compiled by the backend ``eager``, each from nothing; at most
``MOST`` calls of a class, no two with the same shapes. FOLDER/CLASS.json gets what ``forecast_run.py`` tells of a
class, of all these calls together. Whether tests pass is not asked: a call that raises has been traced up to there.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MOST = 6  # calls of a class
SECONDS = 60  # of one class, after which no more of its calls are compiled
LIMITS = {"tests": 150, "doctests": 60, "readme": 90}
_BLOCK = re.compile(r"```\s*(?:python|py)\s*\n(.*?)```", re.DOTALL)


def classes(folder: Path, packages: tuple[str, ...]) -> None:
    """Compile the outermost calls of this process's modules from now on."""
    sys.path.append(str(HERE))
    import forecast_run
    import torch

    sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() not in (HERE, HERE.parent)]  # names of ours
    folder.mkdir(parents=True, exist_ok=True)
    root = forecast_run.packages_folder()
    usual = torch.nn.Module.__call__
    told: dict[type, dict[str, Any]] = {}
    busy = False

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal busy
        kind = type(self)
        if (
            busy
            or not _is_own(kind, packages)
            or torch.compiler.is_compiling()
            or isinstance(self, torch.jit.ScriptModule)
        ):
            return usual(self, *args, **kwargs)
        kept = told.setdefault(
            kind, {"shapes": set(), "seconds": 0.0, "lines": {}, "listener": forecast_run.Inner(root)}
        )
        shape = _shape((args, kwargs, self.training, torch.is_grad_enabled()))
        if shape in kept["shapes"] or len(kept["shapes"]) >= MOST or kept["seconds"] > SECONDS:
            return usual(self, *args, **kwargs)
        kept["shapes"].add(shape)
        busy, began = True, time.monotonic()
        torch._dynamo.reset()
        torch._dynamo.utils.reset_graph_break_dup_checker()
        try:
            with forecast_run.listening(kept["listener"], False), forecast_run.tracing(kept["lines"]):
                return torch.compile(self._call_impl, backend="eager")(*args, **kwargs)
        except Exception as raised:
            kept.setdefault("failed", f"{type(raised).__name__}: {raised}"[:300])
            raise
        finally:
            busy = False
            kept["seconds"] += time.monotonic() - began
            _write(folder, root, kind, kept, forecast_run)

    torch.nn.Module.__call__ = call  # type: ignore[method-assign]


def _is_own(kind: type, packages: tuple[str, ...]) -> bool:
    return kind.__module__.partition(".")[0] in packages


def _shape(value: Any, depth: int = 0) -> Any:
    """What two calls have in common when nothing new is to be expected of the second."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return str(tuple(value.shape)), str(value.dtype)
    if isinstance(value, (tuple, list)) and depth < 4:
        return type(value).__name__, tuple(_shape(item, depth + 1) for item in value)
    if isinstance(value, dict) and depth < 4:
        return tuple((str(key), _shape(item, depth + 1)) for key, item in value.items())
    return repr(value)[:40] if isinstance(value, (bool, int, float, str, type(None))) else type(value).__name__


def _write(folder: Path, root: str, kind: type, kept: dict[str, Any], forecast_run: Any) -> None:
    name = f"{kind.__module__.partition('.')[0]}.{kind.__module__.rpartition('.')[2]}.{kind.__qualname__}"
    file = folder / (re.sub(r"[^\w.]", "_", name) + ".json")
    traced = {path.removeprefix(root): sorted(at) for path, at in kept["lines"].items() if path.startswith(root)}
    new = {
        "root": root,
        "imported": forecast_run.imported(root),
        "traced": {path: at for path, at in traced.items() if not forecast_run._is_not_asked(path)},
        "failed": kept.get("failed", ""),
        "beneath": [{"where": w, "reason": r} for w, r in sorted(kept["listener"].beneath)],
        **forecast_run.described(kept["listener"]),
    }
    old = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    file.write_text(json.dumps(_joined(old, new, kept), indent=1, default=str), encoding="utf-8")


def _joined(old: dict[str, Any], new: dict[str, Any], kept: dict[str, Any]) -> dict[str, Any]:
    """With what another process has told of the class before."""
    before = kept.setdefault("before", old)
    if not before:
        return new
    lines = {path: set(at) for path, at in before["traced"].items()}
    for path, at in new["traced"].items():
        lines.setdefault(path, set()).update(at)
    new["traced"] = {path: sorted(at) for path, at in lines.items()}
    new["imported"] = sorted({*before["imported"], *new["imported"]})
    for key in ("breaks", "beneath", "recompiles", "limit_hits", "dropped_frames"):
        new[key] = [*before.get(key, ()), *new.get(key, ())]
    new["failed"] = before["failed"] or new["failed"]
    return new


def pytest_configure(config: Any) -> None:
    """As a plugin: what to record is in the environment."""
    classes(Path(os.environ["FORECAST_FOLDER"]), tuple(os.environ["FORECAST_PACKAGES"].split(",")))


def blocks(readme: Path) -> list[str]:
    return [found[1] for found in _BLOCK.finditer(readme.read_text(encoding="utf-8", errors="replace"))]


def read(readme: Path) -> None:
    """Run the blocks of a README, each with the names of those before it."""
    classes(Path(os.environ["FORECAST_FOLDER"]), tuple(os.environ["FORECAST_PACKAGES"].split(",")))
    names: dict[str, Any] = {"__name__": "readme"}
    for block in blocks(readme):
        try:
            exec(compile(block.replace(".cuda()", ""), str(readme), "exec"), names)
        except Exception as error:
            print(f"{type(error).__name__}: {error}"[:200])


def main() -> None:
    if sys.argv[1] == "--readme":
        return read(Path(sys.argv[2]))
    folder, source, packages = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3:]
    more = {"FORECAST_FOLDER": str(folder), "FORECAST_PACKAGES": ",".join(packages), "PYTHONPATH": str(HERE)}
    more |= {
        "OMP_NUM_THREADS": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "MPLBACKEND": "agg",
        "HF_HUB_OFFLINE": "1",
        "WANDB_MODE": "disabled",
    }
    pytest = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "pytest",
        "-q",
        "--continue-on-collection-errors",
        "-p",
        "forecast_tests",
    ]
    pytest += ["-p", "no:cacheprovider", "--no-header", "--tb=no", "-o", "addopts=", "--import-mode=importlib"]
    places = sorted(
        {path.parent for path in source.rglob("test_*.py")} | {path.parent for path in source.rglob("*_test.py")}
    )
    calls = {
        "tests": [*pytest, *map(str, places)] if places else [],
        "doctests": [*pytest, "--doctest-modules", "--doctest-continue-on-failure", "--pyargs", *packages],
        "readme": [],
    }
    for readme in sorted(source.glob("README*"))[:1]:
        calls["readme"] = [sys.executable, "-W", "ignore", __file__, "--readme", str(readme)]
    for what, command in calls.items():
        if command:
            _timed(what, command, source, more)
    print(f"{', '.join(packages)}: {len(list(folder.glob('*.json')))} classes so far", flush=True)


def _timed(what: str, command: list[str], source: Path, more: dict[str, str]) -> None:
    began = time.monotonic()
    log = source / f"forecast-{what}.log"
    with log.open("w", encoding="utf-8") as out:
        try:
            subprocess.run(
                command, cwd=source, env={**os.environ, **more}, stdout=out, stderr=out, timeout=LIMITS[what]
            )
        except subprocess.TimeoutExpired:
            out.write("\nout of time\n")
    last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:] or [""]
    print(f"  {what}: {time.monotonic() - began:.0f} s, {last[0][:120]}", flush=True)


if __name__ == "__main__":
    main()
