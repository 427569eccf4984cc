"""The walls of the house: who may import whom, who may print, what nothing may be called."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PURE = {
    "__future__", "ast", "builtins", "collections", "dataclasses", "enum", "functools", "itertools", "keyword", "math",
    "operator", "re", "typing",
}  # fmt: skip

TYPES = {"patcher.rule", "patcher.results", "patcher.settings"}

# For a module, or a package with all that is in it (the longest name that fits decides): what else of ours it may
# import. A module of a package may always import its own package.
WALLS: dict[str, set[str]] = {
    "fix_compile": {"rules", "patcher"},
    "fix_compile_pytest": set(),  # it is loaded wherever tests run
    "rules": {
        "patcher.rule",
        "patcher.facts",
        "patcher.measuring.observed",
        "patcher.settings",
        "patcher.state_dict_source",
        "rules.examples",
    },
    "rules.examples": {"patcher.rule"},
    "patcher.rule": {"patcher.facts", "patcher.settings"},
    "patcher.measuring.observed": set(),
    "patcher.settings": {"patcher.measuring.observed"},
    "patcher.words": set(),
    "patcher.state_dict_source": set(),
    "patcher.results": {"patcher.settings"},
    "patcher.files.lines": set(),
    "patcher.facts": {"patcher.measuring.observed", "patcher.settings"},
    "patcher.edit.spans": {"patcher.rule"},
    "patcher.edit.filling": {"patcher.rule"},
    "patcher.edit.located": {"patcher.files.lines", "patcher.edit.spans"},
    "patcher.edit.concrete": {"patcher.edit.filling", "patcher.edit.located", "patcher.edit.spans", "patcher.rule"},
    "patcher.edit.edits": {
        "patcher.edit.concrete",
        "patcher.edit.spans",
        "patcher.files.lines",
        "patcher.results",
        "patcher.rule",
    },
    "patcher.edit.suppress": {"patcher.facts", "patcher.files.lines", "patcher.results", "patcher.rule"},
    "patcher.finding": {
        "patcher.edit.suppress",
        "patcher.measuring.observed",
        "patcher.edit.spans",
        "patcher.facts",
        *TYPES,
        "patcher.files.lines",
    },
    "patcher.edit.engine": {
        "patcher.edit.edits",
        "patcher.finding",
        "patcher.edit.spans",
        "patcher.facts",
        *TYPES,
    },
    "patcher.files.source": {"patcher.results", "patcher.settings"},
    "patcher.files.discover": {"patcher.files.source", "patcher.settings"},
    "patcher.files.atomic": {"patcher.files.source"},
    "patcher.files.git": set(),
    "patcher.measuring.lock": set(),  # loaded by itself where tests run
    "patcher.measuring.budget": {
        "patcher.files.backup",
        "patcher.patching.calls",
        "patcher.harness",
        "patcher.measuring.lock",
        "patcher.measuring.measure",
        "patcher.results",
    },
    "patcher.patching.check": {
        "patcher.config",
        "patcher.files.atomic",
        "patcher.files.backup",
        "patcher.files.git",
        "patcher.files.source",
        "patcher.harness.processes",
        "patcher.measuring.budget",
        "patcher.measuring.measure",
        "patcher.patching.calls",
        "patcher.report",
        "patcher.results",
    },
    "patcher.patching.changes": {"patcher.files.git", "patcher.results", "patcher.files.source"},
    "patcher.files.backup": {"patcher.files.atomic", "patcher.files.source", "patcher.results", "patcher.version"},
    "patcher.files.restore": {
        "patcher.files.atomic",
        "patcher.files.backup",
        "patcher.files.lines",
        "patcher.files.source",
        "patcher.results",
    },
    "patcher.files.kept": set(),
    "patcher.patching.reuse": {"patcher.files.kept", "patcher.patching.share", "patcher.files.source", *TYPES},
    "patcher.patching.share": {"patcher.files.lines", "patcher.files.source", *TYPES},
    "patcher.patching.runner": {
        "patcher.edit.engine",
        "patcher.facts",
        "patcher.files.discover",
        "patcher.files.source",
        "patcher.finding",
        "patcher.patching.reuse",
        "patcher.patching.share",
        "patcher.results",
        *TYPES,
    },
    "patcher.report": {"patcher.files.lines", "patcher.results", "patcher.version"},
    "patcher.report.harness": {"patcher.harness.compare", "patcher.harness.measured", "patcher.report.markdown.blocks"},
    "patcher.report.fitted": set(),
    "patcher.report.recommending": {"patcher.diagnose.diagnosis", "patcher.harness.measured", "patcher.report.harness"},
    "patcher.report.page": {"patcher.report.fitted"},
    "patcher.report.markdown": {
        "patcher.diagnose.diagnosis",
        "patcher.harness.compare",
        "patcher.harness.measured",
        "patcher.report.harness",
        "patcher.report.recommending",
    },
    "patcher.report.diagnosis_markdown": {
        "patcher.diagnose.diagnosis",
        "patcher.report.markdown",
        "patcher.report.recommending",
    },
    "patcher.report.diagnosis_json": {
        "patcher.diagnose.diagnosis",
        "patcher.report.harness",
        "patcher.version",
    },
    "patcher.diagnose": set(),
    "patcher.diagnose.advice": {"patcher.diagnose.diagnosis"},
    "patcher.diagnose.sites": {
        "patcher.diagnose.site_remarks",
        "patcher.diagnose.diagnosis",
        "patcher.facts",
    },
    "patcher.diagnose.site_remarks": {"patcher.facts"},
    "patcher.diagnose.diagnostics": {
        "patcher.diagnose.diagnosis",
        "patcher.diagnose.timings",
        "patcher.diagnose.varied",
        "patcher.harness.measured",
    },
    "patcher.diagnose.varied": {
        "patcher.diagnose.diagnosis",
        "patcher.diagnose.timings",
        "patcher.diagnose.groups",
        "patcher.harness.measured",
    },
    "patcher.diagnose.timings": {"patcher.diagnose.diagnosis", "patcher.harness.compare", "patcher.harness.measured"},
    "patcher.diagnose.fine": {
        "patcher.diagnose.diagnosis",
        "patcher.diagnose.sites",
        "patcher.facts",
        "patcher.settings",
    },
    "patcher.harness": set(),
    "patcher.harness.cases": {"patcher.config", "patcher.files.source"},
    "patcher.harness.plan": {
        "patcher.harness.cases",
        "patcher.harness.trees",
        "patcher.results",
        "patcher.settings",
        "patcher.files.source",
        "patcher.version",
    },
    "patcher.harness.trees": {"patcher.files.git"},
    "patcher.harness.packages": set(),
    "patcher.decode": set(),
    "patcher.harness.measured": {"patcher.decode"},
    "patcher.harness.compare": {"patcher.harness.measured"},
    # what runs in processes of its own needs nothing else of ours
    "patcher.harness.run": {"patcher.harness.earlier", "patcher.harness.forks", "patcher.harness.processes"},
    "patcher.harness.earlier": {"patcher.harness.processes"},
    "patcher.harness.processes": {"patcher.harness.forks"},
    "patcher.harness.forks": set(),
    "patcher.harness.parent": set(),
    "patcher.harness.failures": set(),
    "patcher.harness.leaves": set(),
    "patcher.harness.overlay": {"patcher.harness.failures"},
    "patcher.harness.listener": {"patcher.harness.failures", "patcher.harness.leaves"},
    "patcher.harness.running_case": {"patcher.harness.failures", "patcher.harness.leaves", "patcher.harness.overlay"},
    "patcher.harness.passes": {
        "patcher.harness.failures",
        "patcher.harness.leaves",
        "patcher.harness.listener",
        "patcher.harness.overlay",
        "patcher.harness.pairs",
        "patcher.harness.precision",
        "patcher.harness.replaying",
        "patcher.harness.running_case",
    },
    "patcher.harness.worker": {
        "patcher.harness.failures",
        "patcher.harness.leaves",
        "patcher.harness.listener",
        "patcher.harness.overlay",
        "patcher.harness.pairs",
        "patcher.harness.passes",
        "patcher.harness.running_case",
    },
    "patcher.harness.differences": set(),
    "patcher.harness.logs": {"patcher.harness.listener"},
    "patcher.harness.counted_here": {"patcher.harness.listener"},
    "patcher.harness.trials": {
        "patcher.harness.failures",
        "patcher.harness.leaves",
        "patcher.harness.listener",
        "patcher.harness.passes",
        "patcher.harness.running_case",
    },
    "patcher.harness.sizes": {
        "patcher.harness.failures",
        "patcher.harness.leaves",
        "patcher.harness.running_case",
        "patcher.harness.trials",
    },
    "patcher.harness.probes": {
        "patcher.harness.failures",
        "patcher.harness.listener",
        "patcher.harness.overlay",
        "patcher.harness.passes",
        "patcher.harness.running_case",
        "patcher.harness.sizes",
        "patcher.harness.trials",
        "patcher.harness.worker",
    },
    "patcher.harness.fusions": {
        "patcher.harness.fusion_form",
        "patcher.harness.fusion_patterns",
        "patcher.harness.probes",
        "patcher.harness.trials",
    },
    "patcher.harness.fusion_form": set(),
    "patcher.harness.fusion_patterns": {"patcher.harness.fusion_form"},
    "patcher.harness.examples": {"patcher.harness.listener"},
    "patcher.run": set(),
    "patcher.run.program": set(),
    "patcher.run.watching": set(),
    "patcher.run.recorder": {"patcher.run.program", "patcher.run.watching"},
    "patcher.run.recorded": {"patcher.harness.replaying", "patcher.run.program", "patcher.run.watching"},
    "patcher.run.recording": {
        "patcher.harness.cases",
        "patcher.harness.forks",
        "patcher.harness.processes",
        "patcher.run.program",
    },
    "patcher.search": set(),
    "patcher.search.verdict": {"patcher.harness.measured"},
    "patcher.search.further": {"patcher.diagnose.diagnostics", "patcher.search"},
    "patcher.search.remedies": {
        "patcher.diagnose.bench",
        "patcher.diagnose.eager_time",
        "patcher.harness.measured",
        "patcher.settings",
    },
    "patcher.search.pool": {
        "patcher.diagnose.bench",
        "patcher.harness.plan",
        "patcher.harness.processes",
        "patcher.results",
        "patcher.settings",
    },
    "patcher.search.judged": {
        "patcher.diagnose",
        "patcher.harness.compare",
        "patcher.harness.measured",
        "patcher.results",
        "patcher.search.verdict",
        "patcher.settings",
    },
    "patcher.search.concluding": {
        "patcher.diagnose.bench",
        "patcher.diagnose.better",
        "patcher.harness",
        "patcher.search",
    },
    "patcher.search.session": {
        "patcher.patching.analysis",
        "patcher.diagnose",
        "patcher.harness.compare",
        "patcher.harness.measured",
        "patcher.harness.plan",
        "patcher.measuring.observed",
        "patcher.search",
        "patcher.settings",
    },
    "patcher.search.candidates": {
        "patcher.diagnose",
        "patcher.options",
        "patcher.search",
        "patcher.settings",
    },
    "patcher.search.reducing": {
        "patcher.diagnose",
        "patcher.harness.measured",
        "patcher.search",
        "patcher.settings",
    },
    "patcher.search.optimizing": {
        "patcher.diagnose",
        "patcher.harness.measured",
        "patcher.harness.plan",
        "patcher.search",
        "patcher.settings",
    },
    "patcher.search.writing": {
        "patcher.patching.analysis",
        "patcher.diagnose",
        "patcher.results",
        "patcher.search",
        "patcher.settings",
    },
    "patcher.search.call": {
        "patcher.patching.analysis",
        "patcher.files.atomic",
        "patcher.files.backup",
        "patcher.patching.calls",
        "patcher.diagnose",
        "patcher.harness",
        "patcher.measuring.measure",
        "patcher.report",
        "patcher.results",
        "patcher.run.recording",
        "patcher.search",
        "patcher.settings",
        "patcher.measuring.observed",
    },
    "patcher.patching.analysis": {
        "patcher.files.discover",
        "patcher.results",
        "patcher.patching.reuse",
        "patcher.rule",
        "patcher.patching.runner",
        "patcher.settings",
        "patcher.patching.share",
        "patcher.files.source",
    },
    "patcher.diagnose.diagnosis": {"patcher.harness.compare", "patcher.harness.measured", "patcher.rule"},
    "patcher.diagnose.events": {"patcher.harness.measured"},
    "patcher.diagnose.groups": {
        "patcher.diagnose.diagnosis",
        "patcher.diagnose.events",
        "patcher.diagnose.places",
        "patcher.harness.measured",
    },
    "patcher.diagnose.places": {"patcher.files.lines", "patcher.files.source"},
    "patcher.diagnose.relations": {
        "patcher.diagnose.groups",
        "patcher.diagnose.places",
        "patcher.results",
        "patcher.rule",
        "patcher.settings",
    },
    "patcher.diagnose.bench": {
        "patcher.diagnose.diagnosis",
        "patcher.diagnose.events",
        "patcher.diagnose.places",
        "patcher.harness.cases",
        "patcher.harness.compare",
        "patcher.harness.forks",
        "patcher.harness.measured",
        "patcher.harness.plan",
        "patcher.harness.processes",
        "patcher.harness.run",
        "patcher.harness.scratch",
        "patcher.results",
        "patcher.settings",
    },
    "patcher.diagnose.asked_settings": {
        "patcher.diagnose.advice",
        "patcher.diagnose.diagnosis",
        "patcher.diagnose.groups",
        "patcher.diagnose.places",
        "patcher.settings",
    },
    "patcher.diagnose.extents": {
        "patcher.diagnose.diagnosis",
        "patcher.diagnose.events",
        "patcher.diagnose.places",
        "patcher.measuring.observed",
        "patcher.settings",
    },
    "patcher.diagnose.counted": {
        "patcher.diagnose.bench",
        "patcher.diagnose.describe",
        "patcher.diagnose.diagnosis",
        "patcher.diagnose.events",
        "patcher.diagnose.groups",
        "patcher.diagnose.places",
        "patcher.diagnose.relations",
        "patcher.harness.measured",
        "patcher.harness.plan",
        "patcher.rule",
    },
    "patcher.diagnose.eager_time": {"patcher.harness.measured"},
    "patcher.diagnose.better": {"patcher.diagnose.bench", "patcher.diagnose.diagnosis", "patcher.harness.measured"},
    "patcher.diagnose.describe": {
        "patcher.diagnose.advice",
        "patcher.diagnose.asked_settings",
        "patcher.diagnose.diagnosis",
        "patcher.diagnose.events",
        "patcher.diagnose.groups",
        "patcher.diagnose.places",
        "patcher.diagnose.relations",
        "patcher.rule",
    },
    "patcher.diagnose.diagnosing": {
        "patcher.diagnose.bench",
        "patcher.diagnose.better",
        "patcher.diagnose.counted",
        "patcher.diagnose.describe",
        "patcher.diagnose.diagnosis",
        "patcher.diagnose.diagnostics",
        "patcher.diagnose.eager_time",
        "patcher.diagnose.events",
        "patcher.diagnose.extents",
        "patcher.diagnose.fine",
        "patcher.diagnose.groups",
        "patcher.diagnose.places",
        "patcher.diagnose.relations",
        "patcher.diagnose.sites",
        "patcher.harness.cases",
        "patcher.harness.compare",
        "patcher.harness.measured",
        "patcher.harness.plan",
        "patcher.harness.processes",
        "patcher.patching.analysis",
        "patcher.report.diff",
        "patcher.results",
        "patcher.settings",
    },
    "patcher.diagnose.call": {
        "patcher.diagnose.bench",
        "patcher.diagnose.diagnosing",
        "patcher.diagnose.diagnosis",
        "patcher.diagnose.events",
        "patcher.diagnose.latest",
        "patcher.diagnose.places",
        "patcher.files.backup",
        "patcher.harness.compare",
        "patcher.harness.measured",
        "patcher.harness.plan",
        "patcher.harness.processes",
        "patcher.harness.run",
        "patcher.measuring.measure",
        "patcher.patching.analysis",
        "patcher.patching.calls",
        "patcher.report.diagnosis_json",
        "patcher.report.diagnosis_markdown",
        "patcher.report.fitted",
        "patcher.report.page",
        "patcher.report.recommending",
        "patcher.settings",
        "patcher.version",
    },
    "patcher.measuring.measure": {
        "patcher.files.atomic",
        "patcher.files.backup",
        "patcher.patching.calls",
        "patcher.patching.changes",
        "patcher.harness",
        "patcher.report",
        "patcher.results",
    },
    "patcher.measuring.measure_options": {
        "patcher.patching.changes",
        "patcher.config",
        "patcher.harness",
        "patcher.measuring.measure",
        "patcher.files.source",
    },
    "patcher.fleet": {
        "patcher.decode",
        "patcher.config",
        "patcher.rule",
        "patcher.harness.cases",
        "patcher.harness.processes",
        "patcher.harness.run",
        "patcher.measuring.measure",
        "patcher.report.markdown",
    },
    "patcher.newcase": {
        "patcher.files.discover",
        "patcher.harness.cases",
        "patcher.harness.trees",
        "patcher.files.source",
    },
    "patcher.newcase.call": {
        "patcher.config",
        "patcher.diagnose.sites",
        "patcher.files.backup",
        "patcher.files.discover",
        "patcher.files.source",
        "patcher.harness",
        "patcher.harness.cases",
        "patcher.measuring.measure",
        "patcher.newcase",
        "patcher.patching.calls",
        "patcher.run.program",
    },
    "patcher.fleet.jobs": {
        "patcher.config",
        "patcher.files.discover",
        "patcher.fleet",
        "patcher.harness",
        "patcher.patching.reuse",
        "patcher.rule",
        "patcher.files.source",
    },
    "patcher.fleet.doing": {
        "patcher.config",
        "patcher.diagnose",
        "patcher.files.discover",
        "patcher.files.kept",
        "patcher.fleet",
        "patcher.harness",
        "patcher.measuring.measure",
        "patcher.options",
        "patcher.patching.analysis",
        "patcher.patching.runner",
        "patcher.report",
        "patcher.results",
        "patcher.rule",
        "patcher.search.call",
        "patcher.search.verdict",
        "patcher.selftest",
        "patcher.settings",
        "patcher.version",
    },
    "patcher.fleet.scheduled": {"patcher.fleet", "patcher.rule"},
    "patcher.fleet.call": {
        "patcher.patching.calls",
        "patcher.fleet",
        "patcher.report.page",
        "patcher.rule",
        "patcher.version",
    },
    "patcher.selftest": {"patcher.config", "patcher.files.kept", "patcher.rule"},
    "patcher.selftest.call": {"patcher.patching.calls", "patcher.rule", "patcher.selftest", "patcher.version"},
    "patcher.diagnose.latest": {"patcher.diagnose.diagnosis", "patcher.files.kept"},
    "patcher.editor": set(),
    "patcher.editor.folder": {
        "patcher.files.backup",
        "patcher.config",
        "patcher.files.discover",
        "patcher.edit.engine",
        "patcher.facts",
        "patcher.finding",
        "patcher.options",
        "patcher.selftest",
        "patcher.files.source",
        *TYPES,
    },
    "patcher.editor.protocol": {
        "patcher.described",
        "patcher.diagnose.latest",
        "patcher.edit.edits",
        "patcher.editor",
        "patcher.files.lines",
        "patcher.results",
        *TYPES,
    },
    "patcher.editor.actions": {
        "patcher.edit.spans",
        "patcher.editor",
        "patcher.edit.suppress",
        "patcher.files.lines",
        "patcher.results",
        *TYPES,
    },
    "patcher.editor.server": {
        "patcher.config",
        "patcher.diagnose.latest",
        "patcher.editor",
        "patcher.files.lines",
        "patcher.rule",
        "patcher.version",
    },
    "patcher.assistants": set(),
    "patcher.assistants.server": {"patcher.assistants", "patcher.assistants.commands", "patcher.version"},
    "patcher.own_rules": set(),
    "patcher.own_rules.found": {"patcher.results", "patcher.rule"},
    "patcher.own_rules.examined": {"patcher.edit.engine", *TYPES},
    "patcher.own_rules.skeleton": {"patcher.own_rules.found", "patcher.patching.calls", "patcher.results"},
    "patcher.explain": {"patcher.results", "patcher.rule"},
    "patcher.described": {"patcher.results", "patcher.rule"},
    "patcher.config": {"patcher.settings"},
    "patcher.options": {"patcher.config", "patcher.rule", "patcher.selftest", "patcher.settings"},
    "patcher.version": set(),
    "patcher.integrate": {
        "patcher.files.backup",
        "patcher.patching.calls",
        "patcher.edit.edits",
        "patcher.facts",
        "patcher.config",
        "patcher.files.lines",
        "patcher.report.diff",
        "patcher.files.restore",
        "patcher.files.source",
        "patcher.edit.spans",
        "patcher.state_dict_source",
        "patcher.version",
        *TYPES,
    },
    "patcher.patching.calls": {
        "patcher.files.backup",
        "patcher.config",
        "patcher.files.source",
        "patcher.report",
        "patcher.files.restore",
        "patcher.results",
        "patcher.run.program",
    },
    "patcher.cli": {"patcher"},
    "patcher": set(),
    "patcher.edit": set(),
    "patcher.files": set(),
    "patcher.measuring": set(),
    "patcher.patching": set(),
}
LATE_IMPORTS = {"__import__", "import_module", "importlib.import_module"}
# optional extras: whoever has not installed them uses all else
SERVERS = {
    "pygls": {"patcher.editor.protocol", "patcher.editor.actions", "patcher.editor.server"},
    "lsprotocol": {"patcher.editor.protocol", "patcher.editor.actions", "patcher.editor.server"},
    "mcp": {"patcher.assistants.server"},
    "anyio": {"patcher.assistants.server"},
}
LIBCST_IS_FOR = {"patcher.edit.concrete", "patcher.edit.filling", "patcher.edit.located"}
# they run in processes of their own; what `integrate` writes beside a script
TORCH_IS_FOR = {
    "patcher.harness.parent",
    "patcher.harness.worker",
    "patcher.harness.failures",
    "patcher.harness.leaves",
    "patcher.harness.listener",
    "patcher.harness.overlay",
    "patcher.harness.passes",
    "patcher.harness.running_case",
    "patcher.harness.differences",
    "patcher.harness.pairs",
    "patcher.harness.precision",
    "patcher.harness.replaying",
    "patcher.harness.counted_here",
    "patcher.harness.probes",
    "patcher.harness.sizes",
    "patcher.harness.trials",
    "patcher.harness.examples",
    "patcher.harness.logs",
    "patcher.harness.fusion_form",
    "patcher.harness.fusion_patterns",
    "patcher.harness.fusions",
    "patcher.integrate.companion",
    "patcher.run.observing",
    "patcher.run.program",
    "patcher.run.recorded",
    "patcher.run.recorder",
    "patcher.run.watching",
}
# what starts them
STARTS = {f"patcher.harness.{name}" for name in ("earlier", "forks", "processes", "run")}
# fix_compile before there is a command line; processes.py what a worker that is to be heard says; workers
PRINTS = {"fix_compile", "patcher.cli"}
PRINTS |= {f"patcher.harness.{name}" for name in ("logs", "processes", "running_case", "worker")}
FORBIDDEN_WORDS = {
    "checker", "checkers", "common", "fixer", "fixers", "handler", "handlers", "helper", "helpers",
    "manager", "managers", "misc", "util", "utils", "visitor", "visitors",
}  # fmt: skip


def sources() -> dict[str, Path]:
    """Every module of ours by its dotted name; ``__init__`` stands for its package."""
    top = [ROOT / "fix_compile.py", ROOT / "fix_compile_pytest.py"]
    files = [*top, *(ROOT / "patcher").rglob("*.py"), *(ROOT / "rules").rglob("*.py")]
    named = {}
    for path in files:
        if path.exists():
            parts = path.relative_to(ROOT).with_suffix("").parts
            named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return named


SOURCES = sources()
OURS = {"patcher", "rules", "fix_compile", "tests", "fixtures", "benchmarks", "docs"}
each_module = pytest.mark.parametrize("module", sorted(SOURCES))


@cache
def parsed(module: str) -> ast.Module:
    return ast.parse(SOURCES[module].read_text(encoding="utf-8"))


@cache
def nodes_of(module: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(parsed(module)))


def resolve(base: str, name: str) -> str:
    """`from base import name` is an import of a submodule when there is one, else of ``base``."""
    return f"{base}.{name}" if f"{base}.{name}" in SOURCES else base


@cache
def imported(module: str, for_types: bool = True) -> tuple[str, ...]:
    """The full names of the modules that ``module`` imports, anywhere in its text, or but for types."""
    return tuple(imports(module, for_types))


def imports(module: str, for_types: bool) -> Iterator[str]:
    package = module if SOURCES[module].name == "__init__.py" else module.rpartition(".")[0]
    nodes = nodes_of(module)
    tests = (n for n in nodes if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")
    left_out = {n for test in tests for s in test.body for n in ast.walk(s)} if not for_types else set()
    for node in nodes:
        if node in left_out:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (resolve(base, alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in LATE_IMPORTS and node.args:
            yield from [str(node.args[0].value)] if isinstance(node.args[0], ast.Constant) else []


@cache
def needed() -> dict[str, set[str]]:
    """For each module outside of facts, the modules in facts that it imports, directly or through others there."""
    ours = {m: {n for n in imported(m) if n in SOURCES} for m in SOURCES}
    found = {}
    for module in SOURCES:
        if module.startswith("patcher.facts."):
            continue
        reached, todo = set(), [module]
        while todo:
            for name in ours[todo.pop()]:
                if name.startswith("patcher.facts.") and name not in reached:
                    reached.add(name)
                    todo.append(name)
        found[module] = reached
    return found


def inside(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def folder(module: str) -> str:
    """What a module of a rule belongs to: the rule's folder, or the one file that it is."""
    return ".".join(module.split(".")[:2])


