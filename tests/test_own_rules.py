"""Rules of other packages: found where they are installed, examined, and what becomes of those that are wrong."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fix_compile
from patcher import cli
from patcher.facts import Facts
from patcher.own_rules.examined import PREAMBLE, examined
from patcher.own_rules.found import OwnRules, own_rules
from patcher.own_rules.skeleton import SkeletonError, skeleton
from patcher.rule import Rule
from rules import load_rules

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "own_rules"
OURS = load_rules()
HEAD = "import ast\nfrom fix_compile import Code, Example, Finding, Fix, NearMiss, Replace, Rule, Where\n"
RULE = '''

class {cls}(Rule):
    """Slow.

    What it does:
        ``{word}()`` becomes ``fast()``.

    Why it breaks compilation:
        It is slow.

    Fix safety:
        Safe.
    """

    code = "{code}"
    name = "{word}-call"
    triggers = (b"{word}(",)
    listens_to = (ast.Call,)
    costs = ("graph break",)
    where = Where.ANYWHERE
    invalid = (Example("a = {word}()\\n", "a = fast()\\n", "", "one"),)
    valid = (NearMiss("a = other()\\n", "another"),)

    def check(self, node, facts):
        if ast.unparse(node.func) == "{word}":
            yield Finding(node, "slow", Fix((Replace(node, Code("fast()")),)))
'''


def rule(code: str = "FC901", word: str = "slow", cls: str = "Slow") -> str:
    return RULE.format(code=code, word=word, cls=cls)


Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs packages as pip does: modules, metadata, entry points."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    before = set(sys.modules)

    def installed(project: str, entry: str, version: str = "1.0", **modules: str) -> None:
        metadata = site / f"{project.replace('-', '_')}-{version}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n")
        (metadata / "entry_points.txt").write_text(f"[fix_compile.rules]\n{project} = {entry}\n")
        for name, text in modules.items():
            path = site.joinpath(*name.split("__")).with_suffix(".py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        importlib.invalidate_caches()

    yield installed
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(site) in str(sys.modules[name].__file__):
            del sys.modules[name]


def codes(found: OwnRules) -> list[str]:
    return [one.code for one in found.rules]


def test_a_module_a_package_and_a_class_are_found(install: Install) -> None:
    install("b-rules", "b_rules", b_rules=HEAD + rule("FC902", "lame", "Lame"))
    install("a-rules", "a_rules", a_rules__one=HEAD + rule(), a_rules__two=HEAD)
    (Path(sys.path[0]) / "a_rules" / "__init__.py").write_text("")
    install("c-rules", "c_rules:Third", c_rules=HEAD + rule("ACME001", "late", "Third") + rule("FC903", "no", "No"))
    found = own_rules(OURS)
    assert found.problems == ()
    assert codes(found) == ["ACME001", "FC901", "FC902"]
    assert found.origins == {"FC901": "a-rules 1.0", "FC902": "b-rules 1.0", "ACME001": "c-rules 1.0"}
    assert found.packages["a-rules"] == ("FC901",)


#: What another package may do wrong -> the entry point, its module, and what is said of it.
WRONG: dict[str, tuple[str, str, str]] = {
    "no such module": ("nowhere", "", "nowhere cannot be loaded: ModuleNotFoundError: No module named 'nowhere'"),
    "crashes": ("bad", "1 / 0", "bad cannot be loaded: ZeroDivisionError: division by zero"),
    "ends Python": ("bad", "import sys; sys.exit(3)", "bad cannot be loaded: SystemExit: 3"),
    "no rule": ("bad", "x = 1", "bad defines no rule (a class that derives from fix_compile.Rule, with a code)"),
    "no class": ("bad:x", "x = 1", "bad:x is neither a rule nor a module with rules"),
    "no Rule": ("bad", "class A:\n    code = 'FC901'", "bad.A does not derive from fix_compile.Rule"),
    "our code": ("bad", HEAD + rule("FC101"), "bad.Slow: FC101 is not free, for FC0 to FC8 belong to fix-compile"),
    "our range": ("bad", HEAD + rule("FC899"), "bad.Slow: FC899 is not free"),
    "odd code": ("bad", HEAD + rule("slow1"), "bad.Slow: a code is capital letters and three or four digits (FC901)"),
    "our name": (
        "bad", HEAD + rule().replace("slow-call", "item-call"), "bad.Slow: the name 'item-call' is taken by FC201"
    ),
    "incomplete": ("bad", HEAD + rule().replace("    triggers", "    other"), "bad.Slow does not say its triggers"),
    "triggers of text": ("bad", HEAD + rule().replace('(b"', '("'), "bad.Slow: triggers must be a tuple of bytes"),
    "one trigger": ("bad", HEAD + rule().replace('",)\n    listens', '")\n    listens'), "bad.Slow: triggers must"),
    "no node": ("bad", HEAD + rule().replace("(ast.Call,)", "(str,)"), "bad.Slow: listens_to must be a tuple of"),
    "no example": ("bad", HEAD + rule().replace("invalid = (", "invalid = () or (1,"), "bad.Slow: invalid must be"),
    "cannot be made": (
        "bad", HEAD + rule() + "\n    def __init__(self):\n        raise KeyError('x')\n",
        "bad.Slow cannot be made: KeyError: 'x'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_one_line_and_the_others_go_on(install: Install, what: str) -> None:
    entry, module, said = WRONG[what]
    install("bad-rules", entry, **({"bad": module} if module else {}))
    install("good-rules", "good", good=HEAD + rule("FC902", "lame", "Lame"))
    found = own_rules(OURS)
    (problem,) = found.problems
    assert problem.startswith(f"bad-rules 1.0: {said}")
    assert "\n" not in problem
    assert codes(found) == ["FC902"]


def test_one_module_of_a_package_that_fails_leaves_the_others(install: Install) -> None:
    install("a-rules", "a_rules", a_rules__good=HEAD + rule(), a_rules__bad="import nothing_of_that_name")
    (Path(sys.path[0]) / "a_rules" / "__init__.py").write_text("")
    found = own_rules(OURS)
    assert codes(found) == ["FC901"]
    (problem,) = found.problems
    assert problem.startswith("a-rules 1.0: a_rules.bad cannot be imported: ModuleNotFoundError")


def test_the_first_package_keeps_a_code(install: Install) -> None:
    install("b-rules", "b_rules", b_rules=HEAD + rule("FC901", "lame", "Lame"))
    install("a-rules", "a_rules", a_rules=HEAD + rule())
    found = own_rules(OURS)
    assert found.origins == {"FC901": "a-rules 1.0"}
    assert found.problems == ("b-rules 1.0: b_rules.Lame: FC901 is taken by a-rules 1.0",)


def test_what_is_printed_while_loading_is_no_output(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install("a-rules", "a_rules", a_rules="print('hello')\n" + HEAD + rule())
    assert codes(own_rules(OURS)) == ["FC901"]
    assert capsys.readouterr() == ("", "hello\n")


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run the command line as it is installed, in an empty project."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "setup.cfg").write_text("")
    monkeypatch.chdir(project)

    def called(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fix-compile", *arguments])
        capfd.readouterr()
        status = fix_compile.main()
        return (status, *capfd.readouterr())

    return called


def test_they_take_part_and_are_listed_with_their_origin(install: Install, tool: Run) -> None:
    install("a-rules", "a_rules", a_rules=HEAD + rule())
    Path("m.py").write_text("a = slow()\n")
    status, out, _ = tool("check", "m.py")
    assert status == 1
    assert "m.py:1:5: FC901 [safe fix] slow" in out
    assert re.search(r"^FC901  slow-call +Slow\.\n +from a-rules 1\.0$", tool("rules")[1], re.MULTILINE)
    assert "It comes from a-rules 1.0." in tool("rules", "slow-call")[1]
    assert tool("fix", "m.py")[0] == 0
    assert Path("m.py").read_text() == "a = fast()\n"


def test_a_rule_that_crashes_is_one_line(install: Install, tool: Run) -> None:
    crash = rule("FC902", "lame", "Lame").replace("if ast", "raise KeyError('no such thing')\n        if ast")
    install("a-rules", "a_rules", a_rules=HEAD + rule() + crash)
    Path("m.py").write_text("lame()\nlame()\na = slow()\n")
    Path("n.py").write_text("lame()\n")
    status, out, err = tool("check", ".")
    assert status == 2
    assert "m.py:3:5: FC901 [safe fix] slow" in out
    told = "m.py:1: internal error in FC902, a bug in the package it comes from: KeyError: 'no such thing'"
    assert err.splitlines() == [f"{told} (and in 3 more places)"]


def test_what_cannot_be_used_is_a_failure_of_calls_with_rules(install: Install, tool: Run) -> None:
    install("a-rules", "a_rules", a_rules="import nothing_of_that_name")
    Path("m.py").write_text("a = 1\n")
    said = "error: a-rules 1.0: a_rules cannot be loaded: ModuleNotFoundError: No module named 'nothing_of_that_name'"
    assert tool("check", "m.py")[::2] == (2, f"fix-compile check: {said}\n")
    assert tool("rules", "FC101")[0] == 2
    assert "nothing_of" not in tool("restore")[2]


def test_selftest_of_a_package_that_is_not_there(install: Install, tool: Run) -> None:
    install("a-rules", "a_rules", a_rules=HEAD + rule())
    status, _, err = tool("selftest", "--rules", "a-rule")
    assert (status, err) == (
        2, "fix-compile selftest: error: --rules: no installed package with rules is called 'a-rule' "
        "(did you mean 'a-rules'?)\n",
    )  # fmt: skip


# --- what examples say ------------------------------------------------------------------------------------------------


def made(source: str) -> Rule:
    space: dict[str, Any] = {"__name__": "of_a_test"}
    exec(HEAD + source, space)
    found: Rule = space["Slow"]()
    return found


#: What an author gets wrong -> what is changed in a rule that is right, and what is said.
UNLIKE: dict[str, tuple[str, str, str]] = {
    "another text": ('"a = fast()\\n"', '"b = fast()\\n"', "example 'one': becomes something else than it says"),
    "nothing found": ('"a = slow()\\n"', '"a = slo()\\n"', "example 'one': nothing is found: none of its triggers"),
    "unstable": ('Code("fast()")', 'Code("slow()")', "example 'one': FC901 fails in line 1: its rewrite"),
    "crashes": ("yield Finding", "raise KeyError", "example 'one': FC901 fails in line 1: KeyError:"),
    "a near miss": ('"a = other()\\n"', '"a = slow()\\n"', "near miss 'another': it is rewritten"),
    "no heading": ("Fix safety:", "Safety:", "its docstring has no heading 'Fix safety'"),
    "no assumption": (
        "Fix((Replace(node, Code(\"fast()\")),))", "None", "a finding without a safe fix says in `assumption`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", UNLIKE)
def test_examined_says_what_is_not_as_the_examples_say(what: str) -> None:
    old, new, said = UNLIKE[what]
    source = rule()
    assert old in source
    changed = source.replace(old, new)
    if what == "no assumption":
        changed = changed.replace('"a = fast()\\n"', "None")
    told = examined(made(changed))
    assert any(line.startswith(said) or said in line for line in told), told


def test_examined_is_silent_about_what_is_right() -> None:
    assert examined(made(rule()), OURS) == ()


def test_our_own_rules_stand_the_examination_of_others() -> None:
    assert examined(next(one for one in OURS if one.code == "FC501")) == ()


def test_examples_stand_below_the_same_lines_as_where_they_run() -> None:
    run = (ROOT / "patcher" / "harness" / "examples.py").read_text(encoding="utf-8")
    assert f"PREAMBLE = {PREAMBLE!r}".replace("'", '"') in run


# --- the skeleton and the example package -----------------------------------------------------------------------------


def test_the_skeleton_stands_as_it_is(tool: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tool("new-rule", "FC902", "slow-call", "--package", "my_rules", "--into", "mine")[0] == 0
    found = sorted(str(path) for path in Path("mine").rglob("*") if path.is_file())
    assert found == [
        "mine/my_rules/__init__.py", "mine/my_rules/fc902_slow_call.py", "mine/pyproject.toml",
        "mine/tests/test_fc902_slow_call.py",
    ]  # fmt: skip
    monkeypatch.syspath_prepend("mine")
    module = importlib.import_module("my_rules.fc902_slow_call")
    assert examined(module.SlowCall(), OURS) == ()
    for text in (Path(name).read_text() for name in found if name.endswith(".py")):
        assert "@" not in text.replace("@dataclass", "")
        assert max(map(len, text.splitlines())) <= 120


def test_a_second_rule_goes_beside_the_first_and_nothing_is_overwritten(tool: Run) -> None:
    tool("new-rule", "FC902")
    assert tool("new-rule", "FC902") == (
        2, "", "new-rule: error: own_rules/fc902_my_pattern.py is there already; nothing was written\n",
    )  # fmt: skip
    status, out, err = tool("new-rule", "fc903", "other-pattern")
    assert (status, out) == (0, "own_rules/fc903_other_pattern.py\ntests/test_fc903_other_pattern.py\n")
    assert '[project.entry-points."fix_compile.rules"]\nown-rules = "own_rules"\n' in err


@pytest.mark.parametrize(
    ("code", "name", "package"),
    [("FC101", "a", "b"), ("X1", "a", "b"), ("FC901", "A B", "b"), ("FC901", "a", "../b"), ("FC901", "a", "B-c")],
)
def test_what_cannot_be_begun(code: str, name: str, package: str) -> None:
    with pytest.raises(SkeletonError):
        skeleton(code, name, package)


def test_the_example_package_does_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    module = importlib.import_module("house_rules.fc901_garbage_collection")
    assert examined(module.GarbageCollection(), OURS) == ()


# --- what stays -------------------------------------------------------------------------------------------------------

#: The questions that rules of other packages may ask, as docs/own-rules.md names them. To take one away, or a parameter
#: of one, breaks those rules: that is a new major version.
STABLE = {
    "Facts.compiled(node)", "Facts.eager_only(node)", "Facts.is_dead(node)", "Facts.value(expr)",
    "Facts.is_module_class(cls)", "facts.syntax.qualified(expr)", "facts.syntax.statement_of(node)",
    "facts.syntax.function_of(node)", "facts.syntax.class_of(function)", "facts.syntax.ancestors(node)",
    "facts.writing.spelling(what, at)", "facts.writing.fresh_name(wish, at)", "Certainty.of(e)",
    "Unchanged.why_changed(e, since, until)", "Effects.why_not_total(e)",
}  # fmt: skip


def test_the_stable_questions_are_those_of_the_page() -> None:
    page = (ROOT / "docs" / "own-rules.md").read_text(encoding="utf-8").partition("## What stays")[2]
    rows = [line for line in page.splitlines() if line.startswith("| ") and "`" in line]
    assert {
        ask for row in rows for ask in re.findall(r"`([\w.]+\([^)]*\))`", row.rpartition("|")[0].rpartition("|")[2])
    } == STABLE
    named = set(re.findall(r"`(\w+)`", page.partition("And these questions")[0].partition("say")[2]))
    assert named - {"fix_compile"} == set(fix_compile.__all__) - {"main"}


@pytest.mark.parametrize("question", sorted(STABLE))
def test_a_stable_question_takes_what_it_says(question: str) -> None:
    from patcher.facts.effects.writing import Writing
    from patcher.facts.syntax.tree import Syntax

    owners: dict[str, Any] = {"facts.syntax": Syntax, "facts.writing": Writing}
    name, _, given = question.partition("(")
    owner, _, method = name.rpartition(".")
    asked = inspect.signature(getattr(owners.get(owner) or getattr(fix_compile, owner), method)).parameters
    needed = [p.name for p in asked.values() if p.default is p.empty and p.name != "self"]
    assert needed == given.rstrip(")").split(", ")


@pytest.mark.parametrize("name", fix_compile.__all__)
def test_the_door_leads_to_what_the_engine_uses(name: str) -> None:
    thing = getattr(fix_compile, name)
    module = getattr(thing, "__module__", "") or ""
    assert module.partition(".")[0] in ("patcher", "typing", "fix_compile")


def test_the_door_has_no_other_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Checker'"):
        _ = fix_compile.Checker
    assert fix_compile.Facts is Facts


def test_the_door_is_light() -> None:
    """Rules are imported by each call: their door loads neither LibCST nor the command line."""
    script = "import sys, fix_compile; fix_compile.Rule; print(*sorted({'libcst', 'click', 'ast'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["ast"]


def test_the_command_line_takes_rules_without_packages() -> None:
    assert inspect.signature(cli.main).parameters["own"].default == OwnRules()
    assert ast.parse((ROOT / "fix_compile.py").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("word", "library"), [("server", "pygls"), ("mcp", "mcp")])
def test_an_extra_that_is_missing_is_one_line(
    tool: Run, monkeypatch: pytest.MonkeyPatch, word: str, library: str
) -> None:
    for name in [n for n in sys.modules if n.startswith(("patcher.editor", "patcher.assistants", f"{library}."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    status, out, err = tool(word)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"fix-compile {word}: error: ")
    assert err.endswith(f"; install it with: pip install 'fix-compile[{word}]'\n")
