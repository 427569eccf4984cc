"""What LongestSlice reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

_TEXT = '"compiled code cuts nothing off"'
_NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.lin = nn.Linear(4, 4)

    def forward(self, text: torch.Tensor, sizes: torch.Tensor):
"""
_REST = """\
        h = self.lin(self.embed(text))
        mask = torch.arange(h.shape[1]) < sizes[:, None]
        return (h * mask.unsqueeze(-1)).sum(1)
"""
_RUN = """\
def make(): return Net()
calls = [
    (torch.arange(12).reshape(2, 6) % 9, torch.tensor([6, 3])),
    (torch.arange(12).reshape(2, 6) % 9, torch.tensor([2, 6])),
]
"""


def _example(title: str, cut: str, whole: str = "text", dimension: int = 1, lengths: str = "sizes") -> Example:
    target = cut.partition(" = ")[0]
    bound = "" if target == whole else f"            {target} = {whole}\n"
    rest = _REST.replace("self.embed(text)", f"self.embed({target})")
    uncut = f"{lengths}.max() >= {whole}.shape[{dimension}]"
    after = (
        f"        if torch.compiler.is_compiling():\n            torch._assert_async({uncut}, {_TEXT})\n{bound}"
        f"        else:\n            {cut}\n"
    )
    return Example(
        title=title, before=f"{_NET}        {cut}\n{rest}", after=f"{_NET}{after}{rest}", run=_RUN, unsafe=True
    )


INVALID: tuple[Example, ...] = (
    _example("cut to the longest", "text = text[:, : sizes.max()]  # for data-parallel"),
    _example("under another name", "words = text[:, : sizes.max()]"),
    _example("read by its name", "text = text[:, : int(sizes.max())]"),
    _example("with item", "text = text[:, 0 : sizes.max().item()]"),
    _example("as a function of torch", "text = text[:, : torch.max(sizes)]"),
    _example("Python's own largest", "text = text[:, : max(sizes)]"),
    Example(
        title="the largest by a name",
        before=f"{_NET}        longest = sizes.max()\n        text = text[:, :longest]\n{_REST}",
        after=f"{_NET}        longest = sizes.max()\n"
        f"        if torch.compiler.is_compiling():\n"
        f"            torch._assert_async(sizes.max() >= text.shape[1], {_TEXT})\n"
        f"        else:\n            text = text[:, :longest]\n{_REST}",
        run=_RUN,
        unsafe=True,
    ),
    _example("the last dimension", "text = text[..., : sizes.max()]", dimension=-1),
)


def _miss(title: str, source: str, rest: str = _REST) -> NearMiss:
    return NearMiss(title=title, source=f"{_NET}{source}{rest}", reported=True)


VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="cut where a test says that there is something to cut",
        source="""\
class Net(nn.Module):
    def forward(self, text, lengths: torch.Tensor):
        longest = lengths.max()
        if longest != text.shape[1]:
            text = text[:, :longest]
        return text * 2
""",
    ),
    _miss("shortened before", "        sizes = sizes - sizes % 2\n        text = text[:, : max(sizes)]\n"),
    _miss(
        "shortened in between",
        "        longest = max(sizes)\n        sizes = sizes * 2\n        text = text[:, :longest]\n",
    ),
    _miss("the larger of two", "        longest = max(sizes.max(), 3)\n        text = text[:, :longest]\n"),
    _miss("one less than the longest", "        text = text[:, : sizes.max() - 1]\n"),
    _miss("the shortest", "        text = text[:, : sizes.min()]\n"),
    _miss("from the longest on", "        text = text[:, sizes.max() :]\n"),
    _miss("every second", "        text = text[:, : sizes.max() : 2]\n"),
    _miss("a row is picked as well", "        row = text[0, : sizes.max()]\n        text = text + row.sum()\n"),
    _miss("the longest of each", "        text = text[:, : sizes.max(0).values]\n"),
    _miss("what is cut is changed in shape", "        text = text[:, : sizes.max()]\n        text.squeeze_(0)\n"),
    _miss(
        "a number of the host",
        "        longest = max([3, 4])\n        text = text[:, :longest]\n        sizes = sizes.clamp(max=longest)\n",
    ),
    _miss(
        "cut in eager code only",
        "        if not torch.compiler.is_compiling():\n            text = text[:, : sizes.max()]\n",
    ),
)
