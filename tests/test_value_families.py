"""Families of small modules: what a name holds depends on a flag, a loop, an order, and the patched code must know.

Each member is one of a few cores (what a rule rewrites) with a hazard (what changes shape, dtype or binding) between
two of its lines. All of them run eagerly, original against patched; a good part of them must still be rewritten.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
import torch

from patcher.edit.engine import patch
from patcher.settings import Settings
from rules import load_rules
from tests.dynamo import PREAMBLE, Raised, equal, imported, run_eagerly

RULES = tuple(r for r in load_rules() if r.code in ("FC101", "FC401", "FC402", "FC405"))
SETTINGS = Settings(target_torch=(2, 6))

#: Lines that make ``y``, then what a rule rewrites; a hazard goes between any two of them.
CORES = {
    "written": ("y = x * 2", "low = y < 0", "z = y.abs()", "y[low] = z[low]"),
    "changed": ("y = x * 2", "low = y < 0", "y[low] *= 3"),
    "by element": ("y = x * 2", "z = y + 1", "low = z < 0", "z[low] = 2 * y[low] - z[low]"),
    "rows": ("y = x * x.shape[-1]", "low = y.sum(-1) < 0", "z = y + 1", "z[low] = y[low]"),
    "counted": ("y = x * 2", "low = y < 0", "z = y.abs()", "assert z[low].shape[0] < 4"),
    "elements": ("y = x * x.shape[-1]", "low = y.sum(-1) < 0", "z = y.abs()", "assert z[low].numel() != 3"),
    "places": ("y = x * 2", "low = y < 0", "z = y.clone()", "z[torch.where(low)] = 0.0", "y = z + y"),
    "chosen": ("y = x * 2", "z = y + 1", "if (x.sum() > 0) & True:", "    z = y - 1", "y = z * y"),
    "bounded": (
        "y = x * 2",
        "if not torch.isfinite(y).all():",
        "    top = torch.finfo(y.dtype).max - 1000",
        "    y = torch.clamp(y, min=-top, max=top)",
    ),
    "either": ("y = x * 2", "if x.max() > 1:", "    z = y.abs()", "else:", "    z = y.neg()", "y = y + z"),
}
HAZARDS = {
    "nothing": (),
    "flag": ("if flag:", "    {0} = {0} * 2"),
    "flag, both arms": ("if flag:", "    {0} = {0} + {0}", "else:", "    {0} = {0} * 1"),
    "ternary": ("{0} = {0} * 2 if flag else {0}.clone()",),
    "another shape": ("if flag:", "    {0} = {0}.unsqueeze(-1)"),
    "another shape or none": ("{0} = {0}[:1] if flag else {0} * 1",),
    "another dtype": ("if flag:", "    {0} = {0}.double()"),
    "one of two dtypes": ("{0} = {0}.double() if flag else {0}.float()",),
    "complex or not": ("if flag:", "    {0} = {0}.to(torch.complex64)"),
    "complex by a number": ("if flag:", "    {0} = {0} * 1j"),
    "complex, made of pairs": ("if flag:", "    {0} = torch.complex({0}, {0})"),
    "integers or not": ("if flag:", "    {0} = {0}.int()"),
    "integers in a finally": ("try:", "    pass", "finally:", "    {0} = {0}.int() if flag else {0}"),
    "booleans or not": ("{0} = {0}.bool() if flag else {0}",),
    "augmented": ("if flag:", "    {0} += {0}"),
    "loop": ("for _ in range(2 if flag else 0):", "    {0} = {0}.sum(-1)"),
    "turns": ("for k in range(2):", "    if k and flag:", "        {0} = old", "    old = {0} = {0}[k:]"),
    "in place": ("if flag:", "    {0}.unsqueeze_(-1)"),
    "data": ("if flag:", "    {0}.data = {0}.data[:1]"),
    "data in a function": ("if flag:", "    cut({0})"),
    "through another name, in a function": ("if flag:", "    change = widen", "    change({0})"),
    "by a part": ("if flag:", "    other = Cut()", "    other({0})"),
    "in a nested function": ("def grow(t):", "    t.unsqueeze_(-1)", "if flag:", "    grow({0})"),
    "kept and cut": ("self.kept = {0}", "if flag:", "    self.cut()"),
    "through a list": ("held = [{0}]", "if flag:", "    cut(held[0])"),
    "through numpy": ("if flag:", "    {0}.numpy()[...] = 1"),
    "all names": ("names = sorted(locals())", "{0} = {0} * len(names)"),
    "deleted": ("kept = {0}", "del {0}", "{0} = kept * 1 if flag else kept"),
    "number": ("if flag:", "    {0} = 3.0"),
    "while": ("while {0}.ndim > 1 and flag:", "    {0} = {0}[0]"),
}
CALLS = """
def make(): return M()
xs = [torch.tensor([[-1.0, 2.0, -3.0], [1.0, 2.0, 3.0]]), torch.tensor([[-1.0], [2.0]]), torch.tensor([1.0, -2.0])]
calls = [(x, flag) for x in xs for flag in (False, True)]
"""
#: Where the module stands, and the class that it is: what is found must not depend on it.
OTHERS = """\
def widen(t):
    t.unsqueeze_(-1)


