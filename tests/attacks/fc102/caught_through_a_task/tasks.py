import asyncio
from asyncio import create_task

from model import features


async def one(x):
    return features(x)


async def gathered(xs):
    tasks = [create_task(one(x)) for x in xs]
    await asyncio.wait(tasks)
    return [x if isinstance(t.exception(), ValueError) else t.result() for x, t in zip(xs, tasks)]


def mapped(xs):
    """Features, or the input where there are none."""
    return asyncio.run(gathered(xs))
