"""Hazards in the rules' examples: what safe fixes make of them stays the same program. `tests/fuzz` is the instrument.

A longer search: ``python -m tests.fuzz --seed 1 --mutants 20000``.
"""

from __future__ import annotations

import ast

import pytest

from patcher.harness.examples import PREAMBLE
from rules import load_rules
from tests.fuzz.__main__ import told
from tests.fuzz.compare import differences
from tests.fuzz.execute import AS_IT_IS, Way, observe
from tests.fuzz.hazards import HAZARDS, Hazard
from tests.fuzz.judge import SAID, Said, kind_of
from tests.fuzz.search import search, tallied
from tests.fuzz.surroundings import AROUND_HAZARD, AROUND_STATEMENTS, DECORATORS, OVERRIDES, SHADOWS, SUPPORT

MUTANTS = 150
SEED = 13

MODULE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x):
        {}
"""
RUN = "def make(): return Net()\ncalls = [(torch.ones(2, 2),), (torch.arange(4.0).view(2, 2),)]"
TRAINED = RUN + "\ntrain = True"
COMPILING = Way(compiling=True)

#: original, patched, how it is run, the kind of difference that must be seen (None: there is none)
UNEQUAL = [
    ("return x + 1", "return x + 1", RUN, AS_IT_IS, None),
    ("return x + 1", "return x.add(1)", RUN, AS_IT_IS, None),
    ("return x + 1", "return x + 2", RUN, AS_IT_IS, "result"),
    ("return x + 1", "return x.double() + 1", RUN, AS_IT_IS, "result"),
    ("return x + 1", "return x[None] + 1", RUN, AS_IT_IS, "result"),
    ("return x, 1", "return [x, 1]", RUN, AS_IT_IS, "result"),
    ("return x / 0", "return x / 0", RUN, AS_IT_IS, None),
    ("return x / x", "return torch.ones_like(x)", RUN, AS_IT_IS, "result"),
    ("return x", "return x.clone()", RUN, AS_IT_IS, "aliasing"),
    ("return self.seen", "return self.seen.clone()", RUN, AS_IT_IS, "aliasing"),
    ("return x.view(-1)", "return x.view(-1)", RUN, AS_IT_IS, None),
    ("return x.add_(1) * 1", "return x + 1", RUN, AS_IT_IS, "argument"),
    ("self.seen.add_(1)", "pass", RUN, AS_IT_IS, "state"),
    ("self.seen = self.seen + 1", "self.more = 1", RUN, AS_IT_IS, "state"),
    ("pass", "self.more = 1", RUN, AS_IT_IS, None),
    ("raise ValueError", "pass", RUN, AS_IT_IS, "returns"),
    ("pass", "raise ValueError", RUN, AS_IT_IS, "raises"),
    ("raise ValueError", "raise TypeError", RUN, AS_IT_IS, None),
    ("print(1)", "pass", RUN, AS_IT_IS, "printed"),
    ("print(1)", "pass", RUN, COMPILING, None),
    ("return self.lin(x)", "return self.lin(x.detach())", TRAINED, AS_IT_IS, None),
    ("return self.lin(x)", "return self.lin(x).detach()", TRAINED, AS_IT_IS, "result"),
    ("return self.lin(x)", "return self.lin(x).detach() + self.lin(x) * 0", TRAINED, AS_IT_IS, "gradient"),
    ("return x * 2", "return x * (3 if torch.compiler.is_compiling() else 2)", RUN, AS_IT_IS, None),
    ("return x * 2", "return x * (3 if torch.compiler.is_compiling() else 2)", RUN, COMPILING, "result"),
    ("assert x.sum() > 4", "torch._assert_async(x.sum() > 4)", RUN, COMPILING, None),
    (
        "try:\n            assert x.sum() > 4\n        except Exception:\n            return x",
        "try:\n            torch._assert_async(x.sum() > 4)\n        except Exception:\n            return x",
        RUN,
        COMPILING,
        "raises",
    ),
    ("return x * 2", "return x * 3", RUN, Way(dynamo=True), "result"),
]


@pytest.mark.parametrize(("original", "patched", "run", "way", "kind"), UNEQUAL)
def test_what_differs_is_seen(original: str, patched: str, run: str, way: Way, kind: str | None) -> None:
    a, b = (observe(PREAMBLE + MODULE.format(body), run, way) for body in (original, patched))
    assert next((kind_of(label) for label, _ in differences(a, b, way)), None) == kind


def filled(code: str) -> str:
    return code.replace("<x>", "x").replace("<a>", "a").replace("<o>", "o").replace("<y>", "y").replace("<m>", "m")


@pytest.mark.parametrize("hazard", HAZARDS, ids=lambda hazard: hazard.name)
def test_a_hazard_is_python(hazard: Hazard) -> None:
    ast.parse(filled(hazard.now))
    ast.parse(filled(hazard.later))
    ast.parse(hazard.above)


def test_what_hazards_stand_in_is_python() -> None:
    for template in (*AROUND_HAZARD, *AROUND_STATEMENTS):
        ast.parse(filled(template).replace("<h>", "pass").replace("<s>", "pass"))
    for code in (*SHADOWS, *SUPPORT.values(), *map(filled, OVERRIDES)):
        ast.parse(code)
    for decorator, above in DECORATORS:
        ast.parse(f"{above}\n\n{decorator}\ndef f(): pass")


@pytest.mark.parametrize("said", SAID, ids=lambda said: said.code)
def test_an_error_that_goes_away_is_documented(said: Said) -> None:
    (rule,) = (rule for rule in load_rules() if rule.code == said.code)
    assert said.sentence in " ".join(str(rule.__doc__).split())


def test_no_safe_fix_changes_a_mutant() -> None:
    tally = tallied(search(SEED, MUTANTS, dynamo=0.0))
    assert tally.wrong == [], "\n".join(map(told, tally.wrong))
    assert tally.deaths == 0
    assert tally.rewritten > MUTANTS // 2, str(tally)
    assert tally.live > MUTANTS // 3, str(tally)
