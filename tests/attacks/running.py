"""Attacks on the safe fixes: modules that a maintainer could have, each meant to make one of them give a wrong result.

An attack is a file, or a folder with ``model.py`` and others. Its docstring says what must not change. Below the line
``# run`` of ``model.py`` stands how it is run, which the rules do not get to see; see `tests.behaviour`.

``python -m tests.attacks.running DIR [--compiled] [--diff] [-k WORD]`` runs all that is below a folder and names what
differs.

The fixes are those that call themselves safe. A run that says ``unsafe = True`` gets all of them, and may say how far
rounding goes: ``tolerance = 1e-5``. One that says ``compiled = True`` is about what Dynamo makes of the patched code:
it is among those that the tests run under `torch.compile`, too, as is the first that is rewritten of each rule.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from patcher.patching import runner
from patcher.rule import Rule
from patcher.settings import Settings
from rules import load_rules
from tests.behaviour import Behaviour, Mode, asks_data, behaviour, difference, fails, lost, without, write

RULES = load_rules()
MARK = "\n# run\n"
#: The modes that cost little, and those in which Dynamo is at work.
PLAIN: tuple[Mode, ...] = ("eager", "compiling")
COMPILED: tuple[Mode, ...] = ("compiled", "fullgraph")
_TOLERANCE = re.compile(r"^tolerance = (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Attack:
    """``files``: what the tool is given, by name; ``run``: what it is not given.

    ``unsafe``: fixes that are right under an assumption only are made too. ``tolerance``: of outputs, both ways.
    ``compiled``: it shows something only under `torch.compile`.
    """

    name: str
    rule: str
    files: Mapping[str, str]
    run: str
    unsafe: bool = False
    tolerance: float = 0.0
    compiled: bool = False


@dataclass(frozen=True)
class Outcome:
    """``fixed``: the codes of the fixes that were made; ``holes``: what is different then, by settings and mode."""

    attack: Attack
    fixed: tuple[str, ...]
    diff: str
    holes: tuple[str, ...]
    returned: int


def attacks(folder: Path) -> Iterator[Attack]:
    """All that are below a folder of folders that are named after rules, or below one of these, or a single one."""
    if folder.is_file() or (folder / "model.py").exists():
        yield _read(folder)
        return
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name != "__pycache__":
            yield from attacks(path)
        elif path.suffix == ".py" and folder.name.startswith("fc"):
            yield _read(path)


def _read(path: Path) -> Attack:
    if path.is_file():
        files = {"model.py": path.read_text(encoding="utf-8")}
    else:
        found = sorted(path.rglob("*.py"))
        files = {str(p.relative_to(path)): p.read_text(encoding="utf-8") for p in found}
    text, mark, run = files["model.py"].partition(MARK)
    assert mark, f"{path}: no line '# run'"
    files["model.py"] = text + "\n"
    rounding = _TOLERANCE.search(run)
    tolerance = float(rounding[1]) if rounding else 0.0
    unsafe, compiled = (f"\n{word} = True\n" in f"\n{run}" for word in ("unsafe", "compiled"))
    return Attack(path.stem, path.parent.name.upper(), files, run, unsafe, tolerance, compiled)


def patched(attack: Attack, rules: tuple[Rule, ...]) -> tuple[dict[str, str], tuple[str, ...], list[str]]:
    """The project with the fixes made, the codes of these, and what the engine calls bugs of our own."""
    with tempfile.TemporaryDirectory(prefix="attack-") as root:
        folder = write(attack.files, Path(root))
        results = runner.run([str(folder)], rules, Settings(unsafe=attack.unsafe), jobs=1)
    texts, codes, bugs = dict(attack.files), [], []
    for result in results:
        assert not result.error, result.error
        if result.patch is None:
            continue
        bugs += [f"bug of {bug.code}, line {bug.line}: {bug.message}" for bug in result.patch.bugs]
        if not result.changed:
            continue
        name = str(Path(result.path).resolve().relative_to(folder.resolve()))
        texts[name] = result.after.decode(result.encoding)
        codes += [found.code for found in result.patch.fixed]
    return texts, tuple(codes), bugs


def outcome(attack: Attack, modes: Sequence[Mode] = PLAIN) -> Outcome:
    """Patch with all rules, and with the attacked one alone, and compare with the original in each mode."""
    before: dict[Mode, Behaviour] = {}
    every, codes, bugs = patched(attack, RULES)
    single, more, others = patched(attack, tuple(r for r in RULES if r.code == attack.rule))
    holes = sorted({*bugs, *others})
    variants = {"all rules": every, attack.rule: single} if every != single else {"all rules": every}
    for label, files in variants.items():
        if files == attack.files:
            continue
        for mode in modes:
            if mode == "fullgraph" and attack.unsafe:  # of what is lost there, an unsafe fix tells
                continue
            for wanted in ("eager", mode):
                if wanted not in before:
                    before[wanted] = behaviour(attack.files, attack.run, wanted)
            now = behaviour(files, attack.run, mode)
            if mode == "fullgraph":
                # one rule leaves a condition on data to another, which only for few sizes the sizes had told
                left = label != "all rules" and asks_data(before[mode])
                found = None if left else lost(before["eager"], before[mode], now)
            else:
                found = difference(before[mode], now, attack.tolerance)
            if found and mode == "compiled":
                # a call that no graph takes works only where calls before it have made Dynamo give the function up
                if "anew" not in before:
                    before["anew"] = behaviour(attack.files, attack.run, "anew")
                skipped = fails(before["eager"], before["anew"])
                found = difference(without(before[mode], skipped), without(now, skipped), attack.tolerance)
            # what the original does not do when it is compiled is not asked for
            if found and mode == "compiled" and difference(before["eager"], before[mode], attack.tolerance):
                continue
            if found:
                holes.append(f"{label}, {mode}: {found}")
    if not before:
        before["eager"] = behaviour(attack.files, attack.run)
    if before["eager"].failed:
        holes.append(f"the attack itself fails: {before['eager'].failed}")
    fixed = tuple(sorted({*codes, *more}))
    shown = every if every != attack.files else single
    return Outcome(attack, fixed, _diff(attack.files, shown), tuple(holes), before["eager"].returned)


def _diff(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    parts = (
        difflib.unified_diff(before[n].splitlines(True), after[n].splitlines(True), n, n, n=2) for n in sorted(before)
    )
    return "".join(line for part in parts for line in part)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--compiled", action="store_true", help="also under torch.compile(backend='eager')")
    parser.add_argument("--diff", action="store_true", help="show what the tool makes of each")
    parser.add_argument("-k", default="", help="only those with this in their name")
    options = parser.parse_args()
    found, touched, wrong = 0, 0, 0
    for attack in attacks(options.folder):
        if options.k not in f"{attack.rule.lower()}/{attack.name}":
            continue
        result = outcome(attack, (*PLAIN, *COMPILED) if options.compiled else PLAIN)
        found, touched, wrong = found + 1, touched + bool(result.fixed), wrong + bool(result.holes)
        verdict = "HOLE" if result.holes else "same" if result.fixed else "left alone"
        nothing = "" if result.returned else " (no call returns)"
        sys.stdout.write(f"{attack.rule}/{attack.name}: {verdict} {' '.join(result.fixed)}{nothing}\n")
        if options.diff:
            sys.stdout.write(result.diff)
        sys.stdout.writelines(f"    {hole}\n" for hole in result.holes)
        sys.stdout.flush()
    sys.stdout.write(f"{found} attacks, {touched} rewritten, {wrong} holes\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
