"""Write what the rules and the facts say about themselves.

That is: a page for each rule in docs/rules, docs/rules.md, the diff in README.md; docs/facts.md and
docs/captured.md. Also README's figures (docs/results/claims.json), and where those of docs/results come from
(docs/measured.py).

python docs/generate.py            write them, and remove pages of rules that are gone
python docs/generate.py --check    write nothing; exit status 1 when one of them is out of date
"""

from __future__ import annotations

import argparse
import difflib
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]  # also for those who import this: the rules' tests
from questions import facts_page

from docs import measured
from patcher.edit.suppress import OF_COMMENTS
from patcher.facts.tables.captured import CAPTURED, CODE, EXISTING
from patcher.rule import Example, NearMiss, Rule
from rules import load_rules

HEADINGS = ("What it does", "Why it breaks compilation", "Fix safety", "References")
CLAIMS = ("<!-- {}: written by docs/generate.py -->", "<!-- end of {} -->")
DIFF_START, DIFF_END = "<!-- diff: written by docs/generate.py -->", "<!-- end of diff -->"
FIXTURE = "vision_language"
SHOWN = 2  # hunks of its diff
ATTRIBUTION = ROOT / "docs" / "results" / "attribution.json"  # written by benchmarks/attribution.py
NOTHING = "nothing removed"
WRITTEN = "<!-- Written by docs/generate.py from the rules; edit those. -->"
SUITES = {"zoo": "On the zoo", "graphmend": "On GraphMend's rows"}
_HEADING = re.compile(rf"^(?:#+\s*)?({'|'.join(HEADINGS)})\s*:?$", re.IGNORECASE)
_UNDERLINE = re.compile(r"^[-=~]{3,}$")


def sections(rule: Rule) -> dict[str, str]:
    """The text below each heading of the rule's docstring, by heading; what stands above the first is under ""."""
    found: dict[str, list[str]] = {"": []}
    current = found[""]
    for line in (inspect.getdoc(type(rule)) or "").splitlines():
        if heading := _HEADING.match(line.strip()):
            name = next(h for h in HEADINGS if h.lower() == heading[1].lower())
            current = found[name] = []
        elif not _UNDERLINE.match(line.strip()):
            current.append(line)
    return {name: textwrap.dedent("\n".join(lines)).strip() for name, lines in found.items()}


def first_sentence(text: str) -> str:
    """The first sentence of a paragraph, on one line, without its full stop."""
    paragraph = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    return re.split(r"(?<=[^.][.!?])\s+(?=[A-Z`\"'(])", paragraph)[0].removesuffix(".")


def diff(example: Example) -> str:
    """What the fix changes in an example, as a diff without file names and line numbers."""
    before, after = example.before.strip("\n").splitlines(), (example.after or "").strip("\n").splitlines()
    lines = list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]
    return "\n".join("..." if line.startswith("@@") else line for line in lines[1:])


def fixes(rule: Rule) -> str:
    """How far the rule's fixes go, as its examples show it."""
    kinds = {"display-only" if e.after is None else "unsafe" if e.unsafe else "safe" for e in rule.invalid}
    return ", ".join(kind for kind in ("safe", "unsafe", "display-only") if kind in kinds) or "display-only"


def table(rules: Sequence[Rule], link: str) -> str:
    """One row for each rule; ``link`` is the folder of their pages, as seen from the table."""
    rows = [
        f"| [{rule.code}]({link}/{rule.code}.md) | {rule.name} "
        f"| {first_sentence(sections(rule).get(HEADINGS[0], '')).replace('|', '&#124;')} | {fixes(rule)} |"
        for rule in rules
    ]
    return "\n".join(["| code | pattern | what it does | fix |", "|---|---|---|---|", *rows])