def wall_of(module: str) -> str:
    return max((w for w in WALLS if inside(module, w)), key=len)


@each_module
def test_walls_between_our_modules(module: str) -> None:
    wall = wall_of(module)
    allowed = WALLS[wall]
    own = folder(module) if wall == "rules" else module if wall == "patcher" else wall
    for name in imported(module):
        if name.partition(".")[0] in OURS and not inside(name, own):
            assert any(inside(name, a) for a in (*allowed, "patcher.words")), (
                f"{module} imports {name}. Besides {own} it may import {sorted(allowed) or 'nothing of ours'} (WALLS). "
                f"A question that is missing belongs into facts; docs/facts.md says which there are."
            )


def test_every_module_of_the_engine_has_a_wall() -> None:
    without = [m for m in SOURCES if wall_of(m) == "patcher" and m != "patcher"]
    assert not without, (
        f"WALLS says of {without} nothing: add each, with what of ours it may import, and to ARCHITECTURE"
    )


@pytest.mark.parametrize("module", sorted(m for m in SOURCES if m.startswith("patcher.facts.")))
def test_a_file_in_facts_is_asked_by_more_than_one_rule(module: str) -> None:
    """What one rule alone asks, whether by itself or through other facts, lives beside that rule."""
    if SOURCES[module].name != "__init__.py":
        askers = {folder(m) if wall_of(m) == "rules" else "" for m in SOURCES if module in needed().get(m, ())}
        assert askers, f"nobody asks {module}: take it away"
        assert "" in askers or len(askers) > 1, f"only {askers} asks {module}: it belongs beside that rule"


