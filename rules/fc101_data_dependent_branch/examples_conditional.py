"""Branches on data that go into the graph with ``torch.cond``, and what looks like them and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

CAPTURED: tuple[Example, ...] = (
    Example(
        title="work in a loop, and a branch within",
        before="""\
class Refine(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.fix = nn.Linear(4, 4)

    def forward(self, x, marks: torch.Tensor):
        h = self.first(x)
        weights = torch.zeros_like(h)
        # only what is marked
        if (marks > 0).any():  # which is rare
            fixed = self.fix(h).tanh()
            for _ in range(3):
                fixed = fixed * 0.5 + h

            near = (fixed - h).abs() < 0.1
            if near.any():
                weights = weights + near.float()
            h = torch.where(marks.unsqueeze(-1) > 0, fixed, h)
        return h * 2, weights
""",
        after="""\
class Refine(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.fix = nn.Linear(4, 4)

    def forward(self, x, marks: torch.Tensor):
        h = self.first(x)
        weights = torch.zeros_like(h)

        # only what is marked
        def weights_if_true(weights, h):  # which is rare
            fixed = self.fix(h).tanh()
            for _ in range(3):
                fixed = fixed * 0.5 + h

            near = (fixed - h).abs() < 0.1
            if torch.compiler.is_compiling():
                weights = torch.cond(near.any(), lambda: weights + near.float(), lambda: weights.clone())
            elif near.any():
                weights = weights + near.float()
            h = torch.where(marks.unsqueeze(-1) > 0, fixed, h)
            return weights, h

        if torch.compiler.is_compiling():
            weights, h = torch.cond(
                (marks > 0).any(),
                weights_if_true,
                lambda weights, h: (weights.clone(), h.clone()),
                (weights, h),
            )
        elif (marks > 0).any():
            weights, h = weights_if_true(weights, h)
        return h * 2, weights
""",
        run="""\
train = True
def make(): return Refine()
calls = [(torch.linspace(-1, 1, 8).view(2, 4), torch.tensor(m)) for m in ([0, 1], [0, 0])]
""",
        unsafe=True,
    ),
    Example(
        title="a sum in a loop, of tensors and of numbers",
        before="""\
class Summed(nn.Module):
    def forward(self, x):
        y = x.exp()
        if x.mean() > 0:
            acc, n = torch.zeros_like(x), 1
            for i in range(3):
                acc += x * i
                n += 1
            y = y + acc / n
        return y * 2
""",
        after="""\
class Summed(nn.Module):
    def forward(self, x):
        y = x.exp()

        def y_if_true(y):
            acc, n = torch.zeros_like(x), 1
            for i in range(3):
                acc += x * i
                n += 1
            y = y + acc / n
            return y

        if torch.compiler.is_compiling():
            y = torch.cond(x.mean() > 0, y_if_true, lambda y: y.clone(), (y,))
        elif x.mean() > 0:
            y = y_if_true(y)
        return y * 2
""",
        run="""\
train = True
def make(): return Summed()
calls = [(torch.ones(2, 3, requires_grad=True),), (-torch.ones(2, 3, requires_grad=True),)]
""",
        unsafe=True,
    ),
    Example(
        title="two arms of layers, a Python flag, and what is asked for none",
        before="""\
class Either(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Linear(3, 3)
        self.right = nn.Linear(3, 3)

    def forward(self, x, careful=True):
        if careful and not (x > 0).all():
            h = self.left(x)
            y = h.exp()
        else:
            y = self.right(x)  # nothing to be careful about
        return y + 1
""",
        after="""\
class Either(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Linear(3, 3)
        self.right = nn.Linear(3, 3)

    def forward(self, x, careful=True):
        def y_if_true():
            h = self.left(x)
            y = h.exp()
            return y

        def y_if_false():
            y = self.right(x)  # nothing to be careful about
            return y

        if torch.compiler.is_compiling() and careful:
            y = torch.cond(~(x > 0).all(), y_if_true, y_if_false)
        elif careful and not (x > 0).all():
            y = y_if_true()
        else:
            y = y_if_false()
        return y + 1
""",
        run="""\
def make(): return Either()
calls = [(torch.ones(2, 3),), (-torch.ones(2, 3),), (-torch.ones(2, 3), False)]
""",
        unsafe=True,
    ),
    Example(
        title="a new tensor that is filled in place, and one that was there before",
        before="""\
class Filled(nn.Module):
    def forward(self, x, other):
        if x.max() > 2:
            found = torch.zeros_like(x)
            found[0] = x[1].cumsum(0)
            y = found
        else:
            y = other
        return y.sum(0)
""",
        after="""\
class Filled(nn.Module):
    def forward(self, x, other):
        def y_if_true():
            found = torch.zeros_like(x)
            found[0] = x[1].cumsum(0)
            y = found
            return y

        def y_if_false():
            y = other
            return y

        if torch.compiler.is_compiling():
            y = torch.cond(x.max() > 2, lambda: y_if_true().clone(), lambda: y_if_false().clone())
        elif x.max() > 2:
            y = y_if_true()
        else:
            y = y_if_false()
        return y.sum(0)
""",
        run="""\
def make(): return Filled()
calls = [(torch.ones(2, 3), torch.ones(2, 3)), (torch.full((2, 3), 4.0), torch.ones(2, 3))]
""",
        unsafe=True,
    ),
    Example(
        title="scores that lie in memory in another order in the one case",
        before="""\
class Related(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, mask: torch.Tensor):
        q = self.lin(x)
        scores = torch.einsum("bhnd,bhmd->bhnm", q, q * 2).transpose(1, 2)
        if not mask.all():
            hidden = ~mask.view(-1, 1, 1, mask.shape[-1])
            scores = scores.masked_fill(hidden, -100.0) * 1.5
        return scores.softmax(-1)
""",
        after="""\
class Related(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, mask: torch.Tensor):
        q = self.lin(x)
        scores = torch.einsum("bhnd,bhmd->bhnm", q, q * 2).transpose(1, 2)

        def scores_if_true(scores):
            hidden = ~mask.view(-1, 1, 1, mask.shape[-1])
            scores = scores.masked_fill(hidden, -100.0) * 1.5
            return scores

        if torch.compiler.is_compiling():
            scores = torch.cond(
                mask.all() == 0,
                lambda scores: scores_if_true(scores).clone(memory_format=torch.contiguous_format),
                lambda scores: scores.clone(memory_format=torch.contiguous_format),
                (scores,),
            )
        elif not mask.all():
            scores = scores_if_true(scores)
        return scores.softmax(-1)
""",
        run="""\
train = True
def make(): return Related()
calls = [(torch.linspace(0, 1, 24).view(1, 2, 3, 4), torch.tensor([m])) for m in ([True] * 3, [True, False, True])]
""",
        unsafe=True,
    ),
    Example(
        title="the gradient of the arm that is not taken is infinite",
        before="""\
class Root(nn.Module):
    def forward(self, x):
        s = x.sum()
        if s > 0:
            y = s.sqrt()
        else:
            y = s * 0
        return y + 1
""",
        after="""\
class Root(nn.Module):
    def forward(self, x):
        s = x.sum()
        if torch.compiler.is_compiling():
            y = torch.cond(s > 0, lambda: s.sqrt(), lambda: s * 0)
        elif s > 0:
            y = s.sqrt()
        else:
            y = s * 0
        return y + 1
""",
        run="""\
train = True
def make(): return Root()
calls = [(torch.ones(3, requires_grad=True),), (torch.zeros(3, requires_grad=True),)]
""",
        unsafe=True,
    ),
    Example(
        title="an integer division that only one arm can make",
        before="""\
class Share(nn.Module):
    def forward(self, x):
        n = (x > 2).sum()
        if n > 0:
            k = x.numel() // n
        else:
            k = n
        return k + 1
""",
        after="""\
class Share(nn.Module):
    def forward(self, x):
        n = (x > 2).sum()
        if torch.compiler.is_compiling():
            k = torch.cond(n > 0, lambda: x.numel() // n, lambda: n.clone())
        elif n > 0:
            k = x.numel() // n
        else:
            k = n
        return k + 1
""",
        run="""\
def make(): return Share()
calls = [(torch.ones(3),), (torch.full((3,), 4.0),)]
""",
        unsafe=True,
    ),
    Example(
        title="random numbers, drawn in one case alone",
        before="""\
class Noisy(nn.Module):
    @torch.no_grad()
    def forward(self, x):
        if x.mean() > 0:
            x = x + torch.randn_like(x)
        return x * 2
""",
        after="""\
class Noisy(nn.Module):
    @torch.no_grad()
    def forward(self, x):
        if torch.compiler.is_compiling():
            x = torch.cond(x.mean() > 0, lambda: x + torch.randn_like(x), lambda: x.clone())
        elif x.mean() > 0:
            x = x + torch.randn_like(x)
        return x * 2
""",
        run="""\
def make(): return Noisy()
calls = [(torch.ones(3),), (-torch.ones(3),)]
""",
        unsafe=True,
    ),
    Example(
        title="shapes that need not fit in the other case, two tests on data",
        before="""\
class Fitted(nn.Module):
    def forward(self, x, y):
        if (x.sum() > 0) and (y.sum() > 0):
            z = x + y
        else:
            z = x * 2
        return z + 1
""",
        after="""\
class Fitted(nn.Module):
    def forward(self, x, y):
        if torch.compiler.is_compiling():
            z = torch.cond((x.sum() > 0) & (y.sum() > 0), lambda: x + y, lambda: x * 2)
        elif (x.sum() > 0) and (y.sum() > 0):
            z = x + y
        else:
            z = x * 2
        return z + 1
""",
        run="""\
def make(): return Fitted()
calls = [(torch.ones(3), torch.ones(3)), (torch.ones(3), -torch.ones(3))]
""",
        unsafe=True,
    ),
    Example(
        title="a parameter that one arm reads",
        before="""\
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        if x.sum() > 0:
            y = x * self.scale
        else:
            y = x * 2
        return y + 1
""",
        after="""\
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        if torch.compiler.is_compiling():
            y = torch.cond(x.sum() > 0, lambda: x * self.scale, lambda: x * 2)
        elif x.sum() > 0:
            y = x * self.scale
        else:
            y = x * 2
        return y + 1
""",
        run="""\
def make(): return Scaled()
calls = [(torch.ones(3),), (-torch.ones(3),)]
""",
        unsafe=True,
    ),
    Example(
        title="the way to one arm's value is steep: its gradient is that of the arm that ran",
        before="""\
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        h = self.lin(x)
        n = (h * h).sum().sqrt()
        if n > 1:
            y = h * n
        else:
            y = h * 2
        return y + 1
""",
        after="""\
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        h = self.lin(x)
        n = (h * h).sum().sqrt()
        if torch.compiler.is_compiling():
            y = torch.cond(n > 1, lambda: h * n, lambda: h * 2)
        elif n > 1:
            y = h * n
        else:
            y = h * 2
        return y + 1
""",
        run="""\
train = True
def make(): return Norm()
calls = [(torch.ones(2, 3) * n,) for n in (0, 9)]
""",
        unsafe=True,
    ),
)

NOT_CAPTURED: tuple[NearMiss, ...] = (
    NearMiss(
        title="random numbers, which the backward pass would draw once more",
        source="""\
class Noisy(nn.Module):
    def forward(self, x):
        if x.mean() > 0:
            x = x * torch.randn_like(x)
        return x * 2
""",
        reported=True,
    ),
    NearMiss(
        title="dropout in a layer of the arm",
        source="""\
class Dropped(nn.Module):
    def __init__(self):
        super().__init__()
        self.more = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))

    def forward(self, x):
        h = x.exp()
        if x.mean() > 0:
            h = self.more(h) * 2
        return h * 2
""",
        reported=True,
    ),
    NearMiss(
        title="what one arm binds the other one reads in the next turn",
        source="""\
class Turns(nn.Module):
    def forward(self, xs):
        state, out = torch.zeros(3), []
        for x in xs:
            y = x * 1
            if x.sum() > 0:
                y = y.tanh()
                state = y * 0.5
            else:
                y = state.exp()
                y = y - 1
            out.append(y)
            state.add_(1)
        return out
""",
        reported=True,
    ),
    NearMiss(
        title="a name of both arms is deleted below",
        source="""\
class Deleting(nn.Module):
    def forward(self, x):
        h = x.exp()
        if x.sum() > 0:
            big = h.sin()
            y = big.sqrt() + 1
        else:
            big = h.cos()
            y = big.sqrt() - 1
        del big
        return y * 2
""",
        reported=True,
    ),
    NearMiss(
        title="an error of the arm is caught, with what it had done",
        source="""\
class Caught(nn.Module):
    def forward(self, x):
        a = x @ x.T
        try:
            if a.diagonal().min() < 1:
                a = a + torch.eye(3)
                y = torch.linalg.cholesky(a - 100)
            else:
                y = torch.linalg.cholesky(a)
        except RuntimeError:
            y = a * 2
        return y + 1
""",
        reported=True,
    ),
    NearMiss(
        title="the arm says what a name of the function is",
        source="""\
class Noted(nn.Module):
    def forward(self, x):
        z = x.exp()
        y = x * 1
        if x.sum() > 0:
            z: torch.Tensor
            y = y.exp() + z
        return y * 2
""",
        reported=True,
    ),
    NearMiss(
        title="the rows of a mask, of which the caller says what it is",
        source="""\
class Valid(nn.Module):
    def forward(self, logits, labels):
        valid = labels != -100
        if valid.any():
            loss = F.cross_entropy(logits[valid], labels[valid])
            loss = loss * 2
        else:
            loss = logits.sum() * 0
        return loss + 1
""",
        reported=True,
    ),
    NearMiss(
        title="one result has a gradient, the other has none",
        source="""\
class Picked(nn.Module):
    def forward(self, x):
        h = x.exp()
        best = h.argmax(-1)
        if x.sum() > 0:
            h = h.tanh()
            best = h.argmin(-1)
        return h, best
""",
        reported=True,
    ),
    NearMiss(
        title="the results are added up: both get one gradient",
        source="""\
class Losses(nn.Module):
    def forward(self, x):
        loss, aux = x.exp().sum(), x.sin().sum()
        if x.mean() > 0:
            loss = loss.exp() * 2
            aux = aux.exp() * 3
        return loss + aux
""",
        reported=True,
    ),
    NearMiss(
        title="what an arm reads is changed before the backward pass",
        source="""\
class Moved(nn.Module):
    def forward(self, x):
        h = x.exp()
        g = x.sin()
        if x.mean() > 0:
            h = h.tanh() * g
        g += 1
        return h * 2 + g
""",
        reported=True,
    ),
    NearMiss(
        title="a helper of a helper reads data",
        source="""\
def scaled(x):
    return x * x.max().item()


def helped(x):
    return scaled(x) + 1


class Helped(nn.Module):
    def forward(self, x):
        h = x.exp()
        if x.mean() > 0:
            h = helped(h) * 2
        return h * 2
""",
        reported=True,
    ),
    NearMiss(
        title="a helper that is left out of graphs",
        source="""\
@torch.compiler.disable
def helped(x):
    return x.exp() + 1


class Helped(nn.Module):
    def forward(self, x):
        h = x.exp()
        if x.mean() > 0:
            h = helped(h) * 2
        return h * 2
""",
        reported=True,
    ),
    NearMiss(
        title="it may be None, which the default says",
        source="""\
class Biased(nn.Module):
    def forward(self, x, bias=None):
        h = x.exp()
        if h.mean() > 2:
            bias = h.sum(-1)
            bias = bias * 2
        return h if bias is None else h + bias.unsqueeze(-1)
""",
        reported=True,
    ),
    NearMiss(
        title="two floating dtypes",
        source="""\
class Precise(nn.Module):
    def forward(self, x):
        h = x.exp()
        if h.mean() > 2:
            y = h.double()
        else:
            y = h.float()
        return y * 2
""",
        reported=True,
    ),
    NearMiss(
        title="a layer in a sequence changes what it is given",
        source="""\
class Rectified(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 3))

    def forward(self, x):
        h = x.exp()
        if h.mean() > 2:
            h = self.act(h) + 1
        return h * 2
""",
        reported=True,
    ),
    NearMiss(
        title="an iterator from outside is used up",
        source="""\
class Used(nn.Module):
    def forward(self, x):
        h = x.exp()
        rest = iter([x, x * 2])
        if h.mean() > 2:
            for t in rest:
                h = h + t
        return h, sum(rest)
""",
        reported=True,
    ),
    NearMiss(
        title="a function that is run by a checkpoint",
        source="""\
from torch.utils.checkpoint import checkpoint


class Saved(nn.Module):
    def block(self, x):
        h = x.exp()
        if h.mean() > 2:
            h = h.log() + 1
        return h * 2

    def forward(self, x):
        return checkpoint(self.block, x, use_reentrant=False)
""",
        reported=True,
    ),
    NearMiss(
        title="a sum in a loop of the arm, from what was there before",
        source="""\
class Summed(nn.Module):
    def forward(self, x):
        h = x.exp()
        acc = h[0]
        if h.mean() > 2:
            for i in range(3):
                acc += x[i]
        return h + acc
""",
        reported=True,
    ),
    NearMiss(
        title="an arm that reads two parts of one tensor",
        source="""\
class Halves(nn.Module):
    def forward(self, x):
        q, k = (x * 2).chunk(2, -1)
        y = q * 1
        if x.sum() > 0:
            y = q.exp() + k
        return y * 2
""",
        reported=True,
    ),
    NearMiss(
        title="the arm reads data as well",
        source="""\
class Reading(nn.Module):
    def forward(self, x):
        y = x * 1
        if x.sum() > 0:
            y = y * x.max().item()
        return y * 2
""",
        reported=True,
    ),
    NearMiss(
        title="the arm changes what was there before",
        source="""\
class Changing(nn.Module):
    def forward(self, x):
        y = x * 1
        z = y.view(-1)
        if x.sum() > 0:
            z[0] = 2
            y = y + 1
        return y * 2
""",
        reported=True,
    ),
    NearMiss(
        title="what the arm is given is added to in place",
        source="""\
class Adding(nn.Module):
    def forward(self, x, y):
        z = x * 1
        if y.sum() > 0:
            z += y.exp()
        return z * 2
""",
        reported=True,
    ),
    NearMiss(
        title="a number in one case",
        source="""\
class Numbered(nn.Module):
    def forward(self, x):
        scale = 2
        if x.sum() > 0:
            scale = x.exp().sum()
        return x * scale
""",
        reported=True,
    ),
    NearMiss(
        title="integers in one case",
        source="""\
class Cast(nn.Module):
    def forward(self, x):
        y = x.exp()
        if x.sum() > 0:
            y = y.log().long()
        return y * 2
""",
        reported=True,
    ),
    NearMiss(
        title="a row more in one case",
        source="""\
class Longer(nn.Module):
    def forward(self, x):
        y = x.exp()
        if x.sum() > 0:
            y = y.sum(0).sqrt()
        return y * 2
""",
        reported=True,
    ),
    NearMiss(
        title="it may have no value in the other case",
        source="""\
class Unbound(nn.Module):
    def forward(self, x, again=False):
        if again:
            y = x * 2
        if x.sum() > 0:
            y = x.exp() + 1
        return y * 2
""",
        reported=True,
    ),
    NearMiss(
        title="statistics of batches are kept in the arm",
        source="""\
class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x):
        y = x.exp()
        if x.sum() > 0:
            y = self.norm(y)
        return y * 2
""",
        reported=True,
    ),
    NearMiss(
        title="a recurrent layer, which no graph takes",
        source="""\
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 3)

    def forward(self, x):
        y = x.exp()
        if x.sum() > 0:
            y, _ = self.lstm(y)
        return y * 2
