"""The first rule of a package: files that pass as they stand, to be changed into what the rule is about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

from patcher.own_rules.found import CODE, GROUP, NAME
from patcher.patching.calls import FAILURE, OK, Told
from patcher.results import is_own_code

_TEMPLATES = Path(__file__).with_name("templates")
_PACKAGE = re.compile(r"[a-z][a-z0-9_]*")
_INIT = '"""Our own rules for fix-compile: what is defined here is found."""\n'


class SkeletonError(Exception):
    """What was asked for cannot be begun; the message is one line."""


@dataclass(frozen=True)
class Skeleton:
    """``files``: path below the folder -> text. ``shared``: of the package, which other rules need too."""

    files: Mapping[str, str]
    shared: Mapping[str, str]
    project: str


def new_rule(code: str, name: str, package: str, folder: Path) -> Told:
    """Write the rule, its test, and what of the package is not there yet. Nothing is overwritten."""
    try:
        made = skeleton(code, name, package)
    except SkeletonError as error:
        return Told(FAILURE, err=(f"new-rule: error: {error}",))
    if taken := [name for name in made.files if (folder / name).exists()]:
        return Told(FAILURE, err=(f"new-rule: error: {folder / taken[0]} is there already; nothing was written",))
    missing = {name: text for name, text in made.shared.items() if not (folder / name).exists()}
    out = ""
    for name, text in {**missing, **made.files}.items():
        try:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            return Told(FAILURE, out, (f"new-rule: error: {folder / name}: {error.strerror}",))
        out += f"{folder / name}\n"
    said = [f"next: pip install -e {folder}; fix-compile selftest --rules {made.project}"]
    if "pyproject.toml" not in missing:
        entry = made.shared["pyproject.toml"].partition("\n\n[project.entry")
        said.insert(0, f"{folder / 'pyproject.toml'} is there already; it has to say:\n\n[project.entry{entry[2]}")
    return Told(OK, out, tuple(said))


def skeleton(code: str, name: str, package: str) -> Skeleton:
    """The files for a rule; raises `SkeletonError` for a code that is not free, or names that are none."""
    if not CODE.fullmatch(code):
        raise SkeletonError(f"a code is capital letters and three or four digits (FC901), not {code!r}")
    if is_own_code(code):
        raise SkeletonError(f"{code} is not free, for FC0 to FC8 belong to fix-compile; take FC900 to FC999")
    if not NAME.fullmatch(name):
        raise SkeletonError(f"a name is words with hyphens between them (slow-call), not {name!r}")
    if not _PACKAGE.fullmatch(package):
        raise SkeletonError(f"--package is a name that Python can import, in lower case (house_rules), not {package!r}")
    module, project = f"{code.lower()}_{name.replace('-', '_')}", package.replace("_", "-")
    given = {"CODE": code, "NAME": name, "CLASS": "".join(part.capitalize() for part in name.split("-"))}
    given |= {"PACKAGE": package, "MODULE": module, "PROJECT": project, "GROUP": GROUP}
    rule, test, pyproject = (
        Template(_TEMPLATES.joinpath(f"{template}.txt").read_text(encoding="utf-8")).substitute(given)
        for template in ("rule", "test", "pyproject")
    )
    files = {f"{package}/{module}.py": rule, f"tests/test_{module}.py": test}
    return Skeleton(files, {"pyproject.toml": pyproject, f"{package}/__init__.py": _INIT}, project)