def cut(t):
    t.data = t.data[:1]


class Cut(nn.Module):
    def forward(self, t):
        cut(t)


"""
KEPT = "    def cut(self):\n        cut(self.kept)\n\n"
FRAMES = {
    "plain": "class M(nn.Module):\n" + KEPT + "    def forward(self, x, flag):\n{body}        return y\n",
    "below a constructor": (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n\n"
        + KEPT
        + "    def forward(self, x, flag):\n{body}        return y\n"
    ),
}


def members() -> Iterator[tuple[str, str]]:
    """Titles and sources."""
    for (core, lines), (hazard, inserted) in itertools.product(CORES.items(), HAZARDS.items()):
        gaps = [i for i in range(1, len(lines)) if not lines[i].startswith((" ", "else"))]
        for at, name in itertools.product(gaps if inserted else gaps[:1], ("y", "low", "z") if inserted else ("y",)):
            if not any(line.lstrip().startswith(f"{name} =") for line in lines[:at]):
                continue
            whole = [*lines[:at], *(line.format(name) for line in inserted), *lines[at:]]
            body = "".join(f"        {line}\n" for line in whole)
            frame = list(FRAMES)[(at + len(core)) % 2]
            yield f"{core}, {hazard} of {name} at {at}, {frame}", PREAMBLE + OTHERS + FRAMES[frame].format(body=body)


MEMBERS = dict(members())


def outcome(text: str) -> list[object]:
    """Outputs of all calls, their arguments afterwards, and what they share."""
    with imported(text + CALLS) as module:
        ran = run_eagerly(module.make(), module.calls)
    return [list(ran.outputs), list(ran.aliases)]


@pytest.mark.parametrize("core", CORES)
def test_members_of_a_family_run_the_same(core: str) -> None:
    rewritten, wrong = 0, []
    torch.set_num_threads(1)
    for title, before in MEMBERS.items():
        if not title.startswith(f"{core},"):
            continue
        after = patch(before, "family.py", RULES, SETTINGS).text
        if after == before:
            continue
        rewritten += 1
        was, now = outcome(before), outcome(after)
        assert not all(isinstance(o, Raised) for o in was[0]), title  # type: ignore[attr-defined]
        if (difference := equal(was, now)) is not None:
            wrong.append(f"{title}: {difference}\n{after}")
    assert not wrong, "\n".join([str(len(wrong)), *wrong])
    assert rewritten >= 5


def test_what_is_found_does_not_depend_on_where_it_stands() -> None:
    def body(text: str) -> str:
        return text.rpartition("def forward")[2]

    for title, text in MEMBERS.items():
        shifted = text.replace(
            "class M(nn.Module):", "\n\n\nclass M(nn.Module):\n    def __init__(self):\n        pass\n"
        )
        if "plain" in title and "flag" in title:
            found = [patch(t, "family.py", RULES, SETTINGS).text for t in (text, shifted)]
            assert body(found[0]) == body(found[1]), title


def test_there_are_many_members() -> None:
    assert len(MEMBERS) >= 300
