"""What is generated from the rules is up to date, and the README's commands exist."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import yaml

from patcher import cli
from patcher.rule import Rule

ROOT = Path(__file__).resolve().parent.parent


def test_generated_documents_are_fresh() -> None:
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_make_command_in_the_documents_is_a_target() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for document in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"):
        named = set(
            re.findall(r"(?:`|^|\s)make ([a-z]+)\b(?=[`\s]|$)", _code((ROOT / document).read_text(encoding="utf-8")))
        )
        assert named <= targets, f"{document} names {named - targets}"


def _code(text: str) -> str:
    """The inline code and code blocks of a Markdown text."""
    return "\n".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL))


def _prose(text: str) -> str:
    """The rest."""
    return re.sub(r"^(```+).*?^\1\s*$|`[^`\n]+`", "", text, flags=re.DOTALL | re.MULTILINE)


def test_links_between_documents_lead_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#\s]+)", _prose(document.read_text(encoding="utf-8"))):
            if "://" not in link:
                assert (document.parent / link).exists(), f"{document.name} links to {link}"


def test_options_in_the_documents_exist(capsys: pytest.CaptureFixture[str]) -> None:
    """Those of each command that stands on a line of its own."""
    helps: dict[str, str] = {}

    def help_of(word: str) -> str:
        if word not in helps:
            cli.main((), [*filter(None, [word]), "--help"])
            helps[word] = capsys.readouterr().out
        return helps[word]

    words = set(re.findall(r"^    ([a-z-]+) ", help_of(""), re.MULTILINE))
    assert {"check", "diagnose", "fleet"} <= words
    commands = 0
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        text = document.read_text(encoding="utf-8")
        for command in re.findall(r"^(?:\$ |    )fix-compile ([^#\s].*?)(?:\s+#\s.*)?$", text, re.MULTILINE):
            word = first if (first := command.split()[0]) in words else ""
            options = re.findall(r"(?<!\S)--?[a-z][a-z-]*", command)
            missing = [o for o in options if not re.search(rf"(?<![\w-]){o}(?![\w-])", help_of(word))]
            assert not missing, f"{document.name}: fix-compile {command}: there is no {missing}"
            commands += 1
    assert commands > 60


def test_the_example_of_a_rule_declares_what_every_rule_must() -> None:
    needed = {name for name in Rule.__annotations__ if not hasattr(Rule, name)}
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (example,) = (node for block in blocks for node in ast.parse(textwrap.dedent(block)).body)
    assert isinstance(example, ast.ClassDef)
    targets = [t for s in example.body if isinstance(s, ast.Assign) for t in s.targets]
    declared = {t.id for t in targets if isinstance(t, ast.Name)}
    assert declared == needed


def test_the_workflow_runs_what_a_change_has_to_pass() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    (job,) = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    assert job["env"]["TORCH"].split()[0] in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()


def test_issue_forms_are_forms() -> None:
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*_*.yml"))
    assert [form.stem for form in forms] == ["missed_break", "wrong_rewrite"]
    for form in forms:
        document = yaml.safe_load(form.read_text(encoding="utf-8"))
        assert {"name", "description", "body"} <= document.keys()
        asked = [part for part in document["body"] if part["type"] != "markdown"]
        assert {part["type"] for part in asked} <= {"textarea", "input", "dropdown", "checkboxes"}
        assert len({part["id"] for part in asked}) == len(asked)
        assert all(part["attributes"]["label"] for part in asked)


def test_texts_are_in_the_terms_of_the_field() -> None:
    old = re.compile(
        r"ends? the graph|the graph ends|function is given up|known only when the code runs|taken for granted: "
    )
    files = [
        file
        for top in ("patcher", "rules", "docs")
        for file in (ROOT / top).rglob("*")
        if file.suffix in (".py", ".md")
    ]
    texts = {file.relative_to(ROOT): file.read_text(encoding="utf-8") for file in files if "results" not in file.parts}
    assert not [f"{file}: {found[0]}" for file, text in texts.items() if (found := old.search(text))]
