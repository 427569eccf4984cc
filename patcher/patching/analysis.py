"""The files below some paths, read and summarised once, and patched as often as is asked with other settings."""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from patcher.files.discover import Exclude, discover, surroundings
from patcher.files.source import SourceError, read_bytes
from patcher.patching.reuse import Known
from patcher.patching.runner import Index, Progress, answers, engine_steps
from patcher.patching.share import Share
from patcher.results import FileResult
from patcher.rule import Rule
from patcher.settings import Settings

#: Not ``re.compile``, which most files have.
_COMPILES = re.compile(rb"torch\.compile|(?<!\bre)\.compile\(|import compile\b|_dynamo\.optimize")
_REMEMBERED = 8  # settings: one question after another is about the same ones


class Analysis:
    """What rules find below ``paths``.

    ``first``: with ``settings``, one result per file and path that is not one. ``project``: the index over all files;
    ``around``: the files of the same projects that were not given, which are in it. ``jobs``: processes at most, as for
    `runner.run`.
    """

    def __init__(
        self,
        paths: Sequence[str],
        rules: Sequence[Rule],
        settings: Settings,
        exclude: Exclude | None = None,
        progress: Progress | None = None,
        jobs: int | None = None,
    ) -> None:
        self.rules, self.settings, self._steps = tuple(rules), settings, engine_steps()
        entries = discover(paths, exclude)
        self.files = tuple(entry.path for entry in entries if not entry.error)
        around = surroundings(self.files)
        self.around = around.files
        every = (*self.files, *around.files)
        steps = replace(self._steps, merge=partial(self._merged, whole=around.whole))
        share = partial(Share, rules, settings, self._steps, beside=frozenset(around.files))
        index = Index(every, frozenset(self.files), steps, Known())
        patched = {answer.result.path: answer.result for answer in answers(index, share, jobs, progress)}
        self.first = tuple(FileResult(e.path, error=e.error) if e.error else patched[e.path] for e in entries)
        self._telling = frozenset(result.path for result in self.first if result.patch)
        self._made: deque[tuple[Settings, tuple[FileResult, ...]]] = deque(maxlen=_REMEMBERED)

    def _merged(self, summaries: list[Any], whole: bool) -> Any:
        self.project: Any = self._steps.merge(summaries, whole=whole, compiled=self.settings.compiled)
        return self.project

    def again(self, settings: Settings) -> tuple[FileResult, ...]:
        """The results with other settings: of the files that had findings, and those that a run has shown something of.

        Settings of PyTorch speak of the files that may compile something. With ``settings.only`` the results are those
        of the files with these units: in the others nothing may be fixed.
        """
        known = next((made for asked, made in self._made if asked == settings), None)
        if known is None:
            known = self._patched(settings)
            self._made.append((settings, known))
        return known

    def _patched(self, settings: Settings) -> tuple[FileResult, ...]:
        shown = [*(varied.path for varied in settings.evidence), *(path for path, _ in settings.traced)]
        shown += [extent.path for extent in settings.extents]
        named = {os.path.realpath(path) for path in shown}
        compiling = self._compiling if settings.torch_settings else frozenset()
        telling = self._telling | compiling
        wanted = [p for p in self.files if p in telling or (named and os.path.realpath(p) in named)]
        if settings.only is not None:
            fixed = {unit.path for unit in settings.only}
            wanted = [path for path in self.files if path in fixed]
        share = Share(self.rules, settings, self._steps)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return tuple(share.patch(path, self.project) for path in wanted)

    @cached_property
    def _compiling(self) -> frozenset[str]:
        """The files that may compile something: to be looked through once more."""
        found = []
        for path in self.files:
            with contextlib.suppress(SourceError):
                if _COMPILES.search(read_bytes(path)):
                    found.append(path)
        return frozenset(found)
