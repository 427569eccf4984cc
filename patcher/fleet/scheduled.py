"""Slots on the workers of a Dask scheduler: the folder that ``--export`` writes is what is sent, as bytes.

What goes on here: the analysis, the patch, the search of ``prove``, the verdict. What goes on there: a plan, run by
the worker's own Python. The only module that knows of Dask.
"""

from __future__ import annotations

import contextlib
import io
import json
import threading
import time
import uuid
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import cloudpickle
from distributed import Client, Future
from distributed.scheduler import KilledWorker

from patcher.fleet import errand
from patcher.fleet.doing import LEFT_OUT, Workshop
from patcher.fleet.places import Places
from patcher.fleet.row import Job, Row, of
from patcher.fleet.slots import FleetError
from patcher.harness import plan
from patcher.harness.cases import Case
from patcher.harness.run import RunError
from patcher.harness.scratch import scratch
from patcher.results import FileResult
from patcher.rule import Rule

TRIES = 3  # a task that was begun so often is not begun again
_CONNECT_SECONDS, _WORKERS_SECONDS = 15, 60
_LOOK_SECONDS, _CHECK_SECONDS = 0.5, 3.0  # at a task; at the scheduler, for all tasks
_PROCESSES = 6  # of a case, besides those of each mode and experiment: at most
_GRACE_SECONDS = 120.0  # for what is around the processes of a plan


class _LostError(Exception):
    """The worker that a job was bound to is gone."""


def there(
    address: str, jobs: Sequence[Job], rules: Sequence[Rule], count: int | None, patience: float | None
) -> Places:
    """The workers of a scheduler. ``count``: jobs at a time; None: as many as they have threads, and some that wait.

    ``patience``: seconds after which a measurement that has begun and not ended is begun elsewhere. Raises
    ``FleetError``.
    """
    cluster = Cluster.connected(address, patience)
    try:
        workers = cluster.workers()
        gpus = sum(int(info.get("resources", {}).get("GPU", 0)) for info in workers.values())
        if not gpus and any(job.model.wish.gpu for job in jobs):
            raise FleetError("the manifest asks for GPUs and no worker offers one: start them with --resources GPU=1")
        threads = sum(int(info.get("nthreads", 1)) for info in workers.values())
        known = cluster.about()
    except FleetError:
        cluster.close()
        raise
    torches = {about["torch"] for about in known.values() if about["torch"]}
    hosts = {about["host"] for about in known.values()}
    if not torches:
        cluster.close()
        raise FleetError(f"no worker of {address} has torch")
    versions = f"torch {', '.join(sorted(torches))}" + (", which differs between them" if len(torches) > 1 else "")
    more = "" if threads == len(workers) else "; those with several threads disturb each other's times"
    told = f"{len(workers)} workers on {len(hosts)} machine{'' if len(hosts) == 1 else 's'} ({versions}{more})"
    workshop = Workshop(rules)
    slots = tuple(Slot(cluster, workshop) for _ in range(count or threads + 2))
    return Places(slots, frozenset(torches), told, cluster.close)


@dataclass
class Cluster:
    """A scheduler, and what is known of the tasks that it was given. ``begun``: by topic, on which workers."""

    client: Any
    address: str
    patience: float | None
    topic: str = field(default_factory=lambda: f"fix-compile-{uuid.uuid4().hex}")
    begun: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    listening: dict[str, Callable[[str], None]] = field(default_factory=dict)
    closed: threading.Event = field(default_factory=threading.Event)
    _looking: threading.Lock = field(default_factory=threading.Lock)
    _looked: float = float("-inf")
    _workers: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def connected(address: str, patience: float | None) -> Cluster:
        """Raises ``FleetError`` when nobody answers at the address."""
        cloudpickle.register_pickle_by_value(errand)  # a worker has nothing of ours
        try:
            client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False, name="fix-compile-fleet")
        except (OSError, ValueError, TimeoutError) as error:
            raise FleetError(f"no scheduler answers at {address}: {' '.join(str(error).split())[:200]}") from None
        cluster = Cluster(client, address, patience)
        client.subscribe_topic(cluster.topic, cluster.heard)
        return cluster

    def heard(self, event: tuple[float, dict[str, str]]) -> None:
        """A worker has begun a task."""
        told = event[1]
        self.begun.setdefault(told["task"], []).append({**told, "at": str(time.monotonic())})
        begun = self.listening.get(told["task"])
        if begun is not None:
            begun(f"{told['host']} ({told['name'].rpartition('/')[2]})")

    def workers(self) -> dict[str, Any]:
        """By address, once there is one; raises ``FleetError``."""
        try:
            self.client.wait_for_workers(1, timeout=_WORKERS_SECONDS)
        except TimeoutError:
            raise FleetError(f"the scheduler at {self.address} has no workers") from None
        except (OSError, ValueError):
            raise self.gone() from None
        return self.looked()

    def looked(self) -> dict[str, Any]:
        """The workers by address, as they were a few seconds ago; raises ``FleetError`` when the scheduler is gone."""
        with self._looking:
            if self.closed.is_set() or self.client.status != "running":
                raise self.gone()
            if time.monotonic() > self._looked + _CHECK_SECONDS:
                try:
                    self._workers = dict(self.client.scheduler_info(n_workers=-1)["workers"])
                except Exception:
                    raise self.gone() from None
                self._looked = time.monotonic()
            return self._workers

    def about(self) -> dict[str, dict[str, str]]:
        """What each worker says of its machine; raises ``FleetError``."""
        try:
            return dict(self.client.run(errand.about))
        except Exception as error:
            raise FleetError(f"the workers of {self.address} do not answer: {error}") from None

    def gone(self) -> FleetError:
        """That the scheduler is."""
        return FleetError(f"the scheduler at {self.address} is gone")

    def close(self) -> None:
        """Take back what was asked for and is not done; twice is once."""
        if self.closed.is_set():
            return
        self.closed.set()
        with contextlib.suppress(Exception):
            self.client.close(timeout=2)


