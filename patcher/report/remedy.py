"""What to do about a finding, in the formats for programs that show it to people."""

from __future__ import annotations

import shlex

from patcher.report.outcome import Entry


def remedy(entry: Entry) -> str:
    """The call that makes the fix, with what an unsafe one takes for granted; or why there is none."""
    item = entry.reported
    path = shlex.quote(entry.path)
    strategy = f" (strategy {item.strategy})" if item.strategy else ""
    more = f"\nMore: fix-compile rules {item.code}"
    if item.applicability == "safe":
        return f"Fix: fix-compile fix --select {item.code} {path}{strategy}{more}"
    if item.applicability == "unsafe":
        fix = f"fix-compile fix --unsafe --select {item.code} {path}{strategy}"
        return f"Fix, if this holds: {item.assumption}: {fix}{more}"
    because = f"No fix: {item.assumption}. " if item.assumption else ""
    return f"{because}What to do: fix-compile rules {item.code}"
