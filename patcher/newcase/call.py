"""What the calls ``case`` and no word at all do: a first case file, and what there is to see in a project."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from patcher.config import Config, ConfigError, load, nearest
from patcher.diagnose.sites import compile_sites
from patcher.files.backup import project_root
from patcher.files.discover import Exclude
from patcher.files.source import SourceError, read, shown
from patcher.harness import plan
from patcher.harness.cases import Case, CaseError, as_case, find
from patcher.harness.measured import ResultsError, from_json
from patcher.harness.processes import RunError
from patcher.harness.run import run
from patcher.measuring.measure import need_torch
from patcher.newcase.text import Written, file_for, written
from patcher.newcase.tree import Seen, Tree
from patcher.newcase.values import building, inputs
from patcher.patching.calls import FAILURE, OK, Told
from patcher.run.program import no_notebook
from patcher.words import many

_SECONDS = 120.0  # a published size on a CPU may take longer; a first case is to be small


def trial(file: Path, model: str, python: str) -> str:
    """What one run of the case says: ``it runs: ...``, or why it does not, in one line. ``model``: where imports start.

    Nothing is compiled.
    """
    options = plan.Options(paths=(model,), quick=True, alone=True, eager_untimed=True, seconds=_SECONDS)
    try:
        need_torch(python)
        with tempfile.TemporaryDirectory(prefix="fix-compile-") as folder:
            results = from_json(run(plan.write(Path(folder), (), [Case(file.stem, str(file))], options), python))
    except (RunError, ResultsError, OSError) as error:
        return f"not run: {error}"
    original = results.cases[0].variant("original", "eager")
    if original.status == "timeout":
        return f"it did not finish in {_SECONDS:.0f} s; use smaller sizes"
    if original.figures is None:
        return f"it does not run: {original.message or original.status}"
    kind = "training" if results.cases[0].train else "inference"
    calls = len(original.figures.settled)
    return f"it runs ({kind}, {calls} call{'s' * (calls != 1)}, {original.figures.cold_seconds:.2g} s eager)"


_LISTED = 5  # of each kind


@dataclass(frozen=True)
class Asked:
    """``model``: ``path/to/model.py:Class``. ``output``: None: where cases go; "-": stdout. ``force``: overwrite.

    ``python``: what runs a case without blanks once; "": it is not run.
    """

    model: str
    output: str | None
    force: bool
    program: str
    python: str = ""


def case(asked: Asked) -> Told:
    """Write a first case. Exit status: 0, also with blanks; 2 when there is no such model or the file is there."""
    path, _, name = asked.model.rpartition(":") if ":" in asked.model else (asked.model, "", "")
    tree, model = _tree(path), None
    if not (why := no_notebook(path)):
        model, why = _chosen(tree, Path(path).absolute(), name)
        why = f"{path}: error: {why}"
    if model is None:
        return Told(FAILURE, err=(why,))
    made = building(tree, model)
    given = inputs(tree, model, made)
    result, once = (written(tree, model, made, given, twice) for twice in (bool(asked.python), False))
    if asked.output == "-" or result.blanks:  # nobody runs the second call
        result = once
    if asked.output == "-":
        return Told(OK, result.text, tuple(_told(result, "-", asked, path)))
    target = Path(asked.output) if asked.output else file_for(model, tree.root)
    if target.exists() and not asked.force:
        return Told(FAILURE, err=(f"{target}: error: is there already; -o names another file, --force overwrites it",))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(result.text, encoding="utf-8")
    except OSError as error:
        return Told(FAILURE, err=(f"{target}: error: {error.strerror}",))
    lines = _told(result, str(target), asked, path)
    if asked.python and not result.blanks:
        ran = trial(target.absolute(), path, asked.python)
        if not ran.startswith("it runs") and result != once:  # it is made for that batch alone
            target.write_text(once.text, encoding="utf-8")
            ran = trial(target.absolute(), path, asked.python)
        lines.insert(-1, f"{target}: {ran}")
    return Told(OK, f"{target}\n", tuple(lines))


def _chosen(tree: Tree, file: Path, name: str) -> tuple[Seen | None, str]:
    """The class of that name in a file, without a name the only one that no other builds; or why there is none."""
    if not file.is_file() or file.suffix != ".py":
        return None, "there is no such .py file; write it as path/to/model.py:Class"
    found = [seen for seen in tree.classes(file) if tree.method(seen, "forward")]
    if not found:
        return None, "no class in it has a forward"
    chosen = [seen for seen in found if seen.name == name] if name else [s for s in tree.outer() if s.path == file]
    if len(chosen) == 1:
        return chosen[0], ""
    if name:
        return None, f"no class {name!r} with a forward{nearest(name, [seen.name for seen in found])}"
    return None, f"which class? {', '.join(s.name for s in chosen or found)}: write it as path/to/model.py:Class"


def kept(model: str) -> Path | None:
    """The case of ``FILE:CLASS`` that stands where ``case`` writes it; None where there is none."""
    path, _, name = model.rpartition(":")
    tree = _tree(path)
    files = [file_for(seen, tree.root) for seen in tree.classes(Path(path).absolute()) if seen.name == name]
    return next((file for file in files if as_case(file) is not None), None)


def overview(program: str) -> Told:
    """What there is in the project of the working folder, and the next three commands. Nothing is written."""
    root = Path(project_root(os.curdir))
    tree = _tree(os.curdir)
    config = load(os.curdir)
    if not tree.files:
        return Told(FAILURE, err=("there is no Python file here; go to a model's repository, or see --help",))
    models, sites, cases = tree.outer(), _sites(tree), _cases(config, tree)
    lines = [f"{shown(root)}: {many(len(tree.files), 'Python file')}", ""]
    lines += _list(f"{many(len(tree.models), 'model')} (classes with a forward)", [_model(m) for m in models])
    lines += _list(many(len(sites), "place") + " that compile or set how", sites)
    lines += _list(many(len(cases), "case"), [f"{case.name}: {shown(case.file)}" for case in cases])
    lines += [_torch(), "", "Next:"]
    return Told(OK, "".join(f"{line}\n" for line in (*lines, *_next(program, tree, models, sites, cases))))


def _next(program: str, tree: Tree, models: Sequence[Seen], sites: Sequence[str], cases: Sequence[Case]) -> list[str]:
    commands = [(f"{program} check", "what is to fix, from the source alone")]
    if cases:
        file = shlex.quote(shown(cases[0].file))
        commands += [(f"{program} optimize --case {file} .", "make it faster, or hear that compiling does not pay")]
        commands += [(f"{program} diagnose --case {file} .", "what costs, where, and the fix")]
    elif models:
        run = shlex.quote(sites[0].partition(":")[0]) if sites else "PROGRAM.py"
        commands += [(f"{program} optimize -- python {run}", "make your program faster, measured against eager")]
        model = shlex.quote(_model(models[0]))
        commands += [(f"{program} case {model}", "without a program: how the model is built and called")]
    else:
        commands += [(f"{program} diff", "the changes; writes nothing"), (f"{program} --help", "all that there is")]
    width = max(len(command) for command, _ in commands)
    return [f"  {command:<{width}}   # {meaning}" for command, meaning in commands]


def _tree(path: str) -> Tree:
    config = load(path)
    return Tree(Path(project_root(path)).absolute(), Exclude(config.exclude, str(config.root or os.curdir)))


def _sites(tree: Tree) -> list[str]:
    texts = []
    for file in tree.naming("compile", "dynamo", "inductor"):
        try:
            texts.append((shown(file), read(str(file)).text))
        except SourceError:
            continue
    return [f"{site.where}: {site.call}" for site in compile_sites(texts)]


def _cases(config: Config, tree: Tree) -> tuple[Case, ...]:
    """Those that are configured, and the files that hold both functions of one."""
    found: list[Case] = []
    with contextlib.suppress(CaseError, ConfigError):
        found += find((), config.cases, config.root) if config.cases else ()
    found += [known for file in tree.naming("def calls(", "RECORDED = ") if (known := as_case(file)) is not None]
    return tuple({case.file: case for case in found}.values())


def _model(seen: Seen) -> str:
    return f"{shown(seen.path)}:{seen.name}"


def _list(title: str, items: Sequence[str]) -> list[str]:
    more = [f"  ... and {len(items) - _LISTED} more"] if len(items) > _LISTED else []
    return [title, *(f"  {item[:110]}" for item in items[:_LISTED]), *more]


def _torch() -> str:
    try:
        return f"torch {importlib.metadata.version('torch')} is installed beside fix-compile"
    except importlib.metadata.PackageNotFoundError:
        return "no torch beside fix-compile: --python names the Python that has it"


def _told(result: Written, target: str, asked: Asked, path: str) -> list[str]:
    lines = list(result.sources)
    lines += [f"{target}:{line}: fill in: {why}" for line, why in result.blanks]
    case_file, given = shlex.quote(target), shlex.quote(path)
    if target != "-":
        then = "then" if result.blanks else "next"
        lines.append(f"{then}: {asked.program} optimize --case {case_file} {given}")
    return lines
