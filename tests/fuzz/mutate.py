"""Mutants: hazards put into a seed's text. Each is an edit of the seed's own lines, so any of them can be left out."""

from __future__ import annotations

import ast
import random
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from patcher.harness.examples import PREAMBLE
from tests.fuzz.hazards import HAZARDS, TENSOR, Hazard
from tests.fuzz.seeds import Place, Point, Seed, Surveyed, surveyed
from tests.fuzz.surroundings import AROUND_HAZARD, AROUND_STATEMENTS, DECORATORS, HEADER, OVERRIDES, SHADOWS, SUPPORT


@dataclass(frozen=True)
class Edit:
    """One change of a seed: lines put in, lines wrapped, a decorator, a parameter, code above or below.

    ``inserted``: (before this line, indentation, code). ``wrapped``: (first and last line, indentation, header, tail).
    ``inline``: (line, column, text). ``swap``: the class that ``below`` replaces in the run.
    """

    name: str
    inserted: tuple[tuple[int, int, str], ...] = ()
    wrapped: tuple[int, int, int, str, str] | None = None
    inline: tuple[tuple[int, int, str], ...] = ()
    above: str = ""
    below: str = ""
    swap: str = ""


@dataclass(frozen=True)
class Mutant:
    """A seed with edits."""

    seed: Seed
    edits: tuple[Edit, ...]

    @property
    def name(self) -> str:
        """The names of its hazards."""
        return " + ".join(edit.name for edit in self.edits)

    def texts(self) -> tuple[str, str]:
        """The module that the tool sees, and what is run below it."""
        lines = self.seed.source.split("\n")
        for edit in self.edits:
            for line, column, text in sorted(edit.inline, reverse=True):
                lines[line - 1] = lines[line - 1][:column] + text + lines[line - 1][column:]
        shift: dict[int, list[tuple[int, str]]] = {}
        wraps = [edit.wrapped for edit in self.edits if edit.wrapped]
        for edit in self.edits:
            for line, indent, code in edit.inserted:
                deeper = sum(4 for first, last, _, _, _ in wraps if first < line <= last)
                shift.setdefault(line, []).append((indent + deeper, code))
        out: list[str] = []
        for number, text in enumerate([*lines, ""], 1):
            for _, last, indent, _, tail in wraps:
                if number == last + 1 and tail:
                    out += textwrap.indent(tail, " " * indent).split("\n")
            for indent, code in shift.get(number, ()):
                out += textwrap.indent(code, " " * indent).split("\n")
            for first, last, indent, header, _ in wraps:
                if number == first:
                    out += textwrap.indent(header, " " * indent).split("\n")
                if first <= number <= last and text:
                    text = "    " + text
            if number <= len(lines):
                out.append(text)
        body = "\n".join(out)
        above = "".join(f"\n\n{code}" for code in dict.fromkeys(e.above for e in self.edits if e.above))
        below = "".join(f"\n\n{edit.below}\n" for edit in self.edits if edit.below)
        whole = f"{above}\n\n{body}{below}"
        for used, code in SUPPORT.items():
            if used in whole:
                whole = f"{code}\n\n{whole}"
        modules = {name: f"{name}." in whole for name in ("contextlib", "functools", "operator", "types", "np")}
        header = "".join(line + "\n" for line in HEADER.splitlines() if modules[line.split()[-1]])
        swaps = "".join(f"\n{edit.swap}\n" for edit in self.edits if edit.swap)
        return f"{PREAMBLE}{header}{whole}", f"{self.seed.run}{swaps}"


def mutant(seed: Seed, rng: random.Random) -> Mutant:
    """A mutant of the seed with one to three hazards."""
    known = surveyed(seed)
    wanted = rng.choices((1, 2, 3), (6, 3, 1))[0]
    edits: list[Edit] = []
    for _ in range(20):
        makers = (_statement, _surrounding, _return, _decorator, _subclass, _shadow)
        made = rng.choices(makers, (70, 12, 4, 4, 6, 3))[0](known, rng, len(edits))
        if made is not None and not (made.wrapped and any(edit.wrapped for edit in edits)):
            if made.inline and any(set(made.inline) & set(edit.inline) for edit in edits):
                made = Edit(made.name, made.inserted, made.wrapped, (), made.above, made.below, made.swap)
            edits.append(made)
        if len(edits) == wanted:
            break
    return Mutant(seed, tuple(edits))