#: The floors of facts, the lowest first; what is named in none of them stands on all of them.
FLOORS = ("tables", "syntax", "flow", "project", "values", "effects")


def floor_of(module: str) -> int:
    """How high a module of facts stands. The door is passed at any height: it holds the floors of one module."""
    part = module.split(".")[2] if module.count(".") > 1 else ""
    return FLOORS.index(part) if part in FLOORS else 0 if part in ("", "analysis") else len(FLOORS)


@pytest.mark.parametrize("module", sorted(m for m in SOURCES if m.startswith("patcher.facts.")))
def test_a_floor_asks_those_below_it(module: str) -> None:
    used = {m for m in imported(module, for_types=False) if inside(m, "patcher.facts")}
    above = sorted(m for m in used if floor_of(m) > floor_of(module))
    assert not above, (
        f"{module} imports {above}, from a floor above its own (the lowest first: {', '.join(FLOORS)}, topics). Move "
        f"what it needs down, or itself up; what is for types only goes under TYPE_CHECKING."
    )


@each_module
def test_nothing_imports_torch_but_the_workers(module: str) -> None:
    if module not in TORCH_IS_FOR:
        found = [n for n in imported(module) if inside(n, "torch")]
        assert not found, f"{module} imports {found}; torch is for {sorted(TORCH_IS_FOR)}, in processes of their own"


