"""The parent of the harness's processes: it has imported torch, and is a fork for each of them. ``forks.py`` starts it.

    python parent.py DESCRIPTOR

Over the socket of that number it is told what to run, and answers with the fork's number, and when one has ended with
its number and how. Several may run at a time.
No tensor is computed before a fork: threads do not survive one. Where a fork could not do what a new process can, the
interpreter itself becomes the first program that is asked for.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import json
import mmap
import os
import runpy
import select
import signal
import socket
import sys
import threading
import time
import zlib
from typing import Any

os.environ.setdefault("TORCH_WARM_POOL", "0")  # inductor's helpers would be threads here: each fork starts its own
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # else asking for a GPU begins to use it

import torch
import torch._dynamo
import torch._dynamo.trace_rules
import torch._inductor.compile_fx
import torch._inductor.cudagraph_trees
from torch._dynamo import guards

with contextlib.suppress(ImportError):  # other releases have not all of them
    import torch._inductor.cpu_vec_isa
    import torch.utils.serialization.config
with contextlib.suppress(ImportError):  # what each fork would import when it compiles
    import torch._inductor.fx_passes.fuse_attention
    import torch._inductor.fx_passes.pad_mm

LONGEST = 2**16  # bytes of a request
GPU_SECONDS = 60  # for the first use of a GPU
INSTRUCTION_SECONDS = 90  # for finding out which vector instructions can be used


def serve(connection: socket.socket) -> tuple[str, str] | None:
    """Fork for each request until the other end is closed.

    The answer is None in the interpreter; in each fork it is the program that it is to run, with its argument.
    """
    _die_with_parent()
    if not fit():
        connection.sendall(b"single\n")
        data, descriptors, _, _ = socket.recv_fds(connection, LONGEST, 1)
        return _become(json.loads(data), connection, descriptors[0]) if data else None
    gc.collect()
    gc.freeze()  # else each fork would collect what it has inherited
    bell = _Bell()
    running, instructions = list[int](), Instructions()
    ends: list[Any] = [connection, bell]
    connection.sendall(b"ready\n")
    while True:
        heard, _, _ = select.select(ends, [], [])
        if bell in heard:
            bell.silence()
            for child in [child for child in running if _has_ended(child)]:
                running.remove(child)
                connection.sendall(b"%d %d\n" % (child, _buried(child)))
        if connection not in heard:
            continue
        data, descriptors, _, _ = socket.recv_fds(connection, LONGEST, 1)
        if not data:
            return None
        request: dict[str, Any] = json.loads(data)
        if request["code"]:
            instructions.find()
            if not request["gpu"]:  # each kernel needs it, and would wait
                instructions.known  # noqa: B018
        child = os.fork()
        if child == 0:
            bell.remove()
            program = _become(request, connection, descriptors[0])
            _share(request)
            return program
        os.close(descriptors[0])
        running.append(child)


class _Bell:
    """Can be read as soon as a child has ended."""

    def __init__(self) -> None:
        self._end, self._start = os.pipe()
        os.set_blocking(self._end, False)
        os.set_blocking(self._start, False)
        self._before = signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._start, warn_on_full_buffer=False)

    def fileno(self) -> int:
        """Where it is read."""
        return self._end

    def silence(self) -> None:
        """Until the next one ends."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._end, LONGEST)

    def remove(self) -> None:
        """As if there had been none."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, self._before)
        os.close(self._end)
        os.close(self._start)


def _has_ended(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _buried(child: int) -> int:
    """The exit status of a child that has ended; what it has left behind is ended with it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # until it is waited for the number is its own
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _become(request: dict[str, Any], connection: socket.socket, out: int) -> tuple[str, str]:
    """What a new process would have: a session, streams, a folder, variables."""
    if os.getsid(0) != os.getpid():
        os.setsid()
    _die_with_parent()
    connection.sendall(b"%d\n" % os.getpid())  # before what can fail: the next number is taken for the status
    connection.close()
    for number in (1, 2):
        os.dup2(out, number)
    os.close(out)
    os.chdir(request["folder"])
    os.environ.update(request["variables"])
    if request["code"]:
        _warm(request["workers"])
    return request["program"], request["argument"]


