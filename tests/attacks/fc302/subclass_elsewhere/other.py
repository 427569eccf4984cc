
from model import Cache


class Counted(Cache):
    def total(self):
        return int(getattr(self, "_" + "filled").sum())