@each_module
def test_protocols_of_editors_and_assistants_are_for_their_servers(module: str) -> None:
    found = [n for n in imported(module) for library in SERVERS if inside(n, library)]
    allowed = {library for library, users in SERVERS.items() if module in users}
    assert {n.partition(".")[0] for n in found} <= allowed, f"{module} imports {found}; see SERVERS"


@each_module
def test_libcst_is_for_edits_only(module: str) -> None:
    if module not in LIBCST_IS_FOR:
        found = [n for n in imported(module) if inside(n, "libcst")]
        assert not found, f"{module} imports {found}; LibCST is for {sorted(LIBCST_IS_FOR)}: meaning comes from `ast`"


def foreign(module: str) -> set[str]:
    return {name.partition(".")[0] for name in imported(module)} - OURS


@pytest.mark.parametrize("module", sorted(m for m in SOURCES if m.startswith("rules.")))
def test_rules_need_nothing_but_the_language(module: str) -> None:
    found = sorted(foreign(module) - PURE)
    assert not found, f"{module} imports {found}; a rule knows no files and no environment, only {sorted(PURE)}"


@pytest.mark.parametrize("module", sorted({*STARTS, *TORCH_IS_FOR}))
def test_what_measures_needs_the_standard_library_and_torch(module: str) -> None:
    # what lies beside them they import, too; by its plain name where they are run by their path
    lying = {*TORCH_IS_FOR, *STARTS}
    beside = {name.rpartition(".")[2] for name in lying} | (
        {"accelerate"} if module == "patcher.run.program" else set()
    )
    names = {n for n in imported(module) if n not in lying and n not in ("patcher", "patcher.harness", "patcher.run")}
    found = sorted({n.partition(".")[0] for n in names} - sys.stdlib_module_names - {"torch"} - beside)
    assert not found, f"{module} imports {found}, which the Python of the model need not have"