def _warm(workers: int) -> None:
    """Start what generates code beside the program, as torch does where there is Triton."""
    with contextlib.suppress(AttributeError, ImportError):
        if workers:
            torch._inductor.config.compile_threads = workers
        if os.environ.pop("TORCH_WARM_POOL", "") == "0" and torch.utils._triton.has_triton_package():
            torch._inductor.async_compile.AsyncCompile.warm_pool()
            torch._inductor.async_compile.AsyncCompile.wakeup()


def _share(request: dict[str, Any]) -> None:
    """Be one of several processes, and one that nobody times."""
    if request["threads"]:
        torch.set_num_threads(request["threads"])
    if request["untimed"]:  # with the processor's caches flushed, a third of what counting costs; none before 2.8
        vars(guards).update(profile_guard_manager=lambda *_: 0.0)


def fit() -> bool:
    """Whether a fork of this process can do all that a new one can: threads do not outlive one, nor a GPU in use."""
    if threading.active_count() > 1:
        return False
    counts = {
        name: getattr(getattr(torch, name, None), "device_count", None) for name in ("cuda", "xpu", "accelerator")
    }
    if counts["cuda"] is not None and counts["cuda"]():  # asks the driver's library, and does not begin to use the GPU
        return not torch.cuda.is_initialized() and _reaches_gpu()
    return not any(count() for count in counts.values() if count is not None)


def _reaches_gpu() -> bool:
    """Whether a fork can compute on the GPU, found out by one."""
    child = os.fork()
    if child == 0:
        signal.alarm(GPU_SECONDS)
        with contextlib.suppress(BaseException):
            torch.ones(1, device="cuda").add_(1).item()
            os._exit(0)
        os._exit(1)
    return os.waitpid(child, 0)[1] == 0


class Instructions:
    """Which vector instructions inductor can use: it compiles for each of them, up to a minute of work in a process.

    A fork does that once, for this process and all that are forked from it; what it compiled stays in the user's own
    folder of inductor.
    """

    def __init__(self) -> None:
        self._told = mmap.mmap(-1, LONGEST)  # shared with all forks
        self._until = 0.0

    def find(self) -> None:
        """Begin to find out, the first time."""
        if self._until:
            return
        with contextlib.suppress(Exception):  # of other releases; each fork then finds out by itself
            kind = torch._inductor.cpu_vec_isa.VecISA
            builds = kind.check_build
            if os.fork() == 0:
                self._try(kind, builds)
            self._until = time.monotonic() + INSTRUCTION_SECONDS
            kind.check_build = lambda isa, code: self._answer(isa, code, builds)

    def _answer(self, isa: Any, code: str, builds: Any) -> bool:
        known = self.known.get(_question(isa, code))
        return builds(isa, code) if known is None else known

    def _try(self, kind: Any, builds: Any) -> None:
        """Try each, tell, and end this process."""
        known: dict[str, bool] = {}

        def noted(isa: Any, code: str) -> bool:
            return known.setdefault(_question(isa, code), builds(isa, code))

        try:
            _die_with_parent()
            kind.check_build = noted
            torch._inductor.cpu_vec_isa.valid_vec_isa_list()  # kept in inductor's usual folder, for the next time
        finally:
            self._told[1:] = json.dumps(known).encode("ascii").ljust(LONGEST - 1)
            self._told[0] = 1
            os._exit(0)

    @functools.cached_property
    def known(self) -> dict[str, bool]:
        """The answers, as soon as they are there; none when they do not come."""
        while not self._told[0] and time.monotonic() < self._until:
            time.sleep(0.05)
        return json.loads(self._told[1:]) if self._told[0] else {}


def _question(isa: Any, code: str) -> str:
    return f"{isa.build_arch_flags()} {zlib.crc32(code.encode())}"


def _die_with_parent() -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def main() -> None:
    """The command line."""
    asked = serve(socket.socket(fileno=int(sys.argv[1])))
    if asked is not None:
        sys.argv = [*asked]
        runpy.run_path(asked[0], run_name="__main__")


if __name__ == "__main__":
    main()
