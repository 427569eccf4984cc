"""What may happen to a value between two statements: the table of hazards.

In the code of a hazard ``<x>`` stands for the place that it happens to (``h``, ``self.scale``, ``rows[0]``), ``<a>``
for the attribute's name where the place is one of ``self``, ``<o>`` for another tensor, ``<y>`` for a new name.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Kinds of values, as `seeds.kind_of` writes them: floating, integer and boolean tensors, numbers, lists, any other.
TENSOR = "FIB"
ANY = "FIBnld0"


@dataclass(frozen=True)
class Hazard:
    """One thing that happens at a point.

    ``on``: the kinds of values that it can happen to; empty: it needs no place. ``now``: statements for the point;
    ``later``: statements for another point of the same function; ``above``: what has to stand at the top of the module.
    ``at``: "name" and "attribute" restrict the place.
    """

    name: str
    on: str
    now: str
    later: str = ""
    above: str = ""
    at: str = ""


def _table(on: str, rows: str, at: str = "") -> list[Hazard]:
    return [Hazard(row, on, row.replace(" // ", "\n"), at=at) for row in map(str.strip, rows.splitlines()) if row]


_REBOUND = [
    *_table(ANY, "del <x>"),
    *_table(
        TENSOR,
        """
        <x> = None
        <x> = 2
        <x> = True
        <x> = <x>.tolist()
        <x> = [<x>]
        <x> = <x>[None]
        <x> = <x>.unsqueeze(-1)
        <x> = <x>.squeeze()
        <x> = <x>.flatten()
        <x> = <x>[:1]
        <x> = <x>[:0]
        <x> = <x>[0]
        <x> = <x>.sum()
        <x> = <x>.T
        <x> = <x>.double()
        <x> = <x>.half()
        <x> = <x>.bfloat16()
        <x> = <x>.long()
        <x> = <x>.int()
        <x> = <x>.bool()
        <x> = <x>.float()
        <x> = <x>.to(torch.complex64)
        <x> = <x> + 1
        <x> = -<x>
        <x> = <x>.clone()
        <x> = <x>.detach()
        <x> = <x>.contiguous()
        <x> = <o>
        <x> = <x>.expand(2, *<x>.shape)
        <x> = torch.zeros_like(<x>)
        <x> = torch.cat([<x>, <x>])
        <x> = <x>.repeat(2, *[1] * (<x>.dim() - 1))
        <x> = nn.Parameter(<x>.detach().clone(), requires_grad=False)
        <x> = <x> if <x>.dim() > 1 else <x>.double()
        <x>, <y> = <x> * 2, <x>
        """,
    ),
    *_table(
        "F",
        """
        <x> = <x> / 0
        <x> = <x>.log()
        <x> = <x>.masked_fill(<x> > 0, float("inf"))
        <x> = <x> * float("nan")
        """,
    ),
    *_table(
        "n",
        """
        <x> = None
        <x> = <x> + 1
        <x> += 1
        <x> = -<x>
        <x> = 0
        <x> = float(<x>)
        <x> = bool(<x>)
        <x> = torch.tensor(<x>)
        <x> = torch.tensor([<x>])
        <x> = np.int64(<x>)
        <x> = np.float32(<x>)
        <x> = np.array(<x>)
        <x> = str(<x>)
        """,
    ),
    *_table(
        "l",
        """
        <x> = None
        <x> = tuple(<x>)
        <x> = iter(<x>)
        <x> = <x>[::-1]
        <x> = <x>[:-1]
        <x> = <x> + <x>
        <x>.append(<x>[0])
        <x>.pop()
        <x>.reverse()
        <x>.clear()
        <x>[0] = <x>[-1]
        <x>[0] = None
        <x> *= 2
        <x>.insert(0, <x>[-1])
        del <x>[0]
        """,
    ),
    *_table("d", "<x> = None\n<x> = dict(<x>)\n<x>.clear()\n<x>.update(extra=1)"),
    *_table(TENSOR + "n", "for <x> in (<x>, <x>): pass\n[<y> := <x>]\nwith torch.no_grad() as <x>: pass", at="name"),
    *_table(TENSOR, "try: raise ValueError // except ValueError as <x>: pass", at="name"),
    *_table(ANY, "import math as <x>\ndef <x>(*_): return 3\nclass <x>: pass", at="name"),
]

_WRITTEN = [
    *_table(
        TENSOR,
        """
        <x>.zero_()
        <x>.fill_(1)
        <x>.logical_not_()
        <x>[0] = 1
        <x>[-1] = 0
        <x>[..., 0] = 1
        <x>[...] = 0
        <x>[<x> > 0] = 0
        <x>.__setitem__(0, 1)
        <x>.masked_fill_(<x> > 0, 0)
        <x>.index_fill_(0, torch.tensor([0]), 1)
        <x>.copy_(<x>.flip(0))
        <x>.copy_(<o>)
        <x>.data = <x>.data.flip(0)
        <x>.data = <x>.data.double()
        <x>.data = <x>.data[:1]
        <x>.data.fill_(1)
        <x>.detach().zero_()
        <x>.detach_()
        <x>.numpy()[...] = 1
        <x>.numpy().fill(0)
        <x>.detach().numpy()[..., :1] = 1
        np.asarray(<x>.detach())[...] = 1
        np.copyto(<x>.numpy(), 0)
        <x>.view(-1).fill_(1)
        <x>.view(-1)[0] = 1
        <x>.reshape(-1)[-1] = 1
        <x>.flatten()[:1] = 1
        <x>.T.fill_(1)
        <x>.select(0, 0).fill_(0)
        <x>.diagonal().fill_(1)
        <x>.untyped_storage().fill_(0)
        <x>.set_(<x>.flip(0))
        <x>.resize_(1)
        <x>.resize_(0)
        <x>.resize_(1, *<x>.shape)
        <x>.squeeze_()
        <x>.unsqueeze_(0)
        <x>.t_()
        <x>.requires_grad_()
        nn.init.zeros_(<x>)
        nn.init.ones_(<x>.data)
        torch.neg(<x>, out=<x>)
        torch.zeros(<x>.shape, out=<x>)
        torch.where(<x> > 0, <x>, <x>.flip(0), out=<x>)
        torch._foreach_zero_([<x>])
        for <y> in <x>: <y>.zero_()
        for <y> in (<x>,): <y>.fill_(1)
        [<y>.zero_() for <y> in <x>.unbind(0)]
        list(map(torch.Tensor.zero_, [<x>]))
        torch.Tensor.fill_(<x>, 1)
        getattr(<x>, "zero_")()
        <y> = <x> // <y>.fill_(1)
        <y> = <x>.view(<x>.shape) // <y>[...] = 1
        <y> = [<x>] // <y>[0].fill_(1)
        <y> = {"k": <x>} // <y>["k"].zero_()
        (<y>,) = (<x>,) // <y> *= 0
        """,
    ),
    *_table(
        "FI",
        """
        <x>.add_(1)
        <x>.sub_(2)
        <x>.mul_(-1)
        <x> += 1
        <x> *= 2
        <x> -= <x>
        <x>[0] += 1
        <x>[:1] *= 3
        <x>.data += 1
        <x>.data = <x>.data + 1
        <x>.neg_()
        <x>.clamp_(0, 1)
        <x>.abs_()
        <x>.cumsum_(0)
        <x>.index_add_(0, torch.tensor([0]), <x>[:1])
        <x>.scatter_(0, torch.zeros_like(<x>, dtype=torch.long)[:1], <x>[:1] + 1)
        torch.add(<x>, 1, out=<x>)
        torch.mul(<x>, 2, out=<x>)
        torch._foreach_add_([<x>], 1)
        torch._foreach_neg_((<x>,))
        F.relu(<x>, inplace=True)
        F.threshold(<x>, 0.5, 0, inplace=True)
        nn.ReLU(inplace=True)(<x>)
        np.add(<x>.numpy(), 1, out=<x>.numpy())
        <x>.detach().add_(1)
        <x>.view(-1).add_(1)
        <x>.reshape(-1).sub_(1)
        <x>.expand(1, *<x>.shape).mul_(2)
        <x>.squeeze().add_(1)
        <x>.unbind(0)[0].add_(1)
        <x>.chunk(2)[0].mul_(-1)
        <x>.__iadd__(1)
        torch.Tensor.__imul__(<x>, 2)
        operator.iadd(<x>, 1)
        <y> = <x> // <y>.mul_(2)
        <y> = <x>.view(-1) // <y> += 1
        <y> = <x>.detach().numpy() // <y> += 1
        """,
    ),
    *_table(
        "F", "<x>.exp_()\n<x>.mul_(float('nan'))\n<x>.div_(0)\n<x>.masked_fill_(<x> > 0, float('inf'))\n<x>.relu_()"
    ),
]

_TOUCH = """\
def _touch(value):
    value.fill_(1)
