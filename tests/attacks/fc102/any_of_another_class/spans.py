class Spans:
    """Parts of a sequence."""

    def __init__(self, pairs):
        self.pairs = pairs

    def overlaps(self, x):
        return Spans([(a, b) for (_, b), (a, _) in zip(self.pairs, self.pairs[1:]) if a < b])

    def any(self):
        return bool(self.pairs)

    def apply(self, x):
        out = x * 0
        for a, b in self.pairs:
            out[a:b] = x[a:b]
        return out
