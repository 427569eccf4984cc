"""Where a new import goes: beside its kind, in order, and never between statements."""

from __future__ import annotations

import ast

import pytest

from patcher.edit.edits import apply
from patcher.rule import Code, Fix, Replace, ReplaceStatements

CASES = {
    "among others": (
        "import glob\nimport os\n\nimport numpy as np\nfrom PIL import Image\n\nfrom mine import y\n",
        "import glob\nimport os\n\nimport numpy as np\nimport torch\nfrom PIL import Image\n\nfrom mine import y\n",
    ),
    "first of its kind, below": ("import glob\nimport os\n", "import glob\nimport os\n\nimport torch\n"),
    "between two kinds": (
        "import os\n\n# ours\nfrom . import a\n",
        "import os\n\nimport torch\n\n# ours\nfrom . import a\n",
    ),
    "in no order": (
        "import zlib\nfrom torch import nn\nimport os\n",
        "import torch\nimport zlib\nfrom torch import nn\nimport os\n",
    ),
    "several on a line": ("import os; import zlib; y = 1\n", "import torch\nimport os; import zlib; y = 1\n"),
    "below what is said of the file": (
        '# licence\n"""What."""\nfrom __future__ import annotations\n',
        '# licence\n"""What."""\nfrom __future__ import annotations\nimport torch\n',
    ),
    "none": ("", "import torch\n"),
    "not before what is set for it": (
        "import os\n\nos.environ.setdefault('A', 'b')\nimport json\nfrom torch import nn\n",
        "import os\n\nos.environ.setdefault('A', 'b')\nimport json\nimport torch\nfrom torch import nn\n",
    ),
    "not before what it is found by": (
        "import sys\nsys.path.append('.')\nimport torch.nn as nn\n",
        "import sys\nsys.path.append('.')\nimport torch\nimport torch.nn as nn\n",
    ),
    "carriage returns": ("import os\r\nimport zope\r\n", "import os\r\nimport torch\r\nimport zope\r\n"),
}


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_where_it_goes(before: str, after: str) -> None:
    ending = "\r\n" if "\r" in before else "\n"
    body = f"x = 1{ending}"
    text = before + body
    number = next(n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Assign) and n.targets[0].id == "x")  # type: ignore[attr-defined]
    patched = apply(text, [Fix((Replace(number.value, Code("2")),))], ["torch"])
    assert patched == after + body.replace("1", "2")


def test_above_all_where_an_import_is_changed() -> None:
    text = "import os\nimport zope\nx = zope\n"
    second = ast.parse(text).body[1]
    fix = Fix((ReplaceStatements((second,), (Code("import zope.event"), Code("import zope.interface"))),))
    assert (
        apply(text, [fix], ["torch"]) == "import torch\nimport os\nimport zope.event\nimport zope.interface\nx = zope\n"
    )
