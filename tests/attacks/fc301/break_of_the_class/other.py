
from model import Cache


class Counted(Cache):
    ends = 0

    def _end(self):
        self.ends += 1
        super()._end()
