import asyncio


def run(waiting):
    return asyncio.run(waiting)