def page(rule: Rule) -> str:
    """The text of a rule's page: all about it."""
    said = sections(rule)
    parts = [f"# {rule.code} {rule.name}", WRITTEN, said[""]]
    costs = f"Costs: {', '.join(rule.costs)}. " if rule.costs else ""
    parts.append(f"{costs}Fixes: {fixes(rule)}. [All rules](../rules.md).")
    if rule.switch:
        on = f"`--select {rule.code}`, or `{rule.switch} = true` in `[tool.fix-compile.fusions]`"
        parts.append(f"Off by default: {on} switches it on.")
    if rule.fixed_in:
        parts.append(f"No longer breaks on torch {'.'.join(map(str, rule.fixed_in))}.")
    parts += [f"## {heading}\n\n{said[heading]}" for heading in HEADINGS[:3] if heading in said]
    parts.append(removed(rule.code))
    if example := next((e for e in rule.invalid if e.after is not None), None):
        parts.append(f"## Example: {example.title}\n\n```diff\n{diff(example)}\n```")
    if rule.invalid:
        parts += tested(rule)
    if references := said.get(HEADINGS[3]):
        parts.append(f"## {HEADINGS[3]}\n\n{references}")
    return "\n\n".join(part for part in parts if part) + "\n"


def tested(rule: Rule) -> list[str]:
    """What the rule's examples show."""
    torch = re.search(r"^torch==(\S+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert torch is not None, "constraints.txt pins no torch"
    run = f"run before and after on torch {torch[1]} (`fix-compile selftest {rule.code}` runs them on yours)"
    parts = [f"## Tested\n\nRewritten or reported, and {run}:\n"]
    parts[-1] += "\n".join(f"\n- {e.title}{note(e)}" for e in rule.invalid).replace("\n\n", "\n")
    parts.append("Left alone:\n\n" + "\n".join(f"- {n.title}{_told(n)}" for n in rule.valid))
    return parts


def _told(miss: NearMiss) -> str:
    """How a near miss is left alone."""
    if miss.instead:
        return f" (`--unsafe`: `{miss.instead}`)"
    return " (reported)" if miss.reported else ""


def removed(code: str) -> str:
    """What the rule alone has removed from the models of each suite; nothing where that was not measured."""
    told = json.loads(ATTRIBUTION.read_text(encoding="utf-8")) if ATTRIBUTION.is_file() else {"rules": {}}
    found = told["rules"].get(code, {})
    lines = [
        f"{words} ({told['suites'][suite]} models with breaks, [this rule alone](../results/attribution.json)): "
        f"{effect(found[suite])}."
        for suite, words in SUITES.items()
        if suite in found
    ]
    return "\n".join(lines)


def effect(found: dict[str, Any]) -> str:
    """In words: safe fixes, what ``--unsafe`` adds, and what comes back without the rule when it does nothing alone."""
    safe, unsafe, together = found["safe"], found["unsafe"], found.get("together", {})
    if sums(safe) == sums(unsafe) == NOTHING:
        if together.get("graphs", 0) > 0 or together.get("events", 0) > 0:
            return f"nothing alone; without it {together['graphs']} graphs and {together['events']} breaks come back"
        return NOTHING if unsafe["measured"] else "it changes nothing that they run"
    words = sums(safe)
    return words if unsafe == safe else f"{words}; with `--unsafe` {sums(unsafe)}"


def sums(counts: dict[str, Any]) -> str:
    """The counts of one run."""
    recompiles = f"{counts['recompiles']} recompiles" if counts["recompiles"] > 0 else ""
    if not counts["models"]:
        return f"{recompiles} removed" if recompiles else NOTHING
    parts = [f"{counts['graphs']} graphs", f"{counts['events']} breaks", *filter(None, [recompiles])]
    return f"{', '.join(parts[:-1])} and {parts[-1]} removed, in {counts['models']} of them"


def note(example: Example) -> str:
    """What a reader has to know beside an example's title."""
    notes = ["reported only"] if example.after is None else ["unsafe"] if example.unsafe else []
    notes += [f"strategy {key}={value}" for key, value in example.strategies.items()]
    return f" ({', '.join(notes)})" if notes else ""


def index(rules: Sequence[Rule]) -> str:
    """The text of docs/rules.md."""
    said = (
        "Each rule has a page: what it does, why the pattern breaks compilation, how safe its fixes are, and what its "
        "examples,\nwhich are executed, show. `fix-compile rules FC101` tells the same in the terminal."
    )
    return "\n\n".join(["# Rules", WRITTEN, said, table(rules, "rules")]) + "\n"


def fixture_diff() -> str:
    """What a default run changes in a fixture; tests hold its ``after.py`` to what the tool writes."""
    before, after = ((ROOT / "fixtures" / FIXTURE / f"{w}.py").read_text().splitlines() for w in ("before", "after"))
    lines = list(difflib.unified_diff(before, after, "a/model.py", "b/model.py", lineterm="", n=1))
    hunks = [number for number, line in enumerate(lines) if line.startswith("@@")]
    return "\n".join(["```diff", *lines[: hunks[SHOWN]], "```"])


def between(text: str, start: str, end: str, new: str) -> str:
    """``text`` with ``new`` between two markers."""
    before, found, rest = text.partition(start)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"README.md has lost its markers {start!r} and {end!r}")
    return f"{before}{start}\n\n{new}\n\n{end}{after}"