@pytest.mark.parametrize("module", sorted(m for m in SOURCES if inside(m, "patcher.facts")))
def test_facts_need_nothing_but_the_standard_library(module: str) -> None:
    found = sorted(foreign(module) - sys.stdlib_module_names)
    assert not found, f"{module} imports {found}; facts work from `ast` alone"


@each_module
def test_only_the_command_line_prints(module: str) -> None:
    if any(inside(module, name) for name in PRINTS):
        return
    for node in nodes_of(module):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            prints = called in {"print", "click.echo", "click.secho", "echo", "secho"}
            writes = re.fullmatch(r"sys\.(__)?std(out|err)(__)?\.(buffer\.)?write", called)
            assert not prints and not writes, (
                f"{module}:{node.lineno} calls {called}: return what is to be said (`Told`); {sorted(PRINTS)} say it"
            )


def words(name: str) -> set[str]:
    """The words of a snake_case or CamelCase name, in lower case."""
    return {w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)}


@each_module
def test_names_say_what_they_do(module: str) -> None:
    # a rule's file or folder is named for its pattern, in the words of whoever wrote that code
    named = module.split(".")[2 if wall_of(module) == "rules" else 0 :]
    named += [n.name for n in nodes_of(module) if isinstance(n, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)]
    found = {n: sorted(words(n) & FORBIDDEN_WORDS) for n in named if words(n) & FORBIDDEN_WORDS}
    assert not found, f"{module} has names that say nothing of what is done there: {found}"


