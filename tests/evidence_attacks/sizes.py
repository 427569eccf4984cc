"""Calls of a core that was compiled again for other sizes, written to deceive what marks their arguments.

Each is the rest of a module whose `core(self, x, y=None, *, z=None)` has varied in dimension 0 of all three, and in
dimension 1 of `x`.
"""

from __future__ import annotations

#: To be marked: number of marks that are to be there.
MARKED = {
    "by position and keyword": (
        3,
        """
    def forward(self, a, b=None, c=None):
        return self.core(a, b, z=c)
""",
    ),
    "names that are no tensors at times": (
        3,
        """
    def forward(self, a, b=None, c=None):
        b = 2.0 if b is None else b
        return self.core(a, b, z=c if c is None else c) + self.core(a, None, z=c)
""",
    ),
    "a name with None": (
        1,
        """
    def forward(self, a, b=None, c=None):
        nothing = None
        return self.core(a, nothing)
""",
    ),
    "one that is bound on both paths": (
        1,
        """
    def forward(self, a, b=None, c=None):
        if a.dim() > 1:
            t = a + 1
        else:
            t = a[None]
        return self.core(t)
""",
    ),
    "in a loop, another tensor each time": (
        1,
        """
    def forward(self, a, b=None, c=None):
        for _ in range(3):
            a = self.core(a)
        return a
""",
    ),
    "in a loop over tensors": (
        1,
        """
    def forward(self, a, b=None, c=None):
        out = []
        for row in (a, a + 1):
            out.append(self.core(row))
        return out
""",
    ),
    "twice the same, then another": (
        3,
        """
    def forward(self, a, b=None, c=None):
        first = self.core(a)
        second = self.core(a) + first
        a = second
        return self.core(a)
""",
    ),
    "in both branches": (
        2,
        """
    def forward(self, a, b=None, c=None):
        if self.training:
            return self.core(a)
        else:
            return self.core(a) * 2
""",
    ),
    "before a branch and in it": (
        2,
        """
    def forward(self, a, b=None, c=None):
        h = self.core(a)
        if h.dim() == 2:
            h = h + self.core(a)
        return h
""",
    ),
    "as the test of an if and the iterator of a for": (
        2,
        """
    def forward(self, a, b=None, c=None):
        total = 0.0
        if self.core(a).dim() == 2:
            total = total + 1
        b = a
        for row in self.core(b):
            total = total + row.sum()
        return total
""",
    ),
    "in a try and a with": (
        1,
        """
    def forward(self, a, b=None, c=None):
        try:
            with torch.no_grad():
                return self.core(a)
        finally:
            a = None
""",
    ),
    "a nested function that captures": (
        1,
        """
    def forward(self, a, b=None, c=None):
        def run():
            return self.core(a)
        return run()
""",
    ),
    "the result under the name of the argument": (
        1,
        """
    def forward(self, a, b=None, c=None):
        a = self.core(a)  # again
        return a
""",
    ),
    "a generator": (
        1,
        """
    def forward(self, a, b=None, c=None):
        return next(self.rows(a))

    def rows(self, a):
        yield self.core(a)
""",
    ),
    "a local name for the core": (
        1,
        """
    def forward(self, a, b=None, c=None):
        return self.run(a)

    def run(self, t):
        return Net.core(self, t) if t is None else self.core(t)
""",
    ),
    "frozen, a weight, a view": (
        1,
        """
    def forward(self, a, b=None, c=None):
        with torch.inference_mode():
            v = a[:, :]
            w = self.weight
            return self.core(v) + self.core(w).sum()
""",
    ),
    "over several lines, with comments": (
        1,
        """
    def forward(self, a, b=None, c=None):
        # what this is
        return self.core(
            a,  # the tensor
        )
""",
    ),
}

#: No mark can stand before the call.
UNMARKED = {
    "no name": """
    def forward(self, a, b=None, c=None):
        return self.core(a + 1)
""",
    "an attribute": """
    def forward(self, a, b=None, c=None):
        self.kept = a
        return self.core(self.kept)
""",
    "bound by the comprehension": """
    def forward(self, a, b=None, c=None):
        return [self.core(a) for a in (a, a + 1)]
""",
    "bound by a walrus in the statement": """
    def forward(self, a, b=None, c=None):
        return (t := a + 1).sum() + self.core(t)
""",
    "in a lambda": """
    def forward(self, a, b=None, c=None):
        return (lambda t: self.core(t))(a)
""",
    "the test of a while": """
    def forward(self, a, b=None, c=None):
        while self.core(a).sum() < 100:
            a = a + 1
        return a
""",
    "the test of an elif": """
    def forward(self, a, b=None, c=None):
        if b is not None:
            return b
        elif self.core(a).dim() == 2:
            return a
        return c
""",
    "behind a colon": """
    def forward(self, a, b=None, c=None):
        if a.dim() == 2: return self.core(a)
        return a
""",
    "behind a semicolon": """
    def forward(self, a, b=None, c=None):
        a = a + 1; return self.core(a)
""",
    "no value on some path": """
    def forward(self, a, b=None, c=None):
        if a.shape[0] < 100:
            t = a
        return self.core(t) if a.shape[0] < 100 else a
""",
    "by stars": """
    def forward(self, a, b=None, c=None):
        return self.core(*[a]) + self.core(**{"x": a})
""",
    "a number": """
    def forward(self, a, b=None, c=None):
        n = 3
        return a + self.core(n)
""",
    "a default of a nested function": """
    def forward(self, a, b=None, c=None):
        def later(t=self.core(a)):
            return t
        return later()
""",
}
