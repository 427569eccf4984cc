"""JUnit XML, for services that show test results: a test case for each finding, and one for each file without any."""

from __future__ import annotations

import re
from collections import Counter
from xml.etree import ElementTree

from patcher.report.outcome import Entry, Outcome, remedy
from patcher.results import FileResult, blamed

# What XML 1.0 cannot hold, however it is written.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(outcome: Outcome) -> str:
    """A suite: what can be fixed has failed, what has no safe fix is skipped, a file that is not read is an error."""
    suite = ElementTree.Element("testsuite", name="fix-compile")
    for result in outcome.looked_at:
        _file(suite, outcome, result)
    if outcome.strict:
        for file in outcome.altered:
            _outcome(_case(suite, file.path, "altered since it was patched"), "failure", "altered", file.told)
    for overrun in outcome.overruns:
        places = [f"{where or 'somewhere'}: {reason}" for where, reason in overrun.places]
        case = _case(suite, overrun.case, f"budget: {overrun.what.partition(' ')[0]}")
        _outcome(case, "failure", "budget", overrun.told, "\n".join([overrun.told, *places]))
    kinds = Counter(child.tag for case in suite for child in case)
    for name, count in (("tests", len(suite)), *((f"{tag}s", kinds[tag]) for tag in ("failure", "error"))):
        suite.set(name, str(count))
    suite.set("skipped", str(kinds["skipped"]))
    whole = ElementTree.Element("testsuites", {k: v for k, v in suite.attrib.items() if k != "skipped"})
    whole.append(suite)
    ElementTree.indent(whole)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(whole, encoding="unicode")}\n'


def _file(suite: ElementTree.Element, outcome: Outcome, result: FileResult) -> None:
    begun = len(suite)
    if error := outcome.error_of(result):
        _outcome(_case(suite, result.path, "can be read"), "error", "error", error)
    for bug in result.bugs:
        told = f"{blamed(bug.code)}: {bug.message}"
        _outcome(_case(suite, result.path, f"{bug.code} works", bug.line), "error", bug.code, told)
    for entry in outcome.entries_of(result):
        _finding(suite, entry)
    if len(suite) == begun:
        _case(suite, result.path, "no findings")


def _finding(suite: ElementTree.Element, entry: Entry) -> None:
    item = entry.reported
    case = _case(suite, entry.path, f"{item.code} {item.name}{f' in {item.scope}' if item.scope else ''}", item.line)
    told = f"{entry.path}:{item.line}:{item.column}: {item.message}\n{remedy(entry)}"
    if entry.status == "fixable":
        _outcome(case, "failure", item.code, item.message, told)
    elif entry.status != "fixed":
        _outcome(case, "skipped", item.code, item.message, told)


def _case(suite: ElementTree.Element, path: str, name: str, line: int = 0) -> ElementTree.Element:
    told = {"classname": _text(path), "name": _text(name), "time": "0", "file": _text(path)}
    return ElementTree.SubElement(suite, "testcase", told | ({"line": str(line)} if line else {}))


def _outcome(case: ElementTree.Element, tag: str, kind: str, message: str, told: str = "") -> None:
    said = {"message": _text(" ".join(message.split()))}
    child = ElementTree.SubElement(case, tag, said | ({} if tag == "skipped" else {"type": kind}))
    child.text = _text(told or message)


def _text(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