@pytest.mark.parametrize("module", sorted(m for m in SOURCES if inside(m, "rules") or inside(m, "patcher.facts")))
def test_rules_are_named_in_declarations_only(module: str) -> None:
    """Facts know no rule, and a rule names others in what it declares, never where it decides."""
    declared = {"code", "yields_to", "counts_on", "invalid", "valid", "INVALID", "VALID"}
    declarations: set[ast.AST] = set()
    for node in nodes_of(module):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(t, ast.Name) and t.id in declared for t in targets):
            declarations |= set(ast.walk(node))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in declarations:
            assert not re.fullmatch(r"FC\d+", node.value), (
                f"{module}:{node.lineno} names {node.value}: a rule says in `yields_to` or `counts_on` which others it "
                f"has to do with, and facts know none"
            )


RULES = sorted(m for m in SOURCES if m.endswith(".rule") or (m.startswith("rules.fc") and m.count(".") == 1))


@pytest.mark.parametrize("module", [m for m in RULES if SOURCES[m].name != "__init__.py"])
def test_a_rule_is_short(module: str) -> None:
    """Under 150 lines of code, without imports, examples and docstrings; longer: a question is missing beside it."""
    tree = parsed(module)
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not isinstance(node, ast.ClassDef | ast.FunctionDef):
            lines |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    for node in ast.walk(tree):
        text = isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        target = (
            node.target
            if isinstance(node, ast.AnnAssign)
            else node.targets[0]
            if isinstance(node, ast.Assign)
            else None
        )
        data = isinstance(target, ast.Name) and target.id in {"invalid", "valid"}
        constant = data or (isinstance(target, ast.Name) and target.id.lstrip("_").isupper())
        if isinstance(node, ast.stmt) and (text or constant):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    assert len(lines) < 150, (
        f"{module} has {len(lines)} lines of code, 149 are the most: what it works out belongs beside it, as an "
        f"analysis, or into facts when another rule asks it, too"
    )


@pytest.mark.parametrize("options", [("--verify-only",), ("--dry-run",)])
def test_scanning_and_patching_do_not_import_torch(options: tuple[str, ...], tmp_path: Path) -> None:
    """Also with a fixture that has findings, in one process, so that no worker hides the import.

    It is a project of its own: in its place, all of this repository would be read.
    """
    (tmp_path / "setup.cfg").touch()
    target = tmp_path / "model.py"
    target.write_bytes(next(iter(sorted((ROOT / "fixtures").glob("*/before.py")))).read_bytes())
    script = (
        "import sys\n"
        "import fix_compile\n"
        f"sys.argv = ['fix-compile', '-j', '1', '--quiet', *{options!r}, {str(target)!r}]\n"
        "status = fix_compile.main()\n"
        "print('ENDED', status, [m for m in ('torch', 'numpy', 'transformers') if m in sys.modules])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] in {"ENDED 0 []", "ENDED 1 []"}, run.stdout + run.stderr
