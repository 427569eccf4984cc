"""A real browser without a window: Chromium, and its DevTools protocol over two pipes."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_LAUNCH = "import os, sys; [os.dup2(int(sys.argv[i]), i + 2) for i in (1, 2)]; os.execv(sys.argv[3], sys.argv[3:])"
_PATIENCE = 60.0  # seconds for one answer


def browser() -> str | None:
    """The browser that is installed, if there is one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """One tab. ``said``: what went to the console, and what the browser itself had to complain about."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write, self._rest = read, write, b""
        self._number, self._session, self._events = 0, "", list[dict[str, Any]]()
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command of the protocol and its answer."""
        self._number += 1
        asked: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            asked["sessionId"] = self._session
        os.write(self._write, json.dumps(asked).encode() + b"\0")
        while True:
            told = self._message()
            if told.get("id") == self._number:
                assert "error" not in told, f"{method}: {told['error']}"
                answer: dict[str, Any] = told["result"]
                return answer
            self._events.append(told)

    def open(self, file: Path, width: int, height: int = 900, dark: bool = False, media: str = "") -> None:
        """Show a file as on a screen of ``width`` CSS pixels; ``media``: "print", or "" for a screen."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", media=media, features=features)
        self._events.clear()
        self.ask("Page.navigate", url=file.resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._events.append(self._message())

    def value(self, expression: str) -> Any:
        """What a JavaScript expression comes to; the page's own policy does not hold for it."""
        told = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """A key, down and up."""
        typed = {"text": "\r"} if key == "Enter" else {}
        for kind, more in (("keyDown", typed), ("keyUp", {})):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)

    def picture(self, file: Path, whole: bool = True) -> None:
        """A PNG of the window, or of the whole page."""
        told = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(told["data"]))

    @property
    def said(self) -> list[str]:
        """Messages and errors since the page was opened."""
        self.value("0")  # what was under way has arrived when this has
        kinds = {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}
        return [json.dumps(event["params"]) for event in self._events if event["method"] in kinds]

    @property
    def requests(self) -> list[str]:
        """The addresses that were asked for since the page was opened."""
        sent = (event for event in self._events if event["method"] == "Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in sent]

    def _message(self) -> dict[str, Any]:
        until = time.monotonic() + _PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            chunk = os.read(self._read, 1 << 16)
            assert chunk, "the browser has ended"
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(line)
        return told


@contextmanager
def started(executable: str, profile: Path) -> Iterator[Page]:
    """A browser with an empty profile; it ends with the block."""
    options = [
        "--headless=new",
        "--remote-debugging-pipe",
        f"--user-data-dir={profile}",
        "--no-first-run",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--hide-scrollbars",
        "--no-sandbox",  # it shows only what the tests have written, and in many containers it does not run otherwise
    ]
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    # the browser wants descriptors 3 and 4; from 10 on none of the four is in the way of another
    high = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_in, theirs_out)]
    for end in (theirs_in, theirs_out):
        os.close(end)
    process = subprocess.Popen(
        [sys.executable, "-c", _LAUNCH, *map(str, high), executable, *options],
        pass_fds=high,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for end in high:
        os.close(end)
    try:
        page = Page(ours_in, ours_out)
        yield page
        page._session = ""
        page.ask("Browser.close")
        process.wait(_PATIENCE)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(ours_in)
        os.close(ours_out)
