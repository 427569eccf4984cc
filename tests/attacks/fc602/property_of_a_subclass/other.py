
from model import Net


class Stepping(Net):
    taken = 0

    @property
    def step(self):
        self.taken += 1
        return self.taken

    @step.setter
    def step(self, value):
        self.taken = value

    def offset(self):
        return self.taken