def _point(points: Sequence[Point], rng: random.Random) -> Point:
    return rng.choices(points, [(1, 4, 10)[p.touched] for p in points])[0]


def _place(places: Sequence[Place], hazard: Hazard, rng: random.Random) -> Place | None:
    fitting = [p for p in places if _fits(p, hazard)]
    return rng.choices(fitting, [6 if p.touched else 1 for p in fitting])[0] if fitting else None


def _fits(place: Place, hazard: Hazard) -> bool:
    if hazard.at == "name" and not place.spelled.isidentifier():
        return False
    if hazard.at == "attribute" and place.spelled != f"self.{place.attribute}":
        return False
    return not hazard.on or any(kind in hazard.on for kind in place.kinds)


def _filled(code: str, place: Place | None, other: str, number: int) -> str:
    code = code.replace("<x>", place.spelled if place else "None").replace("<a>", place.attribute if place else "")
    return code.replace("<o>", other).replace("<y>", f"fresh{number}")


def _other(point: Point, rng: random.Random) -> str:
    found = [p.spelled for p in point.places if any(kind in TENSOR for kind in p.kinds)]
    return rng.choice(found) if found else "None"


def _hazard(point: Point, rng: random.Random, number: int) -> tuple[Hazard, Place | None, str] | None:
    """A hazard for the point, its place, and its code."""
    for _ in range(12):
        hazard = rng.choice(HAZARDS)
        if not _has_self(point, f"{hazard.now} {hazard.later}"):
            continue
        place = None
        if hazard.on or hazard.at:
            place = _place(point.places, hazard, rng)
            if place is None:
                continue
        return hazard, place, _filled(hazard.now, place, _other(point, rng), number)
    return None


_OF_MODULES = re.compile(
    r"self\.(register_|\w*buffers?\b|\w*parameters\b|modules|state_dict|load_|training|train|to|double|half|apply|zero_grad|requires_grad_)"
)


def _has_self(point: Point, code: str) -> bool:
    """Whether there is what the code uses as ``self``: an object, or a module."""
    if not re.search(r"\bself\b", code):
        return True
    kinds = next((p.kinds for p in point.places if p.spelled == "self"), "")
    return "m" in kinds if _OF_MODULES.search(code) else bool(kinds)


def _flag(function: ast.FunctionDef) -> tuple[tuple[int, int, str], ...]:
    """A parameter ``flag=False`` for the function; nothing where there is no room for it."""
    args = function.args
    if args.vararg or args.kwarg or args.kwonlyargs or not args.args or function.name.startswith("__"):
        return ()
    ends = [(n.end_lineno or 0, n.end_col_offset or 0) for n in (*args.args, *args.defaults)]
    return ((*max(ends), ", flag=False"),)


def _within(template: str, mark: str, code: str) -> str:
    """The template with the code in the place of the mark, as deep as that stands."""
    lines = []
    for line in template.split("\n"):
        if line.strip() == mark:
            lines.append(textwrap.indent(code, line[: len(line) - len(mark)]))
        else:
            lines.append(line)
    return "\n".join(lines)


def _statement(known: Surveyed, rng: random.Random, number: int) -> Edit | None:
    if not known.points:
        return None
    point = _point(known.points, rng)
    found = _hazard(point, rng, number)
    if found is None:
        return None
    hazard, place, code = found
    name = hazard.name
    inserted = []
    around = rng.choice(AROUND_HAZARD) if rng.random() < 0.4 else ""
    inline: tuple[tuple[int, int, str], ...] = ()
    if "flag" in around:
        inline = _flag(point.function)
        around = around if inline else around.replace("flag", "_turn()")
    if not _has_self(point, around):
        around = ""
    if hazard.later:
        later = _later(known, point, rng)
        second = _filled(hazard.later, place, _other(point, rng), number)
        inserted.append((point.line, point.indent, code))
        inserted.append((later.line, later.indent, _within(around, "<h>", second) if around else second))
    else:
        inserted.append((point.line, point.indent, _within(around, "<h>", code) if around else code))
    if around:
        name += f" in `{around.splitlines()[0]}`"
    return Edit(name, tuple(inserted), inline=inline, above=hazard.above)


def _later(known: Surveyed, point: Point, rng: random.Random) -> Point:
    same = [p for p in known.points if p.function is point.function]
    after = [p for p in same if p.line > point.line]
    return _point(after if after and rng.random() < 0.9 else same, rng)


