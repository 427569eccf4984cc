from model import Conv


class Cyclic(Conv):
    """Every call has a phase of its own."""

    def __init__(self):
        super().__init__()
        self._stride = 0

    def forward(self, x):
        self._stride += 1
        return super().forward(x.roll(self._stride, -1)) + self._stride
