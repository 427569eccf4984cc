"""Which expressions are tensors by what is said of them near by: parameters, what functions return, loops."""

from __future__ import annotations

import ast

import pytest

from patcher.facts import Facts
from patcher.facts.numbers.likely_tensors import LikelyTensors
from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise
from patcher.facts.syntax.docstrings import tensors_documented
from patcher.settings import Settings


def is_likely(source: str) -> bool:
    """Whether what ``ask(...)`` is given in ``source`` is likely a tensor."""
    tree = ast.parse("import torch\n" + source)
    facts = Facts(tree, "model.py", Project([summarise(tree, "model.py")]), Settings(), frozenset())
    (asked,) = (c for c in facts.syntax.by_type[ast.Call] if isinstance(c.func, ast.Name) and c.func.id == "ask")
    return facts.ask(LikelyTensors).of(asked.args[0])


LIKELY = {
    "a docstring says so": '''
def f(x, lengths):
    """Pad.

    Args:
        lengths (LongTensor): how long each is.
    """
    ask(lengths)
''',
    "an element of what a docstring says": '''
def f(x, lengths):
    """:param torch.Tensor lengths: how long each is."""
    for i, (row, n) in enumerate(zip(x, lengths)):
        ask(n)
''',
    "used as one in its function": "def f(x, n):\n    y = n.new_zeros(3)\n    ask(n)",
    "handed a tensor, whatever the annotation": """
def f(x: torch.Tensor):
    for t in x:
        step(x, t)

def step(x, t: int):
    ask(t)
""",
    "of a static method": """
class Net:
    def f(self, x: torch.Tensor):
        return self.step(3, x[0])

    @staticmethod
    def step(n, t):
        ask(t)
""",
    "returned by a function of the file": """
def last(x: torch.Tensor):
    if x is None:
        return None
    return x[-1]

def f(x):
    ask(last(x))
""",
    "the second of what one returns": """
def both(x: torch.Tensor):
    return x.shape, x.sum()

def f(x):
    size, total = both(x)
    ask(total)
""",
    "returned where it is used as one, handed who knows what": """
def rows(t):
    t.new_zeros(3)
    return t

def f(x, thing):
    ask(rows(thing.part))
""",
    "a method of a tensor that arrays have too": """
def f(x: torch.Tensor):
    ask(x.diff())
""",
    "an attribute that all methods set to one": """
class Steps:
    def __init__(self, steps):
        self.steps = None

    def set(self, steps, device):
        self.steps = torch.from_numpy(steps).to(device)

    def f(self):
        ask(self.steps)
""",
    "behind a test that says so": """
def f(x, n):
    n.new_zeros(3)
    if not torch.is_tensor(n):
        return x
    ask(n)
""",
}
UNLIKELY = {
    "another call of the same helper hands a tensor over": """
def default(value, other):
    return value if value is not None else other

def f(x: torch.Tensor, mask, length):
    default(mask, x * 2)
    ask(default(length, x.shape[0]))
""",
    "another call of the same helper, by statements and a keyword": """
def default(value, other=None):
    if value is not None:
        return value
    return other

def f(x: torch.Tensor, mask, name):
    default(mask, other=x * 2)
    n = default(name, other="")
    ask(n)
""",
    "an attribute that one method sets to something else": """
class Steps:
    def __init__(self, steps):
        self.steps = list(steps)

    def set(self, steps, device):
        self.steps = torch.from_numpy(steps).to(device)

    def f(self):
        ask(self.steps)
""",
    "an attribute that an initialiser is handed, where another one is handed a tensor": """
class Crop:
    def __init__(self, length):
        super().__init__()
        self.length = length

    def f(self):
        ask(self.length)

class Other(Crop):
    def __init__(self, x: torch.Tensor):
        super().__init__(x)
""",
    "an attribute that is only made of itself": """
class Steps:
    def f(self):
        self.steps = self.steps + 1
        ask(self.steps)
""",
    "a method of an array": """
def f(x):
    ask(x.diff())
""",
    "a test says that it is none": """
def f(x, n):
    if torch.is_tensor(n):
        n.new_zeros(3)
    else:
        ask(n)
""",
    "a test has said that it is none, and left": """
def f(x, n):
    if torch.is_tensor(n):
        return n.new_zeros(3)
    ask(n)
""",
    "a test says that it is a number": """
def f(x, n):
    if not isinstance(n, (int, float)):
        return n.new_zeros(3)
    ask(n)
""",
    "a method of that name of another class is handed one": """
class Plain:
    def extend(self, x):
        return x * 2

    def f(self, x: torch.Tensor):
        return self.extend(x)

class Stream:
    def extend(self, length):
        ask(length)

    def f(self, x: torch.Tensor):
        return self.extend(x.shape[1] + 1)
""",
    "a docstring that calls do not keep to": '''
def cut(x, n):
    """Args:
        n (Tensor): how many.
    """
    ask(n)

def f(x: torch.Tensor):
    cut(x, 3)
    cut(x, x.shape[1])
''',
    "annotated as a number, handed one": """
def f(x: torch.Tensor):
    step(x.shape[0])

def step(n: int):
    ask(n)
""",
    "annotated as a number; something else of that name is handed a tensor": """
def f(other, x: torch.Tensor):
    other.step(x)

def step(n: int):
    ask(n)
""",
    "annotated as a number, handed something out of a dictionary": """
def f(x: dict[str, torch.Tensor]):
    step(x["size"])

def step(n: int):
    ask(n)
""",
    "a static method has no parameter for the instance": """
class Net:
    def f(self, x: torch.Tensor):
        return self.step(x, 3)

    @staticmethod
    def step(t, n):
        ask(n)
""",
    "a tensor for a tensor alone": """
def size(x):
    if isinstance(x, torch.Tensor):
        return x.sum()
    return 3

def f(x):
    ask(size(x))
""",
    "a size that one returns": """
def both(x: torch.Tensor):
    return x.shape[0], x.sum()

def f(x):
    size, total = both(x)
    ask(size)
""",
    "a function that calls itself": """
def deep(x):
    return deep(x)

def f(x):
    ask(deep(x))
""",
    "a docstring that says what it is for": '''
def f(x, n):
    """Args:
        n: number of rows of the tensor.
    """
    ask(n)
''',
}


