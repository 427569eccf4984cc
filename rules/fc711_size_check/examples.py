"""Examples of FC711."""

from __future__ import annotations

from patcher.rule import Example, NearMiss
from patcher.settings import TorchSetting

_SCALARS = (TorchSetting("config", "capture_scalar_outputs"),)
_SHAPES = (TorchSetting("config", "capture_dynamic_output_shape_ops"),)
_SET_SCALARS = "torch._dynamo.config.capture_scalar_outputs = True\n"
_SET_SHAPES = "torch._dynamo.config.capture_dynamic_output_shape_ops = True\n"
_LENGTHS = """
def make():
    return Net()

calls = [
    (torch.ones(2, 4), torch.tensor([1, 3])),
    (torch.ones(2, 4), torch.tensor([2, 5])),
    (torch.ones(2, 4), torch.tensor([2, 55])),
    (torch.ones(2, 4), torch.tensor([-2, -55])),
]
"""
_ROWS = """
def make():
    return Net()

calls = [(torch.tensor([1.0, -1.0, 2.0, -2.0]) + by,) for by in (0.0, 9.0, -9.0)]
"""

INVALID: tuple[Example, ...] = (
    Example(
        title="a largest length, which becomes a size, and what a check makes known: unsafe",
        before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.limit = 16

    def forward(self, x, lengths: torch.LongTensor):
        most = lengths.max().item()
        if most > self.limit or most < 1:
            raise ValueError(f"There are too many steps. {most} are more than {self.limit}")
        if most > 0:  # it is
            x = x + 1
        steps = torch.arange(most)
        return x.sum(0) * (steps[None] < lengths[:, None]).sum()
""",
        after="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.limit = 16

    def forward(self, x, lengths: torch.LongTensor):
        most = lengths.max().item()
        if torch.compiler.is_compiling():
            torch._check(most <= self.limit, lambda: "There are too many steps.")
            torch._check(most >= 1, lambda: "There are too many steps.")
        elif most > self.limit or most < 1:
            raise ValueError(f"There are too many steps. {most} are more than {self.limit}")
        if most > 0:  # it is
            x = x + 1
        steps = torch.arange(most)
        return x.sum(0) * (steps[None] < lengths[:, None]).sum()
""",
        run=_SET_SCALARS + _LENGTHS,
        torch_settings=_SCALARS,
        unsafe=True,
    ),
    Example(
        title="set by the project, lengths one by one",
        before=_SET_SCALARS
        + """

class Net(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.LongTensor):
        for n in lengths.tolist():
            if n > 16:
                raise ValueError("too long")
            x = x * n
        return x
""",
        after=_SET_SCALARS
        + """

class Net(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.LongTensor):
        for n in lengths.tolist():
            if torch.compiler.is_compiling():
                torch._check(n <= 16, lambda: "too long")
            elif n > 16:
                raise ValueError("too long")
            x = x * n
        return x
""",
        run=_LENGTHS,
        unsafe=True,
    ),
    Example(
        title="rows under a mask",
        before="""class Net(nn.Module):
    def forward(self, x: torch.Tensor):
        kept = x[x > 0]
        if len(kept) == 0:
            raise ValueError("nothing is left")
        return kept.sum() * 2
""",
        after="""class Net(nn.Module):
    def forward(self, x: torch.Tensor):
        kept = x[x > 0]
        if torch.compiler.is_compiling():
            torch._check(len(kept) != 0, lambda: "nothing is left")
        elif len(kept) == 0:
            raise ValueError("nothing is left")
        return kept.sum() * 2
""",
        run=_SET_SHAPES + _ROWS,
        torch_settings=_SHAPES,
        unsafe=True,
    ),
    Example(
        title="assertions of a chain, of two, and with a message that is put together",
        before="""class Net(nn.Module):
    def forward(self, x, lengths: torch.LongTensor):
        most, least = int(lengths.max()), int(lengths.min())
        assert 0 < most <= 16, "lengths"
        assert least > 0 and least < 9
        assert most != 7, f"seven of {x.shape}"
        return x * most + least
""",
        after="""class Net(nn.Module):
    def forward(self, x, lengths: torch.LongTensor):
        most, least = int(lengths.max()), int(lengths.min())
        if torch.compiler.is_compiling():
            torch._check(0 < most, lambda: "lengths")
            torch._check(most <= 16, lambda: "lengths")
        else:
            assert 0 < most <= 16, "lengths"
        if torch.compiler.is_compiling():
            torch._check(least > 0)
            torch._check(least < 9)
        else:
            assert least > 0 and least < 9
        if torch.compiler.is_compiling():
            torch._check(most != 7)
        else:
            assert most != 7, f"seven of {x.shape}"
        return x * most + least
""",
        run=_SET_SCALARS + _LENGTHS,
        torch_settings=_SCALARS,
        unsafe=True,
    ),
    Example(
        title="with an else",
        before="""class Net(nn.Module):
    def forward(self, x, lengths: torch.LongTensor):
        n = int(lengths.max())
        if n == 7:
            raise ValueError("seven")
        else:
            x = x + 1
        return x * n
""",
        after="""class Net(nn.Module):
    def forward(self, x, lengths: torch.LongTensor):
        n = int(lengths.max())
        if torch.compiler.is_compiling():
            torch._check(n != 7, lambda: "seven")
        if not torch.compiler.is_compiling() and n == 7:
            raise ValueError("seven")
        else:
            x = x + 1
        return x * n
""",
        run=_SET_SCALARS + _LENGTHS,
        torch_settings=_SCALARS,
        unsafe=True,
    ),
    Example(
        title="a flag",
        before="""class Net(nn.Module):
    def forward(self, x):
        wrong = bool((x > 5).any())
        if wrong:
            raise ValueError("too large")
        return x * 2
""",
        after="""class Net(nn.Module):
    def forward(self, x):
        wrong = bool((x > 5).any())
        if torch.compiler.is_compiling():
            torch._check(torch.sym_not(wrong), lambda: "too large")
        elif wrong:
            raise ValueError("too large")
        return x * 2
""",
        run=_SET_SCALARS + _ROWS,
        torch_settings=_SCALARS,
        unsafe=True,
    ),
    Example(
        title="two numbers that decide together",
        before="""class Net(nn.Module):
    def forward(self, x, lengths: torch.LongTensor):
        most, least = int(lengths.max()), int(lengths.min())
        if most > 16 and least < 2:
            raise ValueError("too different")
        return x * most + least
""",
        after=None,
        run=_SET_SCALARS + _LENGTHS,
        torch_settings=_SCALARS,
    ),
)

