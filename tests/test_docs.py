"""What is generated from the rules is up to date, and the README's commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

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


def test_links_between_documents_lead_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "rules").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#\s]+)", document.read_text(encoding="utf-8")):
            if "://" not in link:
                assert (document.parent / link).exists(), f"{document.name} links to {link}"