""",
        reported=True,
    ),
    NearMiss(
        title="`super()` is another in a function of its own",
        source="""\
class Base(nn.Module):
    def scaled(self, x):
        return x.exp()


class Derived(Base):
    def forward(self, x):
        y = x * 1
        if x.sum() > 0:
            y = super().scaled(y)
        return y * 2
""",
        reported=True,
    ),
    NearMiss(
        title="the next turn of a loop",
        source="""\
class Turns(nn.Module):
    def forward(self, x):
        y = x * 1
        for i in range(3):
            if y.sum() > i:
                y = y.exp()
                continue
            y = y * 2
        return y
""",
        reported=True,
    ),
    NearMiss(
        title="what is kept is changed in place below, and the caller sees it",
        source="""\
class Kept(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            x = x.exp() + 1
        x[0] = 3
        return x
""",
        reported=True,
    ),
    NearMiss(
        title="a nested function reads the result",
        source="""\
class Nested(nn.Module):
    def forward(self, x):
        y = x * 1
        if x.sum() > 0:
            y = y.exp() + 1

        def doubled():
            return y * 2

        return doubled()
""",
        reported=True,
    ),
    NearMiss(
        title="an arm that prints",
        source="""\
class Telling(nn.Module):
    def forward(self, x):
        y = x * 1
        if x.sum() > 0:
            y = y.exp()
            print("positive", flush=True)
            y = y + 1
        return y * 2
""",
        reported=True,
    ),
    NearMiss(
        title="what another package does is not known",
        source="""\
import scipy.special


class Foreign(nn.Module):
    def forward(self, x):
        y = x * 1
        if x.sum() > 0:
            y = torch.as_tensor(scipy.special.erf(y))
        return y * 2
""",
        reported=True,
    ),
    NearMiss(
        title="a function of this file that reads data",
        source="""\
def longest(x):
    return int(x.max())


class Through(nn.Module):
    def forward(self, x):
        y = x * 1
        if x.sum() > 0:
            y = y * longest(x)
        return y * 2
""",
        reported=True,
    ),
    NearMiss(
        title="the gradient of what is kept does not get through",
        source="""\
class Detached(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        h = self.lin(x)
        with torch.no_grad():
            if x.sum() > 0:
                h = h.exp()
        return h * 2
""",
        reported=True,
    ),
    NearMiss(
        title="TorchScript compiles it, too",
        source="""\
@torch.jit.script
def scaled(x):
    y = x.exp()
    if bool(x.sum() > 0):
        y = y.sqrt().log()
    return y * 2


class Scripted(nn.Module):
    def forward(self, x):
        return scaled(x)
""",
        reported=True,
    ),
)
