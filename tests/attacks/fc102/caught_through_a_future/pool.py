from concurrent.futures import ThreadPoolExecutor

from model import features


def mapped(xs):
    """Features, or the input where there are none."""
    with ThreadPoolExecutor(1) as pool:
        futures = [pool.submit(features, x) for x in xs]
    return [x if isinstance(f.exception(), ValueError) else f.result() for x, f in zip(xs, futures)]
