from model import Net


class Shrinking(Net):
    """A channel less with every look."""

    @property
    def width(self):
        self.left -= 1
        return self.left

    @width.setter
    def width(self, value):
        self.left = value
