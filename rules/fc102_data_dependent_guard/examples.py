"""What DataDependentGuard reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import (
    Example,
    NearMiss,
)

INVALID: tuple[Example, ...] = (
    Example(
        title="a docstring tells of the error: unsafe",
        before="""\
class Told(nn.Module):
    def forward(self, x):
        '''The logarithm.

        Raises:
            ValueError: if there is something else than positive numbers.
        '''
        self._check(x)
        return x.log()

    def _check(self, x):
        if x.min() <= 0:
            raise ValueError("not positive")
""",
        after="""\
class Told(nn.Module):
    def forward(self, x):
        '''The logarithm.

        Raises:
            ValueError: if there is something else than positive numbers.
        '''
        self._check(x)
        return x.log()

    def _check(self, x):
        if torch.compiler.is_compiling():
            torch._assert_async(~torch.as_tensor(x.min() <= 0), "not positive")
        elif x.min() <= 0:
            raise ValueError("not positive")
""",
        run="""\
def make(): return Told()
calls = [(torch.ones(3),), (torch.ones(2),)]
""",
        unsafe=True,
    ),
    Example(
        title="an error of the project's own that is none by its name: unsafe",
        before="""\
class OutsideDomain(Exception):
    pass


class Bounded(nn.Module):
    def forward(self, x):
        if torch.min(x) < -1 or torch.max(x) > 1:
            raise OutsideDomain()
        return x.asin()
""",
        after="""\
class OutsideDomain(Exception):
    pass


class Bounded(nn.Module):
    def forward(self, x):
        if torch.compiler.is_compiling():
            torch._assert_async(~(torch.min(x) < -1), "check failed: torch.min(x) < -1 or torch.max(x) > 1")
            torch._assert_async(~(torch.max(x) > 1), "check failed: torch.min(x) < -1 or torch.max(x) > 1")
        elif torch.min(x) < -1 or torch.max(x) > 1:
            raise OutsideDomain()
        return x.asin()
""",
        run="""\
def make(): return Bounded()
calls = [(torch.full((3,), 0.5),), (torch.full((2,), 0.5),)]
""",
        unsafe=True,
    ),
    Example(
        title="whole sentences of the message, as far as there is room; the rest is left out",
        before="""\
class Said(nn.Module):
    def forward(self, x):
        assert x.min() > 0, f"All of it has to be positive. Got {x.min()}."
        if x.max() > 9:
            raise ValueError(
                "Some of it is too large. It has been divided by nothing so far, and where that is meant, "
                "it has to be done before this module gets it"
            )
        return x.log()
""",
        after="""\
class Said(nn.Module):
    def forward(self, x):
        if torch.compiler.is_compiling():
            assert x.min() > 0, "All of it has to be positive."
        else:
            assert x.min() > 0, f"All of it has to be positive. Got {x.min()}."
        if torch.compiler.is_compiling():
            torch._assert_async(~torch.as_tensor(x.max() > 9), "Some of it is too large.")
        elif x.max() > 9:
            raise ValueError(
                "Some of it is too large. It has been divided by nothing so far, and where that is meant, "
                "it has to be done before this module gets it"
            )
        return x.log()
""",
        run="""\
def make(): return Said()
calls = [(torch.ones(3),), (torch.ones(3) * 10,), (torch.zeros(2),)]
""",
    ),
    Example(
        title="under a test for compiled code: no test inside it",
        before="""\
class Under(nn.Module):
    def forward(self, x):
        if torch.compiler.is_compiling():
            if x.max() > 9:
                raise ValueError("too large")
        return x.log()
""",
        after="""\
class Under(nn.Module):
    def forward(self, x):
        if torch.compiler.is_compiling():
            torch._assert_async(~torch.as_tensor(x.max() > 9), "too large")
        return x.log()
""",
        run="""\
def make(): return Under()
calls = [(torch.ones(3),), (torch.ones(2),)]
""",
    ),
    Example(
        title="a check of the input, with a message that shows it",
        before="""\
class Checked(nn.Module):
    def forward(self, ids):
        # words beyond the vocabulary
        if (ids > 9).any():
            raise ValueError(f"no word {ids.max()} in a vocabulary of {10}")  # says which
        return ids + 1
""",
        after="""\
class Checked(nn.Module):
    def forward(self, ids):
        # words beyond the vocabulary
        if torch.compiler.is_compiling():
            torch._assert_async(~torch.as_tensor((ids > 9).any()), "check failed: (ids > 9).any()")
        elif (ids > 9).any():
            raise ValueError(f"no word {ids.max()} in a vocabulary of {10}")  # says which
        return ids + 1
