"""What may be around the code of an example: blocks, decorators, subclasses, names that a module has bound itself.

``<h>``: a hazard; ``<s>``: statements of the example; ``<m>``: a method; ``<a>``, ``<x>``: as in `hazards`.
"""

from __future__ import annotations

import textwrap

#: What a hazard may stand in; "" leaves it bare. ``<h>`` is the hazard.
AROUND_HAZARD = (
    "",
    "if flag:\n    <h>",
    "if not flag:\n    <h>",
    "if self.training:\n    <h>",
    "if not self.training:\n    <h>",
    "if _turn():\n    <h>",
    "if torch.is_grad_enabled():\n    <h>",
    "if not torch.compiler.is_compiling():\n    <h>",
    "for _ in range(2):\n    <h>",
    "while True:\n    <h>\n    break",
    "try:\n    <h>\nexcept Exception:\n    pass",
    "try:\n    pass\nfinally:\n    <h>",
    "with torch.no_grad():\n    <h>",
    "with torch.enable_grad():\n    <h>",
)

#: What statements of the example may be put into. ``<s>`` are the statements.
AROUND_STATEMENTS = (
    "if flag:\n    <s>",
    "if not flag:\n    <s>",
    "if _turn():\n    <s>",
    "if self.training:\n    <s>",
    "for _again in range(2):\n    <s>",
    "for _again in range(0):\n    <s>",
    "for _again in range(2):\n    <s>\n    if _turn():\n        continue\n    <h>",
    "while True:\n    <s>\n    break",
    "try:\n    <s>\nexcept Exception:\n    pass",
    "try:\n    <s>\nexcept Exception:\n    return <x>",
    "try:\n    <s>\nexcept (ValueError, RuntimeError, IndexError, AssertionError):\n    return None",
    "try:\n    <s>\nfinally:\n    <h>",
    "try:\n    <s>\nexcept Exception:\n    <h>",
    "with torch.no_grad():\n    <s>",
    "with torch.enable_grad():\n    <s>",
    "with torch.inference_mode():\n    <s>",
    "with torch.set_grad_enabled(not torch.is_grad_enabled()):\n    <s>",
    'with torch.autocast("cpu", dtype=torch.bfloat16):\n    <s>',
    "with _context(<x>):\n    <s>",
    "with contextlib.suppress(Exception):\n    <s>",
    "with contextlib.suppress(Exception):\n    <s>\n    <h>\n    raise ValueError",
    "if True:\n    <s>",
    "def _inner():\n    <s>\n_inner()",
)


def _decorated(body: str) -> tuple[str, str]:
    inside = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    lines = ("def _decorated(fn):", "    @functools.wraps(fn)", "    def inner(*args, **kwargs):", inside)
    return "@_decorated", "\n".join((*lines, "    return inner", ""))


#: Decorators, with the code that they need above.
DECORATORS = (
    ("@torch.no_grad()", ""),
    ("@torch.enable_grad()", ""),
    ("@torch.inference_mode()", ""),
    _decorated("""
        with torch.enable_grad():
            return fn(*args, **kwargs)
        """),
    _decorated("""
        fn(*args, **kwargs)
        return fn(*args, **kwargs)
        """),
    _decorated("""
        try:
            return fn(*args, **kwargs)
        except Exception:
            return args[-1]
        """),
    _decorated("""
        out = fn(*args, **kwargs)
        if isinstance(args[-1], torch.Tensor):
            args[-1].fill_(1)
        return out
        """),
    _decorated("return fn(*args, **kwargs), 1"),
)


def _built(*lines: str) -> str:
    first = ("def __init__(self, *args, **kwargs):", "    super().__init__(*args, **kwargs)")
    return "\n".join((*first, *(f"    {line}" for line in lines)))


def _called(*lines: str) -> str:
    return "\n".join(("def <m>(self, *args, **kwargs):", *(f"    {line}" for line in lines)))


#: Bodies of a subclass that takes the place of the class.
OVERRIDES = (
    _built("self.<a> = self.<a> * 2"),
    _built("self.<a> = torch.tensor(3)"),
    _built("self.<a> = 3"),
    _built("setattr(self, '<a>', 2)"),
    _built("self.register_buffer('<a>', torch.tensor(2))"),
    _built("for b in self.buffers():", "    b.add_(1)"),
    _built("self.double()"),
    _called(
        "out = super().<m>(*args, **kwargs)",
        "for arg in args:",
        "    if isinstance(arg, torch.Tensor):",
        "        arg.fill_(1)",
        "return out",
    ),
    _called("try:", "    return super().<m>(*args, **kwargs)", "except Exception:", "    return args[0]"),
    _called("self.<a> = self.<a> + 1", "return super().<m>(*args, **kwargs)"),
    _called("with torch.enable_grad():", "    return super().<m>(*args, **kwargs)"),
    _called("for b in self.buffers():", "    b.mul_(2)", "return super().<m>(*args, **kwargs)"),
    """\
@property
def <a>(self):
    return 2

@<a>.setter
def <a>(self, value):
    pass
""",
    """\
def __getattr__(self, name):
    return super().__getattr__(name) * 1 if name == '<a>' else super().__getattr__(name)
""",
    """\
def __setattr__(self, name, value):
    super().__setattr__(name, value + 1 if name == '<a>' else value)
""",
)

#: Names that a module may have bound to something of its own.
SHADOWS = (
    "def len(value):\n    return 2\n",
    "def int(value):\n    return 1\n",
    "def float(value):\n    return 0.5\n",
    "def bool(value):\n    return True\n",
    "def max(*values):\n    return values[-1]\n",
    "def min(*values):\n    return values[0]\n",
    "def range(*values):\n    return [0]\n",
    "def enumerate(values):\n    return [(0, value) for value in values]\n",
    "def isinstance(value, kind):\n    return False\n",
    "def sum(values):\n    return 1\n",
    "def getattr(*values):\n    return None\n",
    """\
def print(*values):
    for value in values:
        if isinstance(value, torch.Tensor):
            value.fill_(1)
""",
    """\
torch = types.SimpleNamespace(**{name: getattr(torch, name) for name in dir(torch)})
torch.where = lambda c, a, b: b
""",
    """\
class _Logger:
    def __init__(self):
        self.seen = []

    def __getattr__(self, name):
        return self.seen.append


logger = log = logging = _Logger()
""",
)

#: What the code of hazards may need at the top of the module: imports, and code by what uses it.
HEADER = "import contextlib\nimport functools\nimport operator\nimport types\nimport numpy as np\n"
SUPPORT = {
    "_turn()": """\
TURNS = []


def _turn():
    TURNS.append(1)
    return len(TURNS) % 2 == 0
""",
    "_context(": """\
@contextlib.contextmanager
def _context(value):
    with torch.enable_grad():
        yield value
    if isinstance(value, torch.Tensor):
        value.fill_(1)
""",
}
