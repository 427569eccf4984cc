from model import Rotary


class Cached(Rotary):
    def __init__(self):
        super().__init__()
        self.known = {}

    def stretch(self, end):
        key = int(end)
        if key < 9:
            raise KeyError(key)
        self.known[key] = self.known.get(key, 0) + 1
        return self.table / key