""",
        run="""\
def make(): return Checked()
calls = [(torch.tensor([1, 2]),), (torch.tensor([1, 10]),), (torch.tensor([3, 4]),)]
""",
    ),
    Example(
        title="a Python part of the test, and statements before the error",
        before="""\
class Labelled(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words

    def forward(self, x, labels=None):
        if labels is not None and labels.max() >= self.words:
            worst = labels.max().item()
            raise IndexError("label %d of %d" % (worst, self.words))
        return x * 2 if labels is None else x + labels
""",
        after="""\
class Labelled(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words

    def forward(self, x, labels=None):
        if torch.compiler.is_compiling():
            if labels is not None:
                torch._assert_async(
                    ~torch.as_tensor(labels.max() >= self.words).reshape(()),
                    "check failed: labels is not None and labels.max() >= self.words",
                )
        elif labels is not None and labels.max() >= self.words:
            worst = labels.max().item()
            raise IndexError("label %d of %d" % (worst, self.words))
        return x * 2 if labels is None else x + labels
""",
        run="""\
def make(): return Labelled(5)
calls = [(torch.ones(2),), (torch.ones(2), torch.tensor([1, 4])), (torch.ones(2), torch.tensor([1, 5]))]
""",
    ),
    Example(
        title="a check function ends in PyTorch's own check, in a loop",
        before="""\
class Layers(nn.Module):
    def must_hold(self, cond, message):
        torch._check_tensor_all(cond, lambda: message)

    def forward(self, x):
        for scale in (1.0, 2.0):
            self.must_hold(x < 9, "too large")
            x = x * scale + 1
        return x
""",
        after="""\
class Layers(nn.Module):
    def must_hold(self, cond, message):
        if torch.compiler.is_compiling():
            torch._assert_async(cond._is_all_true(), "check failed: cond")
        else:
            torch._check_tensor_all(cond, lambda: message)

    def forward(self, x):
        for scale in (1.0, 2.0):
            self.must_hold(x < 9, "too large")
            x = x * scale + 1
        return x
""",
        run="""\
def make(): return Layers()
calls = [(torch.ones(3),), (torch.ones(3) * 8.5,)]
""",
    ),
    Example(
        title="an assertion with an f-string, and one of two tensors",
        before="""\
class Asserted(nn.Module):
    def forward(self, lengths):
        total = lengths.sum()
        assert total > 0, f"nothing in {lengths}"
        assert not (total == 3), "three"
        assert (lengths >= 0).all() and not (lengths > 9).any(), "out of range"
        return lengths / total
""",
        after="""\
class Asserted(nn.Module):
    def forward(self, lengths):
        total = lengths.sum()
        if torch.compiler.is_compiling():
            assert total > 0
        else:
            assert total > 0, f"nothing in {lengths}"
        if torch.compiler.is_compiling():
            assert total != 3, "three"
        else:
            assert not (total == 3), "three"
        assert (lengths >= 0).all(), "out of range"
        assert ~(lengths > 9).any(), "out of range"
        return lengths / total
""",
        run="""\
def make(): return Asserted()
calls = [(torch.tensor(v),) for v in ([1, 3], [0, 0], [-1, 5], [3, 10], [1, 2])]
""",
    ),
    Example(
        title="numbers read from tensors, and tensors that are close",
        before="""\
class Read(nn.Module):
    def forward(self, x, steps):
        assert steps.sum().long().item() < 10
        if not torch.allclose(x.sum(-1), torch.ones(2), atol=1e-3):
            raise ValueError("rows do not sum to one")
        if bool((x < 0).any().item()):
            raise ValueError("negative")
        return x * steps
""",
        after="""\
class Read(nn.Module):
    def forward(self, x, steps):
        assert steps.sum().long() < 10
        if torch.compiler.is_compiling():
            torch._assert_async(torch.isclose(x.sum(-1), torch.ones(2), atol=1e-3).all(), "rows do not sum to one")
        elif not torch.allclose(x.sum(-1), torch.ones(2), atol=1e-3):
            raise ValueError("rows do not sum to one")
        if torch.compiler.is_compiling():
            torch._assert_async(~torch.as_tensor((x < 0).any()), "negative")
        elif bool((x < 0).any().item()):
            raise ValueError("negative")
        return x * steps
""",
        run="""\
def make(): return Read()
x, s = torch.tensor([[0.25, 0.75], [0.5, 0.5]]), torch.tensor([1, 2])
calls = [(x, s), (x * 2, s), (x, s * 5), (torch.tensor([[1.5, -0.5], [0.5, 0.5]]), s)]
""",
    ),
    Example(
        title="names for tensors behind flags, one of which is used below",
        before="""\
class FirstStep(nn.Module):
    def __init__(self, batch_first: bool = False):
        super().__init__()
        self.batch_first = batch_first

    def forward(self, x, mask):
        starts = not self.batch_first and mask[0].all()
        starts_bf = self.batch_first and mask[:, 0].all()
        if not starts and not starts_bf:
            raise ValueError("the first step must be on")
        late = mask is None or mask[:, -1].all()
        if late:
            raise ValueError("the last step must not be on")
        return x * mask, starts
""",
        after="""\
class FirstStep(nn.Module):
    def __init__(self, batch_first: bool = False):
        super().__init__()
        self.batch_first = batch_first

    def forward(self, x, mask):
        starts = not self.batch_first and mask[0].all()
        starts_bf = self.batch_first and mask[:, 0].all()
        if torch.compiler.is_compiling():
            torch._assert_async(
                torch.as_tensor(starts).bool() | torch.as_tensor(starts_bf).bool(),
                "the first step must be on",
            )
        elif not starts and not starts_bf:
            raise ValueError("the first step must be on")
        late = mask is None or mask[:, -1].all()
        if torch.compiler.is_compiling():
            torch._assert_async(torch.logical_not(torch.as_tensor(late)), "the last step must not be on")
        elif late:
            raise ValueError("the last step must not be on")
        return x * mask, starts
""",
        run="""\
def make(): return FirstStep(True)
x = torch.linspace(-1, 1, 6).view(3, 2)
masks = [[1, 1], [1, 0], [1, 0]], [[1, 0], [1, 1], [0, 0]], [[1, 1], [1, 1], [1, 1]], [[1, 0], [1, 0], [1, 1]]
calls = [(x, torch.tensor(m, dtype=torch.uint8)) for m in masks]
""",
    ),
    Example(
        title="one element, in a shape: more elements are an error, as before",
        before="""\
class OneElement(nn.Module):
    def forward(self, x):
        limit = x.view(-1)
        if limit > 2:
            raise ValueError("too much")
        return x + 1
""",
        after="""\
class OneElement(nn.Module):
    def forward(self, x):
        limit = x.view(-1)
        if torch.compiler.is_compiling():
            torch._assert_async(~torch.as_tensor(limit > 2).reshape(()), "too much")
        elif limit > 2:
            raise ValueError("too much")
        return x + 1
""",
        run="""\
def make(): return OneElement()
calls = [(torch.ones(1),), (torch.ones(1, 1) * 3,), (torch.ones(2),)]
""",
    ),
    Example(
        title="several tensors have to be wrong together",
        before="""\
class Together(nn.Module):
    def forward(self, x, y):
        if self.training and (x > 2).any() and (y < 0).any():
            raise ValueError("both")
        return x + y
""",
        after="""\
class Together(nn.Module):
    def forward(self, x, y):
        if torch.compiler.is_compiling():
            if self.training:
                torch._assert_async((~torch.as_tensor((x > 2).any())) | (~torch.as_tensor((y < 0).any())), "both")
        elif self.training and (x > 2).any() and (y < 0).any():
            raise ValueError("both")
        return x + y
""",
        run="""\
def make(): return Together().train()
calls = [(torch.ones(2) * a, torch.ones(2) * b) for a, b in ((1, 1), (3, 1), (1, -1), (3, -1))]
""",
    ),
    Example(
        title="tensors that must be equal may differ in shape: reported",
        before="""\
class Equal(nn.Module):
    def forward(self, x, y):
        if not torch.equal(x, y):
            raise ValueError("not the same")
        return x * 2
""",
        after=None,
        run="""\
def make(): return Equal()
calls = [(torch.ones(2), torch.ones(2)), (torch.ones(2), torch.ones(1))]
""",
    ),
    Example(
        title="what is counted before the error, in it or above it, is there for the next call",
        before="""\
class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.failed = 0
        self.errors = []

    def forward(self, x):
        if (x < 0).any():
            self.failed += 1
            raise ValueError("negative")
        if (x > 9).any():
            self.errors.append("large")
            raise ValueError("large")
        return self.above(x) * (self.failed + len(self.errors))

    def above(self, x):
        self.failed += 1
        if (x == 0).any():
            raise ValueError("zero")
        return x
""",
        after="""\
class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.failed = 0
        self.errors = []

    def forward(self, x):
        if torch.compiler.is_compiling():
            torch._assert_async(~torch.as_tensor((x < 0).any()), "negative")
        elif (x < 0).any():
            self.failed += 1
            raise ValueError("negative")
        if torch.compiler.is_compiling():
            torch._assert_async(~torch.as_tensor((x > 9).any()), "large")
        elif (x > 9).any():
            self.errors.append("large")
            raise ValueError("large")
        return self.above(x) * (self.failed + len(self.errors))

    def above(self, x):
        self.failed += 1
        if torch.compiler.is_compiling():
            torch._assert_async(~torch.as_tensor((x == 0).any()), "zero")
        elif (x == 0).any():
            raise ValueError("zero")
        return x
""",
        run="""\
def make(): return Counted()
calls = [(torch.ones(3),), (torch.full((2,), 3.0),)]
""",
        unsafe=True,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="a check that somebody has to ask for",
        source="""\
class Checked(nn.Module):
    def __init__(self, verify=False):
        super().__init__()
        self.verify = verify

    def forward(self, x, rows):
        if self.verify:
            assert (rows >= 0).all(), f"negative: {rows}"
        return x[rows]
""",
        reported=True,
    ),
    NearMiss(
        title="a message that is written as a format, and fills nothing in",
        source="""\
class Plain(nn.Module):
    def forward(self, x, rows):
        assert (rows >= 0).all(), f"negative rows"
        return x[rows]
""",
    ),
    NearMiss(
        title="what is a tensor is compared once more, whatever it is",
        source="""\
class Rooted(nn.Module):
    def forward(self, x, gain):
        check_positive(gain)
        return x * gain

def check_positive(value):
    if (isinstance(value, torch.Tensor) and torch.any(value < 0)) or value < 0:
        raise ValueError(f"{value} should be positive")
""",
        reported=True,
    ),
    NearMiss(
        title="the error is caught",
        source="""\
class Fallback(nn.Module):
    def forward(self, x):
        try:
            if (x < 0).any():
                raise ValueError("negative")
            return x.sqrt()
        except ValueError:
            return x
""",
        reported=True,
    ),
    NearMiss(
        title="a caller in this file catches what the function raises",
        source="""\
def root(x):
    if (x < 0).any():
        raise ValueError("negative")
    return x.sqrt()


class Caller(nn.Module):
    def forward(self, x):
        try:
            return root(x)
        except ValueError:
            return x
""",
        reported=True,
    ),
    NearMiss(
        title="a caller of a caller catches it, of a module",
        source="""\
class Root(nn.Module):
    def need(self, x):
        if (x < 0).any():
            raise ValueError("negative")

    def forward(self, x):
        self.need(x)
        return x.sqrt()


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.root = Root()

    def forward(self, x):
        try:
            return self.root(x)
        except (ValueError, KeyError):
            return x
""",
        reported=True,
    ),
    NearMiss(
        title="a decorator of this file catches it; a `finally` that returns",
        source="""\
def forgiving(function):
    def tried(self, x):
        try:
            return function(self, x)
        except ValueError:
            return x

    return tried


class Wrapped(nn.Module):
    @forgiving
    def forward(self, x):
        if (x < 0).any():
            raise ValueError("negative")
        return x.sqrt()


class Finally(nn.Module):
    def forward(self, x):
        try:
            if (x < 0).any():
                raise ValueError("negative")
            x = x.sqrt()
        finally:
            return x
""",
        reported=True,
    ),
    NearMiss(
        title="a context manager may catch it",
        source="""\
import contextlib


class Suppressed(nn.Module):
    def forward(self, x):
        with contextlib.suppress(ValueError):
            if (x < 0).any():
                raise ValueError("negative")
            x = x.sqrt()
        return x
""",
        reported=True,
    ),
    NearMiss(
        title="not every path raises",
        source="""\
class Sometimes(nn.Module):
    def forward(self, x, strict: bool = False):
        if (x < 0).any():
            if strict:
                raise ValueError("negative")
            x = x.abs()
        return x.sqrt()
""",
    ),
    NearMiss(
        title="Python values, shapes, and None",
        source="""\
class Shapes(nn.Module):
    def forward(self, x, mask=None):
        if x.shape[-1] % 2 or x.dim() != 2 or (mask is not None and mask.shape != x.shape):
            raise ValueError(f"shape {x.shape}")
        assert x.size(0) > 0, f"empty {x.shape}"
        torch._check(x.size(0) > 0)
        return x
""",
    ),
    NearMiss(
        title="an assertion that Dynamo takes as it is",
        source="""\
class Literal(nn.Module):
    def forward(self, x):
        assert (x > 0).all(), "positive"
        assert x.sum() < 9
        return x
""",
    ),
    NearMiss(
        title="eager code only, and a constructor",
        source="""\
class Eager(nn.Module):
    def __init__(self, scale):
        super().__init__()
        if (scale < 0).any():
            raise ValueError("negative scale")
        self.scale = scale

    def forward(self, x):
        if not torch.compiler.is_compiling() and (x < 0).any():
            raise ValueError("negative")
        return x * self.scale
""",
    ),
    NearMiss(
        title="the second tensor can be looked at only where the first one holds",
        source="""\
class Guarded(nn.Module):
    def forward(self, x, index):
        if (index >= 0).all() and (x[index] < 0).any():
            raise ValueError("negative")
        return x * 2
""",
        reported=True,
    ),
    NearMiss(
        title="a name for a tensor behind a comparison of sizes, which may be symbolic, and behind a flag of callers",
        source="""\
class Symbolic(nn.Module):
    def forward(self, x, strict: bool = True):
        some = x.shape[0] > 2 and (x < 0).any()
        if some:
            raise ValueError("negative")
        some = strict and (x > 9).any()
        if some:
            raise ValueError("large")
        return x.sqrt()
""",
    ),
    NearMiss(
        title="a name for a tensor behind a flag, bound anew on the way, or by a function inside",
        source="""\
class Anew(nn.Module):
    def __init__(self, strict: bool = False):
        super().__init__()
        self.strict = strict

    def forward(self, x):
        some = self.strict and (x < 0).any()
        if x.shape[0] > 2:
            some = False
        if some:
            raise ValueError("negative")
        large = self.strict and (x > 9).any()

        def forgive():
            nonlocal large
            large = False

        forgive()
        if large:
            raise ValueError("large")
        return x.sqrt()
""",
    ),
    NearMiss(
        title="a name for a tensor behind a flag: the second tensor can be looked at only where it holds",
        source="""\
class Protected(nn.Module):
    def __init__(self, strict: bool = False):
        super().__init__()
        self.strict = strict

    def forward(self, x, index):
        inside = not self.strict or (index >= 0).all()
        if inside and (x[index] < 0).any():
            raise ValueError("negative")
        return x * 2
""",
        reported=True,
    ),
    NearMiss(
        title="an assertion of what may be a flag or a tensor",
        source="""\
class Flag(nn.Module):
    def __init__(self, strict: bool = False):
        super().__init__()
        self.strict = strict

    def forward(self, x):
        positive = not self.strict or (x > 0).all()
        assert positive, "positive"
        torch._check(positive)
        return x
""",
    ),
    NearMiss(
        title="a number that a tensor holds with other digits",
        source="""\
class Digits(nn.Module):
    def forward(self, x):
        if x.max().item() > 0.1:
            raise ValueError("large")
        return x * 2
""",
        reported=True,
    ),
    NearMiss(
        title="the test binds a name that is used below",
        source="""\
class Bound(nn.Module):
    def forward(self, x):
        if (top := x.max()) > 3:
            raise ValueError("large")
        return x / top
""",
        reported=True,
    ),
    NearMiss(
        title="the error is the only way out of a loop",
        source="""\
class Endless(nn.Module):
    def forward(self, x):
        while True:
            if x.sum() > 3:
                raise RuntimeError("done")
            x = x + 1
""",
        reported=True,
    ),
    NearMiss(
        title="a number that was read before",
        source="""\
class Earlier(nn.Module):
    def forward(self, x):
        n = x.max().item()
        if n > 3 or x.shape[0] > n:
            raise ValueError("large")
        torch._check(n < x.shape[0])
        return x
""",
    ),
    NearMiss(
        title="an error that steers the program",
        source="""\
class Steps(nn.Module):
    def forward(self, x):
        if x.sum() > 3:
            raise StopIteration
        return x + 1
""",
        reported=True,
    ),
)
