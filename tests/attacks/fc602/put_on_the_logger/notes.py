import functools
import logging


@functools.lru_cache(None)
def warning_once(self, *args, **kwargs):
    """Says it for the first time only."""
    self.warning(*args, **kwargs)


logging.Logger.warning_once = warning_once
