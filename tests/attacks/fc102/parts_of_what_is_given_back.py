"""Lists that a layer gives back beside its result grow above a check: those that it keeps are longer after the error."""

import torch
import torch.nn as nn

LISTS = []


class New(nn.Module):
    def forward(self, x):
        found = []
        for row in x:
            found.append(row)
        return x, found


class NewCheck(nn.Module):
    def forward(self, x):
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x * 2


class UsesNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.part, self.check = New(), NewCheck()

    def forward(self, x):
        x, found = self.part(x)
        found.append(x)
        return self.check(x), len(found)


class Keeping(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = []

    def forward(self, x):
        found = self.kept
        return x, found


class UsesKeeping(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Keeping()

    def forward(self, x):
        x, found = self.part(x)
        found.append(1)
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x, len(found)


class Noting(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = [[]]

    def forward(self, x):
        found = []
        self.kept[0] = found
        return x, found


class UsesNoting(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Noting()

    def forward(self, x):
        x, found = self.part(x)
        found.append(1)
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x, len(found)


class Listing(nn.Module):
    def forward(self, x):
        found = []
        if not LISTS:
            LISTS.append(found)
        return x, found


class UsesListing(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Listing()

    def forward(self, x):
        x, found = self.part(x)
        found.append(1)
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x, len(found)


class Starring(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = []

    def forward(self, x):
        more = x, self.kept
        return *more, [], 3


class UsesStarring(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Starring()

    def forward(self, x):
        x, found, other, n = self.part(x)
        found.append(1)
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x, len(found)


def cached(function):
    held = {}

    def call(n):
        if n not in held:
            held[n] = function(n)
        return held[n]

    return call


@cached
def remembered(n):
    found = []
    return n, found


class UsesRemembered(nn.Module):
    def forward(self, x):
        n, found = remembered(3)
        found.append(1)
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x, len(found)


class Either(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = []

    def forward(self, x, n=2):
        if n == 0:
            return x, self.kept
        x, found = self.forward(x, n - 1)
        return x, found


class UsesEither(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Either()

    def forward(self, x):
        x, found = self.part(x)
        found.append(1)
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x, len(found)


class Written(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = []

    def forward(self, x):
        *some, found, last = *[x], self.kept, []
        one, two, three = *[x, self.kept], []
        two.append(1)
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x, len(two)


class All(nn.Module):
    def __init__(self):
        super().__init__()
        kinds = UsesNew, UsesKeeping, UsesNoting, UsesListing, UsesStarring, UsesRemembered, UsesEither, Written
        self.parts = nn.ModuleList([kind() for kind in kinds])


def step(parts, x):
    told = []
    for part in parts.parts:
        try:
            out = torch.compile(part, backend="aot_eager")(x)
        except Exception:
            out = "raised"
        held = getattr(part, "part", part)
        told += [out, [len(part) for part in LISTS], str(getattr(held, "kept", 0)), remembered(3)[1]]
    return told


# run
def make(): return All()
def taken(parts, x):
    torch._dynamo.reset()
    return step(parts, x)
nan, one = torch.tensor([1.0, float("nan")]), torch.ones(2)
calls = [lambda parts: taken(parts, nan), lambda parts: taken(parts, one)]