"""

_KEEP = """\
KEPT = []


def _keep(value):
    KEPT.append(value)


def _write_kept():
    KEPT.pop().fill_(1)
"""

_BOX = """\
class _Box:
    def __init__(self, value):
        self.value = value

    def write(self):
        self.value.fill_(1)
"""


def _later(now: str, later: str, above: str = "", on: str = TENSOR, at: str = "") -> Hazard:
    return Hazard(f"{now} ... {later}", on, now.replace(" // ", "\n"), later.replace(" // ", "\n"), above, at)


_KEPT = [
    _later("<y> = <x>", "<y>.fill_(1)"),
    _later("<y> = <x>", "<y>.mul_(2)", on="FI"),
    _later("<y> = <x>", "<y> += 1", on="FI"),
    _later("<y> = <x>", "<y>[0] = 1"),
    _later("<y> = <x>", "<y>.t_()"),
    _later("<y> = <x>", "<y>.resize_(0)"),
    _later("<y> = <x>.view(-1)", "<y>.fill_(1)"),
    _later("<y> = <x>.reshape(-1)", "<y>.zero_()"),
    _later("<y> = <x>.detach()", "<y>.fill_(1)"),
    _later("<y> = <x>.data", "<y>.add_(1)", on="FI"),
    _later("<y> = <x>.numpy()", "<y>[...] = 1"),
    _later("<y> = <x>.detach().numpy()", "<y>.fill(1)"),
    _later("<y> = np.asarray(<x>.detach())", "<y>[..., 0] = 1"),
    _later("<y> = <x>.expand(2, *<x>.shape)", "<y>[0].fill_(1)"),
    _later("<y> = <x>[0]", "<y>.fill_(1)"),
    _later("<y> = <x>[..., :1]", "<y>.zero_()"),
    _later("<y> = <x>.unbind(0)", "<y>[0].fill_(1)"),
    _later("<y> = <x>.T", "<y>.zero_()"),
    _later("<y> = <x>.untyped_storage()", "<y>.fill_(0)"),
    _later("<y> = <x>.float()", "<y>.fill_(1)", on="F"),
    _later("<y> = <x>.contiguous()", "<y>.fill_(1)"),
    _later("<y> = <x>.to(<x>.device)", "<y>.fill_(1)"),
    _later("<y> = torch.as_tensor(<x>)", "<y>.fill_(1)"),
    _later("<y> = torch.from_numpy(<x>.numpy())", "<y>.fill_(1)"),
    _later("<y> = [<x>]", "<y>[0].fill_(1)"),
    _later("<y> = [] // <y>.append(<x>)", "<y>.pop().zero_()"),
    _later('<y> = {"k": <x>}', '<y>["k"].fill_(1)'),
    _later("<y> = dict(k=<x>)", "for <y>v in <y>.values(): <y>v.fill_(1)"),
    _later("<y> = (<x>, 1)", "<y>[0].fill_(1)"),
    _later("<y> = iter([<x>])", "next(<y>).fill_(1)"),
    _later("<y> = lambda: <x>.fill_(1)", "<y>()"),
    _later("<y> = lambda t=<x>: t.fill_(1)", "<y>()"),
    _later("def <y>(): <x>.zero_()", "<y>()"),
    _later("<y> = (<x>.fill_(1) for _ in range(1))", "next(<y>)"),
    _later("<y> = (t.fill_(1) for t in [<x>])", "list(<y>)"),
    _later("<y> = <x>.fill_", "<y>(1)"),
    _later("<y> = functools.partial(torch.Tensor.fill_, <x>, 1)", "<y>()"),
    _later("<y> = types.SimpleNamespace(v=<x>)", "<y>.v.fill_(1)"),
    _later("<y> = _Box(<x>)", "<y>.write()", _BOX),
    _later("<y> = _Box(<x>)", "<y>.value.fill_(1)", _BOX),
    _later("_keep(<x>)", "_write_kept()", _KEEP),
    _later("KEPT.append(<x>)", "KEPT[-1].fill_(1)", "KEPT = []\n"),
    _later("global KEPT // KEPT = <x>", "_write()", "KEPT = None\n\n\ndef _write():\n    KEPT.fill_(1)\n"),
    _later("self._kept = <x>", "self._kept.fill_(1)"),
    _later("self._kept = [<x>]", "self._kept[0].zero_()"),
    _later("self.__dict__['_kept'] = <x>", "vars(self)['_kept'].zero_()"),
    _later("<y> = <x> if <x>.dim() else <o>", "<y>.fill_(1)"),
    _later("<y> = <x> if self.training else <o>", "<y>.fill_(1)"),
    _later("<y> = (<x> or [None])", "<y>.reverse()", on="l"),
    _later("<y> = <x>", "<y>.append(<y>[0])", on="l"),
    _later("<y> = <x>", "<y>[0] = <y>[-1]", on="l"),
    _later("<y> = <x>", "<y>.clear()", on="l"),
    _later("<y> = <x>", "<y>.update(extra=1)", on="d"),
    _later("<y> = locals()", "<y>['<x>'].fill_(1)", at="name"),
    _later("def <y>(): // \x20   nonlocal <x> // \x20   <x> = None", "<y>()", at="name"),
    _later("def <y>(): // \x20   nonlocal <x> // \x20   <x> = <x> * 2", "<y>()", at="name"),
]

_TOUCH_ALL = """\
def _touch_all(values):
    for value in values:
        value.fill_(1)