class Slot:
    """A job at a time on whichever worker is free."""

    def __init__(self, cluster: Cluster, workshop: Workshop) -> None:
        self._cluster, self._workshop = cluster, workshop

    def do(self, job: Job, begun: Callable[[str], None]) -> Row:
        """The row of a job; begun anew when the worker that it is bound to dies. Raises ``FleetError``."""
        tries, hosts = 0, list[str]()
        for _ in range(TRIES):
            door = _Door(self._cluster, job, begun)
            begun("this machine")
            try:
                row = self._workshop.do(job, door)
            except _LostError:
                tries, hosts = tries + door.tries, [*hosts, door.machine]
                continue
            return replace(row, tries=max(1, tries + door.tries))
        lost = ", ".join(dict.fromkeys(hosts))
        return of(job, "failed", f"the workers that it was on died or hung, {TRIES} times: {lost}", tries=tries)

    def close(self) -> None:
        """Take everything back: all slots end together."""
        self._cluster.close()


class _Door:
    """Measures a job's plans. What comes after the first goes to the same worker: times compare on one machine only."""

    away = True

    def __init__(self, cluster: Cluster, job: Job, begun: Callable[[str], None]) -> None:
        self._cluster, self._job, self._begun = cluster, job, begun
        self.machine, self.tries, self._home = "", 0, ""

    def __call__(self, files: Sequence[FileResult], cases: Sequence[Case], options: plan.Options) -> dict[str, Any]:
        """Measure there; raises ``PlanError``, ``RunError``, ``FleetError``."""
        packed, left = _packed(files, cases, options)
        topic = f"{self._cluster.topic}-{uuid.uuid4().hex[:12]}"
        self._cluster.listening[topic] = self._begun
        each = _PROCESSES + 3 * len(options.modes) + len(options.probes)
        limit = options.seconds * each * len(cases) + _GRACE_SECONDS
        try:
            told = self._told(packed, topic, limit)
        finally:
            self.tries = max(self.tries, len(self._cluster.begun.pop(topic, ())))
            self._cluster.listening.pop(topic, None)
        if "results" not in told:
            raise RunError(f"on {told['host']}: {told['wrong']}")
        self.machine, self._home = told["host"], told["worker"]
        return {**json.loads(zlib.decompress(told["results"])), LEFT_OUT: list(left)}

    def _told(self, packed: bytes, topic: str, limit: float) -> dict[str, Any]:
        """What the errand says, wherever it came to its end."""
        slow = list[str]()  # workers that had it and did not come back
        while True:
            future = self._submitted(packed, topic, limit, slow)
            try:
                told = self._waited(future, topic, self._cluster.patience or limit + _GRACE_SECONDS)
            finally:
                with contextlib.suppress(Exception):
                    future.release()
            if told is not None and "given_up" not in told:
                return told
            starts = self._cluster.begun.get(topic, [])
            hosts = ", ".join(dict.fromkeys(start["host"] for start in starts))
            if told is not None or len(starts) >= TRIES:
                raise RunError(f"the workers that had it died or hung, {len(starts)} times: {hosts}")
            slow += [start["worker"] for start in starts[-1:]]

    def _submitted(self, packed: bytes, topic: str, limit: float, slow: Sequence[str]) -> Future:
        cluster, bound = self._cluster, {}
        if self._home:
            bound = {"workers": [self._home], "allow_other_workers": False}
        elif slow:
            others = [address for address in cluster.looked() if address not in slow]
            bound = {"workers": others, "allow_other_workers": False} if others else {}
        try:
            return cluster.client.submit(
                errand.errand,
                packed,
                [topic, cluster.topic],
                TRIES,
                limit,
                key=f"fix-compile-{self._job.do}-{uuid.uuid4().hex}",
                resources={"GPU": 1} if self._job.model.wish.gpu else None,
                retries=0,
                pure=False,
                **bound,
            )
        except Exception:
            raise cluster.gone() from None

    def _waited(self, future: Future, topic: str, patience: float) -> dict[str, Any] | None:
        """What came of a task; None when it was begun and has not ended for so long, or has ended its workers."""
        over = threading.Event()
        future.add_done_callback(lambda _: over.set())
        while True:
            over.wait(_LOOK_SECONDS)
            if future.status == "finished":
                try:
                    told: dict[str, Any] = future.result(timeout=_CONNECT_SECONDS)
                except Exception:
                    raise self._cluster.gone() from None
                return told
            if future.status == "error":
                return self._wrong(future)
            if future.status != "pending":
                raise self._cluster.gone()
            workers, starts = self._cluster.looked(), self._cluster.begun.get(topic, [])
            if self._home and self._home not in workers:
                raise _LostError
            if starts and time.monotonic() > float(starts[-1]["at"]) + patience:
                with contextlib.suppress(Exception):
                    future.cancel(force=True)
                return None

    def _wrong(self, future: Future) -> dict[str, Any]:
        error = future.exception()
        if isinstance(error, KilledWorker):
            return {"given_up": True}
        return {"wrong": f"{type(error).__name__}: {' '.join(str(error).split())}", "host": "a worker"}


def _packed(files: Sequence[FileResult], cases: Sequence[Case], options: plan.Options) -> tuple[bytes, tuple[str, ...]]:
    """The exported folder as a ZIP archive, and the files that were left out of it."""
    with scratch() as folder:
        left = plan.export(folder, files, cases, options)
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(folder.rglob("*")):
                if file.is_file():
                    archive.write(file, file.relative_to(folder).as_posix())
        return data.getvalue(), left
