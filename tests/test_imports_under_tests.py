"""New code says a module by the name of an import only where that import has run."""

from __future__ import annotations

from textwrap import indent

import pytest
import torch

from patcher.edit.engine import patch
from patcher.settings import Settings
from rules import load_rules

HEAD = "import numpy as np\nfrom torch import nn\n"
NET = """\
class Net(nn.Module):
    def forward(self, x):
        x = x.relu()
        print("shape", x.shape)
        return x.reshape(-1, int(np.prod(x.shape[1:])))
"""
BOTH = "import math\nimport torch\n"
INSIDE = indent(BOTH, "    ")
SCRIPT = f'if __name__ == "__main__":\n{INSIDE}\n    Net()(torch.ones(math.ceil(3.2)))\n'


@pytest.mark.parametrize(
    ("text", "added"),
    [
        (HEAD + NET + SCRIPT, True),  # what runs as a script imports it there
        (f"{HEAD}DEBUG = False\nif DEBUG:\n{INSIDE}{NET}", True),
        (f"{HEAD}if nn is None:\n{INSIDE}else:\n{indent(NET, '    ')}", True),
        (HEAD + BOTH + NET + SCRIPT, False),
        (f"{HEAD}if nn:\n{INSIDE}else:\n{INSIDE}{NET}", False),
        (f"{HEAD}if nn:\n{INSIDE}HALF = math.pi / 2\nCPU = torch.device('cpu')\n{NET}", False),
        (f"{HEAD}if nn:\n{INSIDE}{indent(NET, '    ')}", False),
    ],
)
def test_where_an_import_may_not_have_run(text: str, added: bool) -> None:
    result = patch(text, "net.py", load_rules(), Settings())
    assert {f.code for f in result.fixed} == {"FC602", "FC615"}
    more = [result.text.count(name) - text.count(name) for name in ("import math\n", "import torch\n")]
    assert more == ([1, 1] if added else [0, 0])


ATTENTION = """\
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    {decorated}
    def forward(self, x):
        {within}:
            return F.scaled_dot_product_attention(x, x, x)
"""
CALL = "torch.backends.cuda.sdp_kernel(enable_math=True)"
NEW = "from torch.nn.attention import SDPBackend, sdpa_kernel\n"


@pytest.mark.parametrize("below", [f'if __name__ == "__main__":\n    {NEW}    print(sdpa_kernel)\n', NEW])
@pytest.mark.parametrize("as_decorator", [False, True])
def test_names_that_are_imported_later_or_never(below: str, as_decorator: bool) -> None:
    decorated = f"@{CALL}" if as_decorator else "# as it is"
    text = ATTENTION.format(decorated=decorated, within="if True" if as_decorator else f"with {CALL}") + below
    result = patch(text, "net.py", load_rules(), Settings())
    assert {f.code for f in result.fixed} == {"FC616"}
    module: dict[str, object] = {"__name__": "net"}
    exec(compile(result.text, "net.py", "exec"), module)  # the decorator needs its names here
    x = torch.ones(1, 2, 3, 4)
    assert module["Net"]()(x).equal(x)  # type: ignore[operator]
