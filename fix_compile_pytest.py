"""The pytest plugin of fix-compile: tests and cases that are held to a budget of graph breaks, recompiles and graphs.

It is loaded in each run of pytest where fix-compile is installed, so it imports little, and torch only when a test asks
for the fixture. Nothing of the tool's own names gets into the tests' process.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

_HERE = Path(__file__).resolve().parent
_ENGINE = (_HERE / "_fix_compile" if (_HERE / "_fix_compile").is_dir() else _HERE) / "patcher"
_EVENTS = {"breaks": "reason", "recompiles": "guard", "dropped_frames": "reason", "limit_hits": "guard"}
_HOW = "pytest --update-compile-budget records it"


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--compile-budget`` and ``--update-compile-budget``."""
    group = parser.getgroup("fix-compile")
    group.addoption(
        "--compile-budget",
        action="store_true",
        help="Also run the cases in fix-compile.lock, each in processes of its own, and hold them to their budgets.",
    )
    group.addoption(
        "--update-compile-budget",
        action="store_true",
        help="Record what tests (and with --compile-budget cases) cost now in fix-compile.lock, instead of failing.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """One process writes the lock."""
    if config.getoption("--update-compile-budget") and config.getoption("numprocesses", None):
        raise pytest.UsageError("--update-compile-budget writes one file: leave out -n")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add an item for each case that has a budget."""
    if not config.getoption("--compile-budget"):
        return
    lock = _part("measuring.lock")
    file = config.rootpath / lock.FILE
    try:
        cases = lock.read(file).cases
    except lock.LockError as error:
        raise pytest.UsageError(str(error)) from None
    if not file.exists():
        raise pytest.UsageError(f"there is no {file}: fix-compile check --case CASE --lock PATH records a budget")
    for name, budget in cases.items():
        items.append(Case.from_parent(session, name=f"{lock.FILE}::{name}", case=name, budget=budget))


class OverBudgetError(Exception):
    """What a case or a test costs too much, a line for each figure and place."""


class Case(pytest.Item):
    """A case of the harness with a budget. The tool runs it."""

    def __init__(self, *, case: str, budget: Any, **more: Any) -> None:
        super().__init__(**more)
        self._case, self._budget = case, budget
        self.funcargs: dict[str, Any] = {}  # plugins take each item for a function (pytest-lsp fails without)

    def runtest(self) -> None:
        """Raise ``OverBudgetError``."""
        command = [sys.executable, "-m", "fix_compile", "check", "--format", "json", "--quiet"]
        command += ["--case", self._budget.case]
        if self._case.endswith("]"):  # the same case with other sizes
            command += ["--vary", self._case.rpartition("[")[2].rstrip("]")]
        update = self.config.getoption("--update-compile-budget")
        command += ["--lock"] if update else []
        done = subprocess.run(
            [*command, *self._budget.paths], cwd=self.config.rootpath, capture_output=True, text=True, check=False
        )
        if done.returncode not in (0, 1):
            raise OverBudgetError(done.stderr.strip() or done.stdout.strip() or f"ended with status {done.returncode}")
        found = [one for one in json.loads(done.stdout).get("overruns", ()) if one["case"] == self._case]
        lines = []
        for one in found:
            lines.append(f"{self._case}: {one['what']}")
            lines += [f"  {at['place'] or 'somewhere'}: {at['reason']}" for at in one["places"]]
        if lines:
            raise OverBudgetError("\n".join(lines))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The lines alone."""
        return (
            str(excinfo.value) if isinstance(excinfo.value, OverBudgetError) else super().repr_failure(excinfo, style)
        )

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where it is told of."""
        return self.config.rootpath / _part("measuring.lock").FILE, 0, f"budget of {self._case}"


@pytest.fixture
def compile_budget(request: pytest.FixtureRequest) -> Iterator[Callable[..., None]]:
    """``compile_budget(model, calls, train=False)``: compile the model, make the calls, hold them to the test's budget.

    ``calls``: tuples of arguments, dicts of those with names, ``(arguments, names)``, or functions of the model. The
    budgets are those of fix-compile.lock in pytest's root folder, by the test's id.
    """
    begun = 0

    def hold(model: Any, calls: Any, train: bool = False) -> None:
        nonlocal begun
        begun += 1
        name = request.node.nodeid + (f" ({begun})" if begun > 1 else "")
        _hold(request.config, name, model, list(calls), train)

    yield hold


def _hold(config: pytest.Config, name: str, model: Any, calls: list[Any], train: bool) -> None:
    __tracebackhide__ = True
    lock, file = _part("measuring.lock"), config.rootpath / _part("measuring.lock").FILE
    try:
        known = lock.read(file)
        now = _budget(lock, _counted(model, calls, str(config.rootpath), train))
        if config.getoption("--update-compile-budget"):
            lock.write(file, replace(known, tests={**known.tests, name: now}))
            return
    except lock.LockError as error:
        pytest.fail(str(error), pytrace=False)
    if name not in known.tests:
        pytest.fail(f"{name} has no budget in {file}: {_HOW}", pytrace=False)
    was = known.tests[name]
    if lines := lock.told(name, lock.beyond(was, now)):
        other = f" (recorded with torch {was.torch}, this is {now.torch})" if was.torch != now.torch else ""
        pytest.fail("\n".join([f"beyond the budget in {lock.FILE}{other}:", *lines]), pytrace=False)


def _counted(model: Any, calls: list[Any], root: str, train: bool) -> Mapping[str, Any]:
    here = _part("harness.counted_here")
    try:
        return dict(here.count(model, calls, root, train))
    except here.NotCountedError as error:
        pytest.fail(str(error), pytrace=False)


def _budget(lock: types.ModuleType, told: Mapping[str, Any]) -> Any:
    events = [
        lock.Event(kind, row["where"], row.get("function") or _function(row), row[reason], row["count"])
        for kind, reason in _EVENTS.items()
        for row in told[kind]
    ]
    return lock.Budget(
        counts={kind: told["counts"][kind] for kind in lock.KINDS},
        operators=told["operators"],
        events=tuple(events),
        torch=told["torch"],
        backend=told["backend"],
    )


def _function(row: Mapping[str, Any]) -> str:
    """The innermost function of the user's code."""
    place, _, name = (row.get("stack") or [""])[-1].rpartition(" in ")
    return name if place == row["where"] else ""


def _part(name: str) -> types.ModuleType:
    """A module of the engine from where it lies, under a name that nobody else has."""
    whole = "_fix_compile_parts"
    for dotted in _prefixes(f"{whole}.{name}"):
        if dotted not in sys.modules:
            path = _ENGINE.joinpath(*dotted.split(".")[1:])
            file, inside = (path / "__init__.py", [str(path)]) if path.is_dir() else (path.with_suffix(".py"), None)
            spec = importlib.util.spec_from_file_location(dotted, file, submodule_search_locations=inside)
            assert spec is not None and spec.loader is not None
            sys.modules[dotted] = module = importlib.util.module_from_spec(spec)
            try:
                spec.loader.exec_module(module)
            except BaseException:
                del sys.modules[dotted]
                raise
    return sys.modules[f"{whole}.{name}"]


def _prefixes(dotted: str) -> Iterator[str]:
    parts = dotted.split(".")
    yield from (".".join(parts[: number + 1]) for number in range(len(parts)))
