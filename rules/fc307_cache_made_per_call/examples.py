"""What CacheMadePerCall reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

_PAST = """\
import dataclasses


@dataclasses.dataclass
class Past:
    keys: torch.Tensor
    seen: torch.Tensor
"""
_MODEL = """\


class Model(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.layers = layers
        self.line = nn.Linear(width, width)
        self.width = width

    def forward(self, x, step: int, pasts: list[Past]):
        for past in pasts:
            past.keys[:, step] = self.line(x)
            past.seen = past.seen + 1
            x = x + past.keys.sum(1) / past.seen
        return x
"""
_STATE = """\
from dataclasses import dataclass


@dataclass
class State:
    hidden: torch.Tensor
    total: torch.Tensor
    steps: int = 0


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.line = nn.Linear(width, width)

    def forward(self, x, state: State):
        state.hidden.copy_(torch.tanh(self.line(x) + state.hidden))
        state.total.add_(state.hidden)
        return state.total * 2
"""
_GENERATE = """\

    @torch.no_grad()
    def generate(self, x, steps: int):
        # what the layers have seen
        pasts = [
            Past(
                keys=torch.zeros(x.shape[0], steps, self.width, device=x.device),
                seen=torch.zeros((), device=x.device),
            )
            for _ in range(self.layers)
        ]
        found = []
        for step in range(steps):
            x = self(x, step, pasts)
            found.append(x)
        return torch.stack(found)
"""
_RUN = """\
def make():
    torch.manual_seed(0)
    return {0}
def hook(obj, backend):
    obj.forward = torch.compile(obj.forward, backend=backend)
    return obj
calls = [{1}]
"""
_GENERATED = _RUN.format("Model(3, 2)", ", ".join(f"lambda m: m.generate(torch.ones({n}, 3), 4)" for n in (2, 1, 2)))
_RUN_ONCE = _RUN.format("Net(3)", ", ".join(f"lambda m: m.run([torch.ones({n}, 3)] * 3)" for n in (2, 1, 2)))


def _run(
    made: str, decorator: str = "@torch.inference_mode()", last: str = "return [self(x, state).clone() for x in xs]"
) -> str:
    return f"""{_STATE}
    {decorator}
    def run(self, xs):
        state = {made}
        {last}
"""


_MADE = "State(hidden=torch.zeros(xs[0].shape), total=torch.full(xs[0].shape, 0.5))"
INVALID: tuple[Example, ...] = (
    Example(
        title="a list of dataclass objects, one for each layer; one attribute is replaced by each call",
        before=_PAST + _MODEL + _GENERATE,
        after=_PAST
        + _MODEL
        + """\

    @torch.no_grad()
    def generate(self, x, steps: int):
        kept = self.__dict__.setdefault("_kept_pasts", {})
        key = (x.shape[0], steps, x.device, torch.is_inference_mode_enabled())
        pasts = kept.pop(key, None)
        # what the layers have seen
        if pasts is None:
            pasts = [
                Past(
                    keys=torch.zeros(x.shape[0], steps, self.width, device=x.device),
                    seen=torch.zeros((), device=x.device),
                )
                for _ in range(self.layers)
            ]
        kept[key] = pasts
        if len(kept) > 8:  # the one that was not used for longest
            kept.pop(next(iter(kept)))
        for past in pasts:
            torch._dynamo.mark_static_address(past.keys)
            past.keys.zero_()
            past.seen = torch.zeros((), device=x.device)
        found = []
        for step in range(steps):
            x = self(x, step, pasts)
            for past in pasts:
                past.seen = past.seen.clone()
            found.append(x)
        return torch.stack(found)
""",
        run=_GENERATED,
        gain=False,
        unsafe=True,
    ),
    Example(
        title="one object, with buffers that start as other numbers",
        before=_run(_MADE),
        after=f"""{_STATE}
    @torch.inference_mode()
    def run(self, xs):
        kept = self.__dict__.setdefault("_kept_state", {{}})
        key = (xs[0].shape,)
        state = kept.pop(key, None)
        if state is None:
            state = {_MADE}
        kept[key] = state
        if len(kept) > 8:  # the one that was not used for longest
            kept.pop(next(iter(kept)))
        torch._dynamo.mark_static_address(state.hidden)
        torch._dynamo.mark_static_address(state.total)
        state.hidden.zero_()
        state.total.fill_(0.5)
        return [self(x, state).clone() for x in xs]
""",
        run=_RUN_ONCE,
        gain=False,
        unsafe=True,
    ),
    Example(
        title="where gradients may be recorded (reported only)",
        before=_run(_MADE, "# nothing is said of gradients"),
        after=None,
        run=_RUN_ONCE,
        gain=False,
    ),
    Example(
        title="they are kept elsewhere as well (reported only)",
        before=_run(_MADE, last="self.last = state\n        return [self(x, state).clone() for x in xs]"),
        after=None,
        run=_RUN_ONCE,
        gain=False,
    ),
    Example(
        title="made by a function: nothing outlives the call (reported only)",
        before=_STATE
        + f"""

@torch.no_grad()
def run(net, xs):
    state = {_MADE}
    return [net(x, state).clone() for x in xs]
""",
        after=None,
        run=_RUN.format("Net(3)", "lambda m: run(m, [torch.ones(2, 3)] * 3)"),
        gain=False,
    ),
    Example(
        title="a generator, of which two may run at once (reported only)",
        before=_run(_MADE, last="for x in xs:\n            yield self(x, state).clone()"),
        after=None,
        run=_RUN.format("Net(3)", "lambda m: list(m.run([torch.ones(2, 3)] * 3))"),
        gain=False,
    ),
)
VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="nobody writes into it",
        source=_run(_MADE)
        .replace(".copy_(torch.tanh(self.line(x) + state.hidden))", ".clone()")
        .replace("state.total.add_(state.hidden)", "x = x + self.line(state.hidden)"),
    ),
    NearMiss(
        title="handed to nobody",
        source=_run(_MADE, last="return [state.total for x in xs]"),
    ),
    NearMiss(
        title="a class with methods: what else it keeps is its own affair",
        source=_run(_MADE).replace("    steps: int = 0\n", "\n    def reset(self):\n        self.hidden.zero_()\n"),
    ),
    NearMiss(
        title="made from something else than numbers",
        source=_run("State(hidden=xs[0].clone(), total=xs[0] * 0)"),
    ),
    NearMiss(
        title="only eager code writes into it",
        source=_run(_MADE, last="return [add(x, state) for x in xs]")
        .replace("state.hidden.copy_(torch.tanh(self.line(x) + state.hidden))", "pass")
        .replace("state.total.add_(state.hidden)", "pass")
        + """

def add(x, state):
    state.total.add_(x)
    return state.total * 2
""",
    ),
    NearMiss(
        title="in compiled code",
        source=_run(_MADE, "@torch.compile"),
    ),
)