def _surrounding(known: Surveyed, rng: random.Random, number: int) -> Edit | None:
    """Statements of the seed, put into a block."""
    if not known.points:
        return None
    point = _point(known.points, rng)
    block = _run_of(point, rng)
    if block is None:
        return None
    first, last = block
    template = rng.choice(AROUND_STATEMENTS)
    inline: tuple[tuple[int, int, str], ...] = ()
    if "flag" in template:
        inline = _flag(point.function)
        template = template if inline else template.replace("flag", "_turn()")
    above = ""
    if not _has_self(point, template):
        return None
    if "<h>" in template:
        found = _hazard(point, rng, number)
        if found is None or found[0].later:
            return None
        template = _within(template, "<h>", found[2])
        above = found[0].above
    if "<x>" in template:
        template = template.replace("<x>", _other(point, rng))
    header, _, tail = template.partition("    <s>")
    name = f"around: {template.splitlines()[0]}"
    if header.startswith("try:"):
        name = f"around: {'; '.join(line.strip() for line in template.splitlines())}"
    wrapped = (first, last, point.indent, header.rstrip("\n"), tail.strip("\n"))
    return Edit(name, wrapped=wrapped, inline=inline, above=above)


def _run_of(point: Point, rng: random.Random) -> tuple[int, int] | None:
    """Lines of one to four statements that start at the point."""
    for node in ast.walk(point.function):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if not isinstance(block, list):
                continue
            for at, statement in enumerate(block):
                start = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
                if start == point.line and statement.col_offset == point.indent:
                    upto = block[min(at + rng.randrange(4), len(block) - 1)]
                    return start, upto.end_lineno or upto.lineno
    return None


def _return(known: Surveyed, rng: random.Random, number: int) -> Edit | None:
    """A way out: of the function, of the turn of a loop."""
    if not known.points:
        return None
    point = _point(known.points, rng)
    test = rng.choice(("flag", "not flag", "_turn()", "<t>.dim() > 1", "<t>.sum() > 0", "<t>.numel() == 0"))
    out = rng.choice(("return <t>", "return None", "continue", "break", 'raise ValueError("here")'))
    inline: tuple[tuple[int, int, str], ...] = ()
    if "flag" in test:
        inline = _flag(point.function)
        test = test if inline else "_turn()"
    code = f"if {test}:\n    {out}".replace("<t>", _other(point, rng))
    return Edit(f"if {test}: {out}", ((point.line, point.indent, code),), inline=inline)


def _decorator(known: Surveyed, rng: random.Random, _: int) -> Edit | None:
    functions = [f for f in known.functions if f.name != "__init__"]
    if not functions:
        return None
    function = rng.choice(functions)
    text, above = rng.choice(DECORATORS)
    body = above.split("def inner(*args, **kwargs):\n")[-1].split("    return inner")[0]
    name = f"{text} {'; '.join(line.strip() for line in body.strip().splitlines())}".strip()
    return Edit(name, ((_first_line(function), function.col_offset, text),), above=above)


def _first_line(function: ast.FunctionDef) -> int:
    return function.lineno  # below other decorators: nearest to the function


def _subclass(known: Surveyed, rng: random.Random, _: int) -> Edit | None:
    if not known.classes:
        return None
    base = rng.choice(known.classes)
    methods = [f.name for f in base.body if isinstance(f, ast.FunctionDef) and not f.name.startswith("__")]
    template = rng.choice(OVERRIDES)
    if ("<m>" in template and not methods) or ("<a>" in template and not known.attributes):
        return None
    code = template
    if "<m>" in code:
        code = code.replace("<m>", rng.choice(methods))
    if "<a>" in code:
        code = code.replace("<a>", rng.choice(known.attributes))
    below = f"class Sub(_Base):\n{textwrap.indent(code, '    ')}".replace("_Base", base.name)
    name = "subclass: " + "; ".join(line.strip() for line in template.splitlines() if "super().__init__" not in line)
    return Edit(name, below=below, swap=f"{base.name} = Sub")


def _shadow(known: Surveyed, rng: random.Random, _: int) -> Edit | None:
    code = rng.choice(SHADOWS)
    return Edit("shadow: " + re.sub(r"\s+", " ", code)[:60], above=code)