_CHECKED = """class Net(nn.Module):
    def forward(self, x, lengths: torch.LongTensor):
        n = int(lengths.max())
        if n > 16:
            raise ValueError("too long")
        return x * n
"""

VALID: tuple[NearMiss, ...] = (
    NearMiss(title="no setting is in force", source=_CHECKED),
    NearMiss(title="the other setting is", source=_CHECKED, torch_settings=_SHAPES),
    NearMiss(
        title="a number that has a value",
        source=_CHECKED.replace("int(lengths.max())", "lengths.shape[0]"),
        torch_settings=_SCALARS + _SHAPES,
    ),
    NearMiss(
        title="a size that no mask has changed",
        source=_CHECKED.replace("int(lengths.max())", "len(lengths[1:])"),
        torch_settings=_SCALARS + _SHAPES,
    ),
    NearMiss(
        title="a slice that is too large raises nothing, and a size that is too large raises by itself",
        source="""class Net(nn.Module):
    def forward(self, x, lengths: torch.LongTensor):
        n = int(lengths.max())
        return x[:, :n].sum() + torch.zeros(n).sum() + x.narrow(0, 0, n).sum()
""",
        torch_settings=_SCALARS,
    ),
    NearMiss(
        title="a branch that does not raise",
        source=_CHECKED.replace('raise ValueError("too long")', "return x"),
        torch_settings=_SCALARS,
    ),
    NearMiss(
        title="an assertion that Dynamo makes by itself",
        source="""class Net(nn.Module):
    def forward(self, x, lengths: torch.LongTensor):
        n = int(lengths.max())
        assert n < 16, "too long"
        assert n
        return x * n
""",
        torch_settings=_SCALARS,
    ),
    NearMiss(
        title="eager code alone",
        source="""class Net(nn.Module):
    def forward(self, x, lengths: torch.LongTensor):
        n = int(lengths.max())
        if not torch.compiler.is_compiling() and n > 16:
            raise ValueError("too long")
        if not torch.compiler.is_compiling():
            if n > 15:
                raise ValueError("too long")
        return x * n
""",
        torch_settings=_SCALARS,
    ),
    NearMiss(
        title="one of several branches, and one on a line with others",
        source="""class Net(nn.Module):
    def forward(self, x, lengths: torch.LongTensor, wanted=True):
        n = int(lengths.max())
        if wanted:
            x = x + 1
        elif n > 16:
            raise ValueError("too long")
        else:
            x = x + 2
        x = x + 1; assert n < 17, f"{n}"
        if n in (1, 2):
            raise ValueError("too short")
        return x * n
""",
        torch_settings=_SCALARS,
        reported=True,
    ),
)
