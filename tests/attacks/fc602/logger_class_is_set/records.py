
import logging


class Counting(logging.Logger):
    def __init__(self, name, level=0):
        super().__init__(name, level)
        self.count = 1

    def warning(self, *args, **kwargs):
        self.count += 1
        super().warning(*args, **kwargs)
