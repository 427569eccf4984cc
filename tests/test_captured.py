"""What gets into a graph: the table is what this torch does, and code is matched with its rows."""

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
from patcher.facts.project.index import Project, summarise
from patcher.facts.tables.captured import CAPTURED, CODE, NOWHERE, UNSCRIPTED
from patcher.facts.zones.scripting import Scripting
from patcher.facts.zones.uncaptured import UncapturedReads
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


def test_reads_are_captured_somewhere_and_decisions_are_not() -> None:
    assert {"item", "tolist", "nonzero", "mask index", "if of an item that was a size", "assert"} & NOWHERE == set()
    assert {"if of a tensor", "range of an item", "tolist of nonzero", "loop over unique"} <= NOWHERE
    assert {"try", "lambda", "tolist"} <= UNSCRIPTED


#: Statements of a function of ``x`` and ``sizes``, both annotated as tensors; the way that is captured nowhere.
CERTAIN = {
    "if of a tensor": "if x.sum() > 0:\n    x = x * 2",
    "conditional expression of an item": "x = x * (1 if sizes.max().item() > 3 else 2)",
    "truth of an item": "n = sizes.sum().item()\nif not n:\n    x = x * 2",
    "range of an int": "for i in range(int(sizes.max())):\n    x = x + i",
    "range of an item": "n = sizes.max().item() // 2\nparts = [x for i in range(0, n + 1)]",
    "range of an element of tolist": "for h, w in sizes.tolist():\n    for i in range(h):\n        x = x + i * w",
    "range of an item of an element": "for row in sizes:\n    for i in range(row.item()):\n        x = x + i",
    "range of a shape": "found = sizes.nonzero()\nfor i in range(found.shape[0]):\n    x = x + i",
    "loop over unique": "for value in torch.unique(sizes):\n    x = x + value",
    "numbered loop over nonzero": "for i, row in enumerate(sizes.nonzero()):\n    x = x + i",
    "tolist of mask index": "x = x * len(sizes[sizes.long() > 2].tolist())",
    "groupby of numbered tolist": "for key, part in itertools.groupby(enumerate(sizes.tolist()), f):\n    x = x + 1",
    "raise if of a tensor": "if x.sum() > 0:\n    raise ValueError",
    "if of an item": "x = inner(x)",
}
#: What looks like that, and some setting captures it, or it may not be asked.
NOT = {
    "only read": "x = x[: sizes.max().item()] * sizes.tolist()[0]",
    "of unknown size, and no more": "x = x[sizes.nonzero()[:, 0]] + torch.unique(sizes).sum()",
    "in an arm": "if flag:\n    for i in range(sizes.max().item()):\n        x = x + i",
    "in a loop that may not turn": "for layer in layers:\n    for i in range(sizes.max().item()):\n        x = x + i",
    "behind a return": "if flag:\n    return x\nif x.sum() > 0:\n    x = x * 2",
    "behind a continue": "for row in sizes:\n    if flag:\n        break\n    if row.item() > 2:\n        x = x * 2",
    "the item of what is given": "n = sizes.item()\nif n > 3:\n    x = x * 2",
    "of a constant": "if torch.tensor(3).sum().item() > 2:\n    x = x * 2",
    "of a constant with a name": "n = torch.tensor(flag)\nif n.sum().item() > 2:\n    x = x * 2",
    "compared with a size before": "n = sizes.max().item()\nx = x + torch.zeros(n)\nfor i in range(n):\n    x = x + i",
    "asserted before": "n = sizes.max().item()\nassert n == 3\nfor i in range(n):\n    x = x + i",
    "checked before": "n = sizes.max().item()\ntorch._check(n == 3)\nif n > 2:\n    x = x * 2",
    "a difference that is known": "n = sizes.max().item()\nif n - n > 2:\n    x = x * 2",
    "a difference that is known by another name": "n = sizes.max().item()\nm = n\nif n - m > 2:\n    x = x * 2",
    "compared with itself": "n = m = sizes.max().item()\nif n > m:\n    x = x * 2",
    "times nothing": "for i in range(sizes.max().item() * 0):\n    x = x + i",
    "a position": "for i, row in enumerate(sizes.tolist()):\n    if i > 3:\n        x = x * 2",
    "a number that may be none": "n = sizes.max().item() if flag else 3\nif n > 2:\n    x = x * 2",
    "a length that may be known": "if len(sizes.nonzero()) > 1:\n    x = x * 2",
    "asked for by nobody": "late = (x for i in range(sizes.max().item()))",
    "in a function that is not called": "def late():\n    return 1 if x.sum() > 0 else 2",
    "behind what may be caught": "try:\n    f(x)\n    if x.sum() > 0:\n        x = x * 2\nexcept ValueError:\n    pass",
    "in a context that may swallow an error": "with flag:\n    f(x)\n    if x.sum() > 0:\n        x = x * 2",
    "an annotated number": "if flag > sizes:\n    x = x * 2",
    "second in a condition": "if flag and x.sum() > 0:\n    x = x * 2",
    "of a list": "for i in range(layers[0].item()):\n    x = x + i",
    "counted up": "n = 0\nfor row in layers:\n    n = n + row.item()\nfor i in range(n):\n    x = x + i",
}
AROUND = """\
import itertools

import torch


def inner(x: torch.Tensor):
    if x.max().item() > 3:
        return x * 2
    return x


def outer(x: torch.Tensor, sizes: torch.Tensor, layers, flag, f):
{body}
    return x
"""


def facts_of(text: str, *others: str) -> Facts:
    files = {"model.py": text, **{f"other{i}.py": other for i, other in enumerate(others)}}
    project = Project([summarise(ast.parse(t), path) for path, t in files.items()])
    return Facts(ast.parse(text), "model.py", project, Settings(), frozenset())


def way(body: str) -> str:
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    facts = facts_of(AROUND.format(body=indented))
    outer = next(f for f in facts.syntax.functions if f.name == "outer")
    found = facts.ask(UncapturedReads).first(outer, outer.body[0], outer.body[-1])
    return found.way if found is not None else ""


@pytest.mark.parametrize("expected", CERTAIN)
def test_what_is_captured_nowhere_is_seen(expected: str) -> None:
    assert way(CERTAIN[expected]) == expected


@pytest.mark.parametrize("name", NOT)
def test_what_may_be_captured_is_left(name: str) -> None:
    assert way(NOT[name]) == ""


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
    eager = PREPARED.replace("return x if", "h = lambda: x\n    return x if")  # what is not scripted may be anything
    assert why(eager)
    refused = PLAIN.replace("return x + 1", "g = lambda: x\n    return g()")
    assert why(refused, f"from model import f\n{PREPARED}") == ""
    assert why(PLAIN.replace("x + 1", "sum(x.tolist())"), f"from model import f\n{PREPARED}")
    listed = PLAIN.replace("return x + 1", "n = x.tolist()\n    return n[0]")
    assert why(listed, f"from model import f\n{PREPARED}") == ""
    named = "import model\n" + PREPARED.replace("x + 1", "model.f(x)")
    assert why(PLAIN, named)
    assert why(PLAIN, named.replace("model.f", "model.h")) == ""
