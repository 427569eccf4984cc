"""From a manifest to its jobs, each named by its content, so that nothing is done twice with the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from pathlib import Path

from patcher.config import ConfigError
from patcher.config import load as configuration
from patcher.files.discover import Exclude, discover
from patcher.files.source import SourceError, read_bytes
from patcher.fleet.manifest import Manifest, Model
from patcher.fleet.row import Job
from patcher.harness import trees
from patcher.harness.cases import Case, CaseError, find
from patcher.harness.packages import PackageError, locate
from patcher.patching.reuse import tool_digest
from patcher.rule import Rule


def jobs_of(
    manifest: Manifest, rules: Sequence[Rule], only: Sequence[str] = (), do: Sequence[str] = ()
) -> tuple[Job, ...]:
    """All jobs, in the order of the manifest: what is to be done, then cases, then modes.

    ``only``: models, by name or pattern. ``do``: these in place of what the manifest says. What cannot be done is a job
    that says why. Raises ``ConfigError`` for a word of ``only`` that fits no model.
    """
    for word in only:
        if not any(fnmatchcase(model.name, word) for model in manifest.models):
            raise ConfigError(f"no model of {manifest.file.name} is called {word!r}")
    wanted = [m for m in manifest.models if not only or any(fnmatchcase(m.name, word) for word in only)]
    tool = tool_digest(rules) or os.urandom(16).hex()  # rules that no file describes: nothing holds
    return tuple(job for model in wanted for job in _of_model(manifest, model, tool, do))


def interpreter(model: Model, folder: Path) -> str:
    """The Python that runs a model on this machine."""
    given = model.wish.python
    return str(folder / given) if given and os.sep in given else given or sys.executable


def _of_model(manifest: Manifest, model: Model, tool: str, do: Sequence[str]) -> Iterator[Job]:
    wish = replace(model.wish, do=tuple(do)) if do else model.wish
    model = replace(model, wish=replace(wish, python=interpreter(model, manifest.folder)))
    try:
        paths = model.paths or (str(locate(model.package, model.wish.python)),)
        missing = [path for path in paths if not os.path.lexists(path)]
        if missing:
            raise ConfigError(f"{missing[0]}: no such file or folder")
        model = replace(model, paths=paths)
        source = _digest_of_paths(model)
    except (ConfigError, PackageError) as error:
        yield from (Job(model, what, wrong=str(error)) for what in wish.do or ("scan",))
        return
    try:
        cases, wrong = _cases(manifest, model), ""
    except (CaseError, ConfigError) as error:
        cases, wrong = (), str(error)
    asked = wish.do or (("scan", "test") if cases or wrong else ("scan",))
    for what in asked:
        if what == "scan":
            yield _keyed(Job(model, what), tool, source)
        elif not cases:
            yield Job(model, what, wrong=wrong or "no case is given and none is configured")
        else:
            for case in cases:
                yield from (_keyed(Job(model, what, case, mode), tool, source) for mode in wish.mode)


def _cases(manifest: Manifest, model: Model) -> tuple[Case, ...]:
    """The cases of a model; () where there are none. Raises ``CaseError`` and ``ConfigError``."""
    config = configuration(model.paths[0] if model.root else str(manifest.folder))
    if model.cases is None and (not model.root or not config.cases):
        return ()
    words = []
    for word in model.cases or ():
        places = [Path(base, word) for base in (manifest.folder, model.root) if base]
        words.append(next((str(place) for place in places if place.exists()), word))
    return find(words, config.cases, config.root)


def _keyed(job: Job, tool: str, source: str) -> Job:
    """The job with its name: the tool, the source, the case with what lies beside it, and how it is done."""
    wish = {key: value for key, value in asdict(job.model.wish).items() if key not in ("do", "mode", "gpu")}
    asked: dict[str, object] = {"tool": tool, "source": source, "do": job.do, "mode": job.mode, "wish": wish}
    if job.do == "scan":
        asked["wish"] = job.model.wish.unsafe
    if job.case is not None:
        beside = trees.beside(Path(job.case.file))
        asked["case"] = {**asdict(job.case), "file": [(file.name, _digest(str(file))) for file in beside]}
    text = json.dumps(asked, sort_keys=True, default=str)
    return replace(job, key=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32])


def _digest_of_paths(model: Model) -> str:
    """Of all files that are looked at, by their places in the model, and of what configures us there."""
    config = configuration(model.paths[0])
    within = (model.root, *model.paths) if model.root else model.paths  # what is looked at may import the rest
    entries = discover(within, Exclude(config.exclude, str(config.root or os.curdir)))
    files = [entry.path for entry in entries if not entry.error]
    if config.root is not None:
        files.append(str(config.root / "pyproject.toml"))
    base = model.root or os.path.commonpath(model.paths)
    pairs = [(os.path.relpath(file, base), _digest(file)) for file in files]
    return hashlib.sha256(json.dumps(pairs).encode("utf-8", "surrogatepass")).hexdigest()


def _digest(file: str) -> str:
    try:
        return hashlib.sha256(read_bytes(file)).hexdigest()
    except SourceError:
        return ""
