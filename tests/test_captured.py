"""What gets into a graph: the table is what this torch does, and what TorchScript refuses is read from it."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
from pathlib import Path

import pytest
import torch

from docs.tables import captured
from patcher.facts import Facts
from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise
from patcher.facts.tables.captured import CAPTURED, CODE
from patcher.facts.zones.scripting import Scripting
from patcher.settings import Settings
from tests.dynamo import FOLDER

VERSION = ".".join(torch.__version__.split(".")[:2])


def rows() -> dict[str, dict[str, bool]]:
    """The rows for this torch, made once for each version of it and of the program."""
    made_by = f"{inspect.getsource(captured)}{torch.__version__}"
    kept = FOLDER / f"captured-{hashlib.sha256(made_by.encode()).hexdigest()[:16]}.json"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(captured.rows()))
    return dict(json.loads(kept.read_text()))


def test_the_table_is_what_this_torch_does() -> None:
    table = Path(inspect.getfile(Facts)).parent / "tables" / "captured.json"
    known = json.loads(table.read_text(encoding="utf-8"))
    assert VERSION in CAPTURED, "python docs/tables/captured.py --into patcher/facts/tables/captured.json"
    if captured.made_by(known["torch"][VERSION], torch.__version__) != known["made_by"].get(VERSION):
        assert captured.document(rows(), torch.__version__, known) == known  # else the same has made the same rows
    assert captured.written(known) == table.read_text(encoding="utf-8")
    assert dict(CODE) == dict(captured.WAYS)


def facts_of(text: str, *others: str) -> Facts:
    files = {"model.py": text, **{f"other{i}.py": other for i, other in enumerate(others)}}
    project = Project([summarise(ast.parse(t), path) for path, t in files.items()])
    return Facts(ast.parse(text), "model.py", project, Settings(), frozenset())


PLAIN = "import torch\n\n\ndef f(x):\n    return x + 1\n"
PREPARED = "import torch\n\n\ndef g(x):\n    return x if torch.jit.is_scripting() else x + 1\n"


@pytest.mark.parametrize(("other", "near"), [("kit/parts/other.py", True), ("kit/other.py", False)])
def test_files_of_a_folder_are_near_each_other(other: str, near: bool, tmp_path: Path) -> None:
    (tmp_path / "kit" / "parts").mkdir(parents=True)
    for folder in ("kit", "kit/parts"):
        (tmp_path / folder / "__init__.py").touch()
    model, tree = str(tmp_path / "kit" / "parts" / "model.py"), ast.parse(PLAIN)
    project = Project([summarise(tree, model), summarise(ast.parse(PREPARED), str(tmp_path / other))])
    facts = Facts(tree, model, project, Settings(), frozenset())
    assert bool(facts.ask(Scripting).why(facts.syntax.functions[0])) is near


def test_code_is_scripted_where_something_near_it_is_prepared_for_that() -> None:
    def why(text: str, *others: str) -> str:
        facts = facts_of(text, *others)
        return facts.ask(Scripting).why(facts.syntax.functions[0])

    assert why(PLAIN) == ""
    assert why(PLAIN, PREPARED) == ""
    assert why(PREPARED)
    assert why(f"import other0\n{PLAIN}", PREPARED)
    assert why(PLAIN, f"from model import f\n{PREPARED}")
    assert why(f"from torch.jit import annotate\n{PLAIN}")
    assert why(f"{PLAIN}\n\nscripted = torch.jit.script(f)\n")
    named = "import model\n" + PREPARED.replace("x + 1", "model.f(x)")
    assert why(PLAIN, named)
    assert why(PLAIN, named.replace("model.f", "model.h")) == ""