"""

_TOUCH_ANY = """\
def _touch_any(*values, **named):
    values[0].zero_()
"""

_VIEW = """\
def _view(value):
    return value.view(-1)
"""

_SAME = """\
def _same(value):
    return value
"""

_HALF = """\
def _half(value):
    return value.half()
"""

_TOUCH_SELF = """\
def _touch_self(owner):
    for value in list(vars(owner).values()):
        if isinstance(value, torch.Tensor):
            value.fill_(1)
"""

_TOUCHING = """\
class _Touching:
    def __init__(self, value):
        self.value = value

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.value.fill_(1)
"""

_TOUCH_MODULE = """\
class _Touch(nn.Module):
    def forward(self, value):
        value.fill_(1)
        return value
"""

_SHOWN = """\
class _Shown:
    def __init__(self, value):
        self.value = value

    def __str__(self):
        self.value.fill_(1)
        return ""
"""

_OPERAND = """\
class _Operand:
    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        self.value.fill_(1)
        return self
"""


def _calls(code: str, above: str, on: str = TENSOR) -> Hazard:
    return Hazard(code, on, code.replace(" // ", "\n"), above=above)


_CALLED = [
    _calls("_touch(<x>)", _TOUCH),
    _calls("<y> = _touch // <y>(<x>)", _TOUCH),
    _calls("list(map(_touch, [<x>]))", _TOUCH),
    _calls("_touch_all([<x>])", _TOUCH_ALL),
    _calls("_touch_any(<x>)", _TOUCH_ANY),
    _calls("_view(<x>).fill_(1)", _VIEW),
    _calls("<x> = _same(<x>)", _SAME, ANY),
    _calls("<x> = _half(<x>)", _HALF, "F"),
    _calls("_touch_self(self)", _TOUCH_SELF, ""),
    _calls("with _Touching(<x>): pass", _TOUCHING),
    _calls("_Touch()(<x>)", _TOUCH_MODULE),
    _calls('f"{_Shown(<x>)}"', _SHOWN),
    _calls("_Operand(<x>) + 1", _OPERAND),
]

_OF_SELF = [
    *_table(
        TENSOR,
        """
        setattr(self, "<a>", <x> + 1)
        setattr(self, "<a>", <x>.double())
        setattr(self, "<a>", None)
        object.__setattr__(self, "<a>", <x> * 2)
        getattr(self, "<a>").fill_(1)
        for <y> in ("<a>",): getattr(self, <y>).fill_(1)
        for <y> in ("<a>",): setattr(self, <y>, getattr(self, <y>) + 1)
        self.__dict__["<a>"] = <x> + 1
        self._buffers["<a>"] = <x>.flip(0)
        self.register_buffer("<a>", <x> + 1)
        self.register_buffer("<a>", <x> + 1, persistent=False)
        self.register_buffer("<a>", None)
        for <y> in self.buffers(): <y>.fill_(1)
        for _, <y> in self.named_buffers(): <y>.zero_()
        [<y>.fill_(1) for <y> in self.state_dict().values()]
        self.state_dict()["<a>"].fill_(1)
        self.load_state_dict({k: v + 1 for k, v in self.state_dict().items()})
        vars(self).update(<a>=<x> + 1)
        self.get_buffer("<a>").fill_(1)
        delattr(self, "<a>")
        <y> = self // <y>.<a> = <x> + 1
        <y> = self // <y>.<a>.fill_(1)
        <y> = self.__dict__ // <y>.update(<a>=<x> + 1)
        type(self).<a> = 3
        """,
        at="attribute",
    ),
    *_table(
        "n",
        """
        setattr(self, "<a>", <x> + 1)
        setattr(self, "<a>", None)
        setattr(self, "<a>", torch.tensor(<x>))
        for <y> in ("<a>",): setattr(self, <y>, getattr(self, <y>) + 1)
        self.__dict__["<a>"] = <x> + 1
        vars(self).update(<a>=<x> + 1)
        delattr(self, "<a>")
        <y> = self // <y>.<a> += 1
        object.__setattr__(self, "<a>", 0)
        self.__setattr__("<a>", <x> + 1)
        type(self).<a> = 3
        """,
        at="attribute",
    ),
    *_table(
        "",
        """
        self.double()
        self.half()
        self.to(torch.float64)
        self.train(not self.training)
        self.apply(lambda m: m.register_buffer("extra", torch.zeros(1)))
        for <y> in self.parameters(): <y>.data.fill_(1)
        for <y> in self.buffers(): <y>.zero_()
        for <y> in self.modules(): <y>.training = not <y>.training
        for <y> in list(vars(self)): setattr(self, <y>, getattr(self, <y>))
        self.requires_grad_(False)
        self.zero_grad()
        self.__init__()
        """,
        at="attribute",
    ),
]

_GLOBAL = [
    *_table(
        "",
        """
        torch.set_grad_enabled(True)
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        for torch in (): pass
        for F in (): pass
        for len in (): pass
        for range in (): pass
        for math in (): pass
        print("seen")
        raise ValueError("here")
        assert False
        return
        yield
        """,
    ),
    *_table(
        TENSOR, "assert <x>.dim() > 1\nassert <x>.sum() > 0\nprint(<x>.shape)\nprint(<x>)\nreturn <x>\nreturn <x>, <o>"
    ),
]

HAZARDS: tuple[Hazard, ...] = (*_REBOUND, *_WRITTEN, *_KEPT, *_CALLED, *_OF_SELF, *_GLOBAL)