@pytest.mark.parametrize("source", LIKELY.values(), ids=LIKELY)
def test_it_is_likely_a_tensor(source: str) -> None:
    assert is_likely(source)


@pytest.mark.parametrize("source", UNLIKELY.values(), ids=UNLIKELY)
def test_it_is_not_told_to_be_one(source: str) -> None:
    assert not is_likely(source)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("x (Tensor): rows", {"x"}),
        ("x (torch.FloatTensor of shape (n, 3), optional): rows", {"x"}),
        ("x (`torch.Tensor` of shape `(n, width)`): rows", {"x"}),
        ("a, b (LongTensor): rows", {"a", "b"}),
        ("x : torch.Tensor", {"x"}),
        ("x: a boolean tensor of shape (n,)", {"x"}),
        ("x: (n, t) int64 tensor", {"x"}),
        ("x (bool mask tensor): rows", {"x"}),
        ("x: a float attention tensor", {"x"}),
        (":param Tensor x: rows", {"x"}),
        (":type x: torch.Tensor", {"x"}),
        ("x (int): size of the tensor", set()),
        ("x (int or Tensor): either", set()),
        ("x (list of Tensor): several", set()),
        ("x (list[Tensor]): several", set()),
        ("x: whether to return a tensor", set()),
        ("x: tensor dtype", set()),
        ("x: the number of tensor dimensions", set()),
        ("x: rows of a tensor", set()),
        ("x (Module): makes a tensor", set()),
    ],
)
def test_what_a_docstring_calls_a_tensor(line: str, names: set[str]) -> None:
    (function,) = ast.parse(f'def f(x, a, b):\n    """Do it.\n\n    Args:\n        {line}\n    """\n').body
    assert isinstance(function, ast.FunctionDef)
    assert tensors_documented(function) == names
