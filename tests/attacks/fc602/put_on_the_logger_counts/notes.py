import functools
import logging


def counting(self, *args):
    self.count = getattr(self, "count", 0) + 1
    self.warning(*args)


def warning_once(self, *args):
    counting(self, *args)


logging.Logger.warning_once = warning_once
