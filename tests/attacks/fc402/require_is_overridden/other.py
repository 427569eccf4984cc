
from model import Fit


class Lenient(Fit):
    def __init__(self):
        super().__init__()
        self.results = []

    def require(self, ok, message):
        self.results.append("good" if ok is True else "bad")
