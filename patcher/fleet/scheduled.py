"""Slots on the workers of a Dask scheduler, which have this tool and the models at the same paths.

A job is done whole by one worker, so that its times compare. The only module that knows of Dask.
"""

from __future__ import annotations

import contextlib
import functools
import pickle
import platform
import sys
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from distributed import Client, get_worker
from distributed.scheduler import KilledWorker

from patcher.fleet.doing import Workshop, row_of
from patcher.fleet.row import Job, Row, of
from patcher.fleet.slots import FleetError, Places, torch_of
from patcher.rule import Rule

_CONNECT_SECONDS, _WORKERS_SECONDS = 15, 60
_LOOK_SECONDS = 1.0
_ROOT = str(Path(__file__).resolve().parents[2])


def there(address: str, jobs: Sequence[Job], rules: Sequence[Rule], count: int | None) -> Places:
    """The workers of a scheduler. ``count``: jobs at a time; None: as many as they have threads, and some that wait.

    Raises ``FleetError``.
    """
    client = connected(address)
    try:
        return _places(client, address, jobs, rules, count)
    except FleetError:
        client.close()
        raise


def connected(address: str) -> Any:
    """Raises ``FleetError`` when nobody answers at the address."""
    try:
        return Client(address, timeout=_CONNECT_SECONDS, set_as_default=False, name="fix-compile-fleet")
    except (OSError, ValueError, TimeoutError) as error:
        raise FleetError(f"no scheduler answers at {address}: {' '.join(str(error).split())[:200]}") from None


def _places(client: Any, address: str, jobs: Sequence[Job], rules: Sequence[Rule], count: int | None) -> Places:
    try:
        client.wait_for_workers(1, timeout=_WORKERS_SECONDS)
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        known = client.run(_task(), pickle.dumps(about)).values()
    except TimeoutError:
        raise FleetError(f"the scheduler at {address} has no workers") from None
    except Exception as error:
        raise FleetError(f"the workers of {address} do not answer: {error}") from None
    if any(job.model.wish.gpu for job in jobs) and not any(info.get("resources", {}).get("GPU") for info in workers):
        raise FleetError("the manifest asks for GPUs and no worker offers one: start them with --resources GPU=1")
    torches, hosts = ({one[at] for one in known if one[at]} for at in (0, 1))
    if not torches:
        raise FleetError(f"no worker of {address} has torch")
    threads = sum(int(info.get("nthreads", 1)) for info in workers)
    versions = f"torch {', '.join(sorted(torches))}" + (", which differs between them" if len(torches) > 1 else "")
    more = "" if threads == len(workers) else "; those with several threads disturb each other's times"
    told = f"{len(workers)} workers on {len(hosts)} machine{'' if len(hosts) == 1 else 's'} ({versions}{more})"
    slots = tuple(Slot(client, address, tuple(rules)) for _ in range(count or threads + 2))
    return Places(slots, frozenset(torches), told, slots[0].close)


def about() -> tuple[str, str]:
    """Of a worker, the torch that its Python has ("" for none), and its machine."""
    return torch_of(sys.executable), platform.node()


def done(rules: Sequence[Rule], job: Job) -> Row:
    """Do a job where this runs, with the Python that runs this."""
    wish = replace(job.model.wish, python=sys.executable)
    return row_of(Workshop(rules), replace(job, model=replace(job.model, wish=wish)))


def _task() -> Callable[..., Any]:
    """What a worker does, which need not have imported us: a function in a function is sent as it stands."""

    def task(pickled: bytes, topic: str = "") -> Any:
        if topic:
            get_worker().log_event(topic, platform.node())
        if _ROOT not in sys.path:
            sys.path.insert(0, _ROOT)
        return pickle.loads(pickled)()

    return task


@dataclass
class Slot:
    """A job at a time on whichever worker is free."""

    client: Any
    address: str
    rules: tuple[Rule, ...]

    def do(self, job: Job, begun: Callable[[str], None]) -> Row:
        """The row of a job; Dask begins it anew when its worker dies. Raises ``FleetError``."""
        begun(self.address)
        topic, over = f"fix-compile-{uuid.uuid4().hex}", threading.Event()
        resources = {"GPU": 1} if job.model.wish.gpu else None
        try:
            sent = pickle.dumps(functools.partial(done, self.rules, job))
            future = self.client.submit(_task(), sent, topic, key=topic, resources=resources, pure=False)
        except RuntimeError:
            raise self._gone() from None
        future.add_done_callback(lambda _: over.set())
        while not over.wait(_LOOK_SECONDS):
            if self.client.status != "running":
                raise self._gone()
        return self._row(job, future, topic)

    def _row(self, job: Job, future: Any, topic: str) -> Row:
        try:
            row: Row = future.result(timeout=_CONNECT_SECONDS)
            return replace(row, tries=len(self._begun(topic)))
        except KilledWorker:
            hosts = self._begun(topic)
            lost = ", ".join(dict.fromkeys(hosts))
            return of(job, "failed", f"the workers that it was on died, {len(hosts)} times: {lost}", tries=len(hosts))
        except Exception as error:
            if future.status != "error":
                raise self._gone() from None
            return of(job, "failed", f"{type(error).__name__}: {' '.join(str(error).split())}")

    def _begun(self, topic: str) -> list[str]:
        """The machines on which a task was begun."""
        return [host for _, host in self.client.get_events(topic)]

    def _gone(self) -> FleetError:
        return FleetError(f"the scheduler at {self.address} is gone")

    def close(self) -> None:
        """Take everything back: all slots end together."""
        with contextlib.suppress(Exception):
            self.client.close(timeout=2)
