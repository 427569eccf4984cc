class Tuner:
    """Finds the largest size that works."""

    def tuned(self, fn, x):
        for size in (3, 2, 5):
            try:
                return fn(x, size=size)
            except ValueError:
                continue
        return x