def readme(text: str) -> str:
    """README.md with fresh figures and a fresh diff between their markers."""
    for name, new in measured.blocks(measured.claims()).items():
        text = between(text, *(marker.format(name) for marker in CLAIMS), new)
    return between(text, DIFF_START, DIFF_END, fixture_diff())


CAPTURED_HEAD = """# What gets into a graph

<!-- Written by docs/generate.py from patcher/facts/tables/captured.json, which docs/tables/captured.py makes. -->

Which ways of asking for a tensor's data PyTorch takes into one graph, found out by running each of them: by default,
with `capture_scalar_outputs` (scalars) and `capture_dynamic_output_shape_ops` (shapes), with both (flags), with
`allow_rnn`, with these three, with `trace_autograd_ops`, with functions that print in `reorderable_logging_functions`
or `ignore_logging_functions`; with `fullgraph=True`, with `torch.export` in strict mode; and whether `torch.jit.script`
compiles it. What a setting takes in, FC710 may set. `python docs/tables/captured.py --into
patcher/facts/tables/captured.json` makes it again, for the torch that is installed; a test compares."""
SHORT = {
    "default": "default",
    "both flags": "flags",
    "capture_scalar_outputs": "scalars",
    "capture_dynamic_output_shape_ops": "shapes",
    "allow_rnn": "rnn",
    "all three": "three",
    "trace_autograd_ops": "autograd",
    "reorderable_logging_functions": "reordered",
    "ignore_logging_functions": "ignored",
    "fullgraph": "fullgraph",
    "export strict": "export",
    "script": "script",
}

#: Of a table that was made before there were more.
OLD = ("default", "both flags", "fullgraph", "export strict", "script")


def captured_page() -> str:
    """docs/captured.md."""
    parts = [CAPTURED_HEAD]
    for version, ways in CAPTURED.items():
        shown = {s: short for s, short in SHORT.items() if s in EXISTING.get(version, OLD)}
        lines = [f"| way | code | {' | '.join(shown.values())} |", "|" + "---|" * (len(shown) + 2)]
        for way, settings in ways.items():
            code = "; ".join(CODE[way].split("\n")).replace(":;", ":").replace("|", "\\|")
            marks = " | ".join("yes" if s in settings else "" for s in shown)
            lines.append(f"| {way} | `{' '.join(code.split())}` | {marks} |")
        parts.append(f"## torch {version}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1 when something is out of date")
    options = parser.parse_args()
    rules = sorted(load_rules(), key=lambda rule: rule.code)
    all_rules = [*OF_COMMENTS, *rules]
    pages = {ROOT / "docs" / "rules" / f"{rule.code}.md": page(rule) for rule in all_rules}
    texts = {
        **pages,
        ROOT / "docs" / "rules.md": index(all_rules),
        ROOT / "docs" / "facts.md": facts_page(),
        ROOT / "docs" / "captured.md": captured_page(),
        **measured.pages(options.check),
        ROOT / "README.md": readme((ROOT / "README.md").read_text(encoding="utf-8")),
    }
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    gone = sorted(set((ROOT / "docs" / "rules").glob("*.md")) - pages.keys())
    for path in stale:
        if not options.check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(texts[path], encoding="utf-8")
        print(f"{path.relative_to(ROOT)} {'is out of date: run `make docs`' if options.check else 'written'}")
    for path in gone:
        if not options.check:
            path.unlink()
        print(f"{path.relative_to(ROOT)} {'is of no rule: run `make docs`' if options.check else 'removed'}")
    sys.exit(1 if (stale or gone) and options.check else 0)


if __name__ == "__main__":
    main()
