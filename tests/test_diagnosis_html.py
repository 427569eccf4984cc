"""The HTML report as a document: its structure, what is in it, that nothing gets out of its place."""

from __future__ import annotations

import dataclasses
import difflib
import random
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest

from patcher.diagnose.diagnosis import Diagnosis, ProposedFix, Remark
from patcher.harness.compare import judge
from patcher.harness.measured import from_json
from patcher.report.diagnosis_html import diagnosis_html
from patcher.report.diagnosis_markdown import diagnosis_markdown
from patcher.report.html import diffs
from patcher.report.html.blocks import margin
from patcher.report.html.markup import element, prose
from patcher.report.html.style import DARK, LIGHT
from patcher.report.sections import TITLES
from tests import diagnosis_samples as samples
from tests.test_compare import document, toy

VOID = {"meta", "wbr"}
each_sample = pytest.mark.parametrize("name", sorted(samples.SAMPLES))


@dataclasses.dataclass
class Node:
    """An element; ``parts``: text and elements in their order."""

    tag: str
    attributes: dict[str, str | None]
    parts: list[Node | str] = dataclasses.field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    def all(self, tag: str = "", classes: str = "") -> list[Node]:
        """All below with this tag and class, in the order of the document."""
        found = []
        for part in self.parts:
            if isinstance(part, Node):
                own = set((part.attributes.get("class") or "").split())
                if tag in ("", part.tag) and set(classes.split()) <= own:
                    found.append(part)
                found += part.all(tag, classes)
        return found

    def by_id(self, name: str) -> Node:
        (found,) = [node for node in self.all() if node.attributes.get("id") == name]
        return found


class Tree(HTMLParser):
    """A parser that forgives nothing: each element is closed, in the right order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self._open = [self.root]
        self.feed(text)
        self.close()
        assert self._open == [self.root]

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert len(dict(attributes)) == len(attributes), f"an attribute twice: {attributes}"
        node = Node(tag, dict(attributes))
        self._open[-1].parts.append(node)
        if tag not in VOID:
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self._open[-1].parts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def read(diagnosis: Diagnosis) -> Node:
    return Tree(diagnosis_html(diagnosis)).root


def squeezed(text: str) -> str:
    return " ".join(text.split())


# -- the document


@each_sample
def test_ids_are_unique_and_references_hit(name: str) -> None:
    root = read(samples.SAMPLES[name]())
    ids = [node.attributes["id"] for node in root.all() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    for node in root.all():
        told = [node.attributes.get(key) or "" for key in ("aria-labelledby", "aria-describedby")]
        address = node.attributes.get("href") or ""
        told += [address[1:]] if address.startswith("#") else []
        assert set(" ".join(told).split()) <= set(ids)


@each_sample
def test_headings_and_landmarks(name: str) -> None:
    root = read(samples.SAMPLES[name]())
    levels = [int(node.tag[1]) for node in root.all() if re.fullmatch("h[1-6]", node.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels)), levels
    assert [len(root.all(tag)) for tag in ("html", "nav", "main")] == [1, 1, 1]
    assert len(root.all("head")[0].all("title")) == 1
    (page,), (body,) = root.all("html"), root.all("body")
    assert page.attributes["lang"] == "en"
    assert isinstance(body.parts[0], Node)
    assert (body.parts[0].tag, body.parts[0].attributes["href"]) == ("a", f"#{root.all('main')[0].attributes['id']}")
    links = [link.attributes["href"] for link in root.all("nav")[0].all("a")]
    assert links == [f"#{section.attributes['id']}" for section in root.all("main")[0].all("section")]
    assert all(node.attributes.get("aria-label") for node in root.all() if node.tag in ("nav",))


@each_sample
def test_boxes_that_scroll_can_be_reached(name: str) -> None:
    root = read(samples.SAMPLES[name]())
    for box in root.all(classes="scroll"):
        assert (box.attributes["tabindex"], box.attributes["role"]) == ("0", "region")
        assert box.attributes["aria-label"]
    held = [table for box in root.all(classes="scroll") for table in box.all("table")]
    assert len(held) == len(root.all("table"))
    for table in held:
        assert all(cell.attributes["scope"] in ("col", "row") for cell in table.all("th"))
        widths = {len(row.all("th")) + len(row.all("td")) for row in table.all("tr")}
        assert len(widths) == 1
    assert all(isinstance(node.parts[0], Node) and node.parts[0].tag == "summary" for node in root.all("details"))


@each_sample
def test_a_row_of_many_cells_can_be_a_block(name: str) -> None:
    text = diagnosis_html(samples.SAMPLES[name]())
    for table in Tree(text).root.all("table"):
        head, *rows = table.all("tr")
        names = [cell.text for cell in head.all("th")]
        for row in rows:
            cells = [part for part in row.parts if isinstance(part, Node)]
            assert [cell.attributes["data-name"] for cell in cells] == names
        classes = (table.attributes.get("class") or "").split()
        assert ("stacked" in classes) is (len(names) > 5 or bool({"long", "list"} & set(classes)))
    phone = text.partition("@media screen and (max-width: 47rem) {\n  .stacked")[2].partition("@media")[0]
    assert "content: attr(data-name)" in phone


@each_sample
def test_nothing_is_fetched_and_nothing_runs(name: str) -> None:
    text = diagnosis_html(samples.SAMPLES[name]())
    root = Tree(text).root
    tags = {node.tag for node in root.all()}
    assert not tags & {"script", "img", "iframe", "object", "embed", "link", "base", "form", "use", "image"}
    for node in root.all():
        assert not [key for key in node.attributes if key.startswith("on") or key in ("src", "srcset", "action")]
        address = node.attributes.get("href")
        assert address is None or (node.tag == "a" and re.match(r"#|https?://", address))
    (sheet,) = root.all("style")
    assert not re.search(r"@import|url\(|expression|</", sheet.text)
    (policy,) = [m.attributes["content"] for m in root.all("meta") if "http-equiv" in m.attributes]
    assert (policy or "").startswith("default-src 'none'; style-src 'unsafe-inline';")


def test_html_from_outside_stays_text() -> None:
    tame, wild = read(samples.proven()), read(samples.hostile())
    ours = {(node.tag, *sorted(node.attributes)) for node in tame.all()}
    # one thing is told otherwise: a time that is no time, and an address that is no address
    assert {(node.tag, *sorted(node.attributes)) for node in wild.all()} <= ours
    assert [node.tag for node in tame.all("main")[0].all("h3")] == [node.tag for node in wild.all("main")[0].all("h3")]
    assert samples.PAYLOAD in wild.all("h1")[0].text
    assert samples.PAYLOAD in wild.all("title")[0].text
    assert wild.text.count("<script>alert(1)</script>") > 200


def strings(value: Any, skipped: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """All texts of a value, each with the name of its field."""
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        items = item if isinstance(item, tuple) else (item,)
        for one in [] if field.name in skipped else items:
            if dataclasses.is_dataclass(one):
                yield from strings(one, skipped)
            else:
                parts = one if isinstance(one, tuple) else (one,)
                yield from ((field.name, part) for part in parts if isinstance(part, str))


@pytest.mark.parametrize("name", ["rich", "proven", "broken", "empty"])
def test_everything_that_is_known_is_told(name: str) -> None:
    diagnosis = samples.SAMPLES[name]()
    told = squeezed(read(diagnosis).text)
    # those are told in other words; results and judgement have tests of their own
    skipped = ("started", "fate", "applicability", "status", "results", "judgement", "diff", "before", "after")
    seen = list(strings(diagnosis, skipped))
    assert len(seen) > 2
    for field, text in seen:
        for paragraph in text.split("\n\n"):
            plain = paragraph if field in ("trigger", "code", "call") else re.sub("`([^`]+)`", r"\1", paragraph)
            address = field == "reference"
            assert address or squeezed(plain) in told, f"{field}: {text}"


def test_what_is_not_known_is_left_out() -> None:
    told = read(samples.empty())
    sections = [section.attributes["id"] for section in told.all("section")]
    assert sections == ["summary", "performance", "commands", "reading"]
    assert "No graph break, recompile or skip was seen." in told.by_id("summary").text


def test_without_a_run_nothing_is_said_of_causes() -> None:
    for sample in (samples.broken(), samples.unwell()):
        told = read(sample).text
        assert "The original did not come to its end compiled, so no cause can be told." in told
        assert "No cause" not in told
        assert "showed nothing" not in told
    half = dataclasses.replace(samples.empty(), problems=("it hung",))
    assert "No cause was found." in read(half).by_id("summary").text
    assert "nothing that costs" not in read(half).text


@each_sample
def test_problems_come_first(name: str) -> None:
    diagnosis = samples.SAMPLES[name]()
    sections = [section.attributes["id"] for section in read(diagnosis).all("section")]
    assert (sections[0] == "problems") == bool(diagnosis.problems)
    assert sections == [section for section in TITLES if section in sections]
    if name == "proven":
        assert sections == list(TITLES)


@each_sample
def test_sections_are_those_of_the_markdown_report(name: str) -> None:
    diagnosis = samples.SAMPLES[name]()
    page = re.sub(r"^(`{3,}).*?^\1$", "", diagnosis_markdown(diagnosis), flags=re.MULTILINE | re.DOTALL)
    assert [node.text for node in read(diagnosis).all("h2")] == re.findall("^## (.*)$", page, re.MULTILINE)


def test_characters_that_cannot_be_seen() -> None:
    odd = "a\x1b[31m\x00b\u202ec\udc80d\te"
    diagnosis = dataclasses.replace(samples.broken(), title=odd, command=odd)
    text = diagnosis_html(diagnosis)
    text.encode("utf-8")
    root = Tree(text).root
    assert root.all("h1")[0].text == "a\\x1b[31m\\x00b\\u202ec\\udc80d\te"
    assert not set(text) & {"\x1b", "\x00", "\u202e", "\udc80"}


def test_only_addresses_of_the_web_are_links() -> None:
    bad = samples.cause(reference="javascript:alert(1)", registry="GB0001")
    told = read(dataclasses.replace(samples.rich(), causes=(bad,)))
    assert "GB0001 in PyTorch's graph-break registry javascript:alert(1)" in told.text
    good = read(samples.rich()).by_id("cause-1")
    (link,) = [node for node in good.all("a") if (node.attributes["href"] or "").startswith("http")]
    assert link.attributes["href"] == samples.rotary().reference


def test_a_report_is_the_same_each_time() -> None:
    assert diagnosis_html(samples.proven()) == diagnosis_html(samples.proven())


# -- figures


def cells(table: Node) -> list[list[str]]:
    return [[node.text for node in row.parts if isinstance(node, Node)] for row in table.all("tr")]


def test_summary_counts() -> None:
    counted, listed = read(samples.rich()).by_id("summary").all("table")
    assert cells(counted) == [
        ["Category", "High", "Medium", "Low", "Total"],
        ["Recompilation", "1", "0", "0", "1"],
        ["Graph break", "1", "1", "0", "2"],
        ["Dynamic shape", "0", "1", "0", "1"],
        ["CUDA graphs", "0", "0", "1", "1"],
        ["Total", "2", "2", "1", "5"],
    ]
    where, cost = "models/language_model.py:87", "247 launches, 24 breaks"
    assert cells(listed)[1] == ["1", "high", "A branch on tensor data", where, cost, "removed"]
    assert [row[5] for row in cells(listed)[1:]] == ["removed", "remains", "removed", "not known", "not known"]
    assert [row[3] for row in cells(listed)][5] == "-"
    assert "5 causes: 2 high, 2 medium, 1 low." in read(samples.rich()).all("header", "top")[0].text


def pairs(node: Node) -> dict[str, str]:
    return {
        row.all("dt")[0].text: row.all("dd")[0].text
        for group in node.all("dl")
        for row in group.parts
        if isinstance(row, Node)
    }


def test_impact_tells_what_was_counted_and_no_more() -> None:
    root = read(samples.rich())
    first, second, third = (root.by_id(f"cause-{number}").all("dl", "figures")[0] for number in (1, 2, 3))
    assert pairs(Node("", {}, [first])) == {
        "launches in a settled pass of 13 calls": "247",
        "breaks": "24",
        "recompiles": "13",
        "of compilation": "about 21.5 s",
    }
    assert pairs(Node("", {}, [second])) == {
        "dropped frame": "1",
        "recompiles": "8",
        "recompile-limit hit": "1",
        "of compilation": "about 0.0 s",
    }
    assert pairs(Node("", {}, [third])) == {"launch in a settled pass of 1 call": "1", "break": "1"}
    none = samples.cause(impact=type(samples.rotary().impact)())
    assert "No cost was counted." in read(dataclasses.replace(samples.rich(), causes=(none,))).text


def test_facts_of_a_cause() -> None:
    root = read(samples.rich())
    told = pairs(root.by_id("cause-4"))
    assert told["Second run"] == "it was not seen again"
    assert told["Why no fix"] == "the call site is not in this repository"
    assert told["Safety"] == "reported only"
    assert "Second run" not in pairs(root.by_id("cause-1"))
    assert pairs(root.by_id("cause-5"))["Location"] == "-"
    here = root.by_id("cause-1").all("code", "here")
    assert [(node.attributes["data-n"], node.text) for node in here] == [
        ("87", "if max_seq > self.original_max_seq_len:")
    ]


def test_the_words_of_pytorch_are_open_where_there_is_no_fix() -> None:
    def opened(*fixes: ProposedFix) -> bool:
        cause = dataclasses.replace(samples.rotary(), fixes=fixes)
        root = read(dataclasses.replace(samples.rich(), causes=(cause,)))
        (fold,) = [node for node in root.all("details") if "PyTorch's explanation" in node.all("summary")[0].text]
        return "open" in fold.attributes

    fixed, shown = samples.rotary().fixes[0], samples.causes()[3].fixes[0]
    assert opened()
    assert opened(shown)
    assert not opened(fixed, shown)


def test_what_is_the_same_for_several_causes_is_told_once() -> None:
    first = samples.rotary()
    other = dataclasses.replace(first.fixes[0], where="models/vit.py:3", diff=first.fixes[1].diff)
    causes = (
        first,
        samples.cause(2, fixes=(first.fixes[0], other)),
        samples.cause(3, fixes=(samples.causes()[3].fixes)),
    )
    root = read(dataclasses.replace(samples.rich(), causes=causes))
    assert len(root.by_id("causes").all("div", "diff")) == 2
    assert len(root.by_id("causes").all("h5")) == 2
    links = [link.attributes["href"] for link in root.by_id("cause-2").all("a")]
    assert links == ["#fix-1-1", "#fix-1-1", "#fix-1-2", "#fix-1-1"]  # diff and words of both
    assert "models/vit.py:3" in root.by_id("cause-2").text
    assert not root.by_id("cause-3").all("a")


def test_proof() -> None:
    section = read(samples.proven()).by_id("proof")
    assert pairs(section)["launches"] == "265 → 14"
    assert pairs(section)["warm ms"] == "92.5 → 34.2"
    assert "CUDA-graph skips" not in pairs(section)
    (table,) = section.all("table")
    assert [row[0] for row in cells(table)[1:]] == ["kept", "rolled backnot better", "rolled backdifferent"]
    assert cells(table)[1][3] == "without it there are 24 breaks and 247 launches more"
    assert "1 of 3 kept, 7 measurements" in section.text
    assert len(section.all("div", "diff")) == 2


@pytest.mark.parametrize("sample", [samples.rich, samples.proven])
def test_recommendations_in_the_words_of_the_markdown_report(sample: Callable[[], Diagnosis]) -> None:
    diagnosis = sample()
    section = read(diagnosis).by_id("recommendations")
    assert [node.text for node in section.all("h3")] == ["High", "Medium", "Low"]
    page = diagnosis_markdown(diagnosis).partition("## Recommendations")[2].partition("\n## ")[0]
    items = re.findall(r"^- \[([x ])\] (.*?)(?=\n\n|\n- |\Z)", page, re.MULTILINE | re.DOTALL)
    assert len(items) == len(diagnosis.causes)
    for node, (tick, text) in zip(section.all("li"), items, strict=True):
        plain = squeezed(text.replace("`", "").replace("\\", ""))
        assert squeezed(node.text) == ("done " if tick == "x" else "") + plain
    assert [node.attributes["href"] for node in section.all("a")] == [f"#cause-{n}" for n in (1, 2, 3, 4, 5)]


def test_the_verdict_is_that_of_the_markdown_report() -> None:
    told = dataclasses.replace(samples.rich(), effect="launches 48 -> 12")
    sentence = "5 causes. With the fixes 2 are gone and 1 is left. What the fixes do to 2 of them is not known."
    text = read(told).by_id("summary").text
    assert f"{sentence} 1 did not show up in a second run of the same code. All fixes together: " in text
    assert "All fixes together: launches 48 -> 12." in text


def test_commands_go_on_from_the_report() -> None:
    assert read(samples.rich()).by_id("commands").all("pre")[0].text.endswith("html models --prove")


def test_a_proof_without_an_end() -> None:
    proof = dataclasses.replace(samples.proof(), after=None, tried=(), restore="", results=None, judgement=None)
    section = read(dataclasses.replace(samples.rich(), proof=proof)).by_id("proof")
    assert pairs(section)["breaks"] == "24 → -"
    assert pairs(section)["warm ms"] == "92.5 → -"
    assert not section.all("table")


def test_the_state_that_the_tree_ended_in_is_what_is_drawn() -> None:
    results = from_json(document(toy("kept", pc={"launches": 3})))
    proof = dataclasses.replace(samples.proof(), results=results, judgement=judge(results))
    root = read(dataclasses.replace(samples.rich(), proof=proof))
    section = root.by_id("performance")
    assert section.all("h3")[0].text == "Original against the fixes that were kept"
    assert "kept: before 5, after 3" in section.text
    folded = [node for node in section.all("details") if "against all fixes" in node.all("summary")[0].text]
    assert "decode [default]" in folded[0].all("table")[0].text
    assert cells(section.all("table")[0])[1][0] == "kept"


def test_cases() -> None:
    section = read(samples.rich()).by_id("performance")
    head, first, *_, last = cells(section.all("table")[0])
    assert head[0] == "case"
    assert (first[0], first[3], first[8], first[9]) == ("decode [default]", "13 → 0", "3.40x (noise)", "yes")
    assert last[9] == "NO (failed)"
    assert "forward [reduce-overhead]: failed" in section.text
    assert "BackendCompilerFailed: no <stdint.h>" in section.text
    assert "Traceback:\n  File x" in section.text


def test_columns_of_figures_stand_to_the_right() -> None:
    section = read(samples.rich()).by_id("performance")
    head = [cell for cell in section.all("table")[0].all("th") if cell.attributes["scope"] == "col"]
    right = {cell.text for cell in head if cell.attributes.get("class") == "figure"}
    assert {cell.text for cell in head} - right == {"case", "equivalent"}


# -- charts


def bars(svg: Node) -> list[tuple[str, float]]:
    found = [(node.attributes["class"] or "", node.attributes["width"] or "") for node in svg.all("rect")]
    return [(kind, float(width.rstrip("%"))) for kind, width in found]


def test_charts_are_told_in_words_too() -> None:
    launches, times = read(samples.rich()).all("svg")
    assert launches.attributes["role"] == "img"
    assert launches.all("title")[0].text == "Launches"
    assert launches.all("desc")[0].text == (
        "decode [default]: before 260, after 13; decode [reduce-overhead]: before 260, after 13;"
        " forward [default]: before 5, after 1; forward [reduce-overhead]: before 5, after does not compile"
    )
    assert "decode [default]: eager 61 ms, before 82.5 ms, after 24.2 ms" in times.all("desc")[0].text
    shown = [node.text for node in launches.all("text")]
    assert shown[:5] == ["decode [default]", "before", "260", "after", "13"]


def test_bars_are_as_long_as_their_figures() -> None:
    launches, times = read(samples.rich()).all("svg")
    drawn = bars(launches)
    assert [kind for kind, _ in drawn[:2]] == ["before", "after"]
    assert drawn[0][1] / drawn[1][1] == pytest.approx(260 / 13, rel=1e-2)
    assert drawn[4][1] / drawn[5][1] == pytest.approx(5 / 1, rel=1e-2)  # each case has its own scale
    eager, before, after = (length for _, length in bars(times)[:3])
    assert eager / before == pytest.approx(61.0 / 82.5, rel=1e-2)
    assert after / before == pytest.approx(24.25 / 82.5, rel=1e-2)
    assert max(length for _, length in bars(times)) < 60


def test_a_little_is_not_drawn_as_nothing() -> None:
    results = from_json(document(toy(oc={"launches": 100_000}, pc={"launches": 1})))
    launches, _ = read(dataclasses.replace(samples.rich(), results=results, judgement=judge(results))).all("svg")
    assert 0 < bars(launches)[1][1] < 0.01 * bars(launches)[0][1]


def test_charts_of_the_original_alone() -> None:
    launches, times = read(samples.empty()).all("svg")
    assert launches.all("desc")[0].text == "decode: compiled 5"
    assert times.all("desc")[0].text == "decode: eager 10 ms, compiled 10 ms"


def test_figures_that_are_no_numbers() -> None:
    case = toy(oc={"launches": 0, "warm": {"median_ms": "nan", "low_ms": "nan", "high_ms": "inf"}}, pc={"launches": 0})
    results = from_json(document(case))
    root = read(dataclasses.replace(samples.rich(), results=results, judgement=judge(results)))
    launches, times = root.all("svg")
    assert [length for _, length in bars(launches)] == [0, 0]
    assert "before nan ms" in times.all("desc")[0].text
    assert "nan%" not in str([node.attributes for node in times.all()])


# -- diffs


def both(diff: str) -> list[tuple[list[str], list[str]]]:
    """Both sides of each file."""
    told = []
    for file in diffs.parsed(diff):
        blocks = [block for hunk in file.hunks for block in hunk.blocks]
        told.append(([line.text for b in blocks for line in b.before], [line.text for b in blocks for line in b.after]))
    return told


def test_any_diff_has_both_texts() -> None:
    chosen = random.Random(7)
    words = ["", "a", "-- a", "++ b", "--- a", "+++ b", "@@ -1 +1 @@", "\\ no", "  indented", "\ttab"]
    for _ in range(300):
        before = [chosen.choice(words) for _ in range(chosen.randrange(1, 9))]
        after = [word for word in before if chosen.random() < 0.6]
        after.insert(chosen.randrange(len(after) + 1), chosen.choice(words))
        told = difflib.unified_diff(before, after, "a/m.py", "b/m.py", n=len(before) + len(after), lineterm="")
        diff = "\n".join(told) + "\n"
        if before != after:
            ((left, right),) = both(diff)
            cut = margin([*before, *after])
            assert left == [text[cut:] for text in before]
            assert right == [text[cut:] for text in after]


def test_diff_of_several_files() -> None:
    first, second = diffs.parsed(samples.ROTARY_DIFF + samples.ADDED_DIFF)
    assert (first.name, second.name) == ("models/language_model.py", "models/vlm.py")
    changed = [block for hunk in first.hunks for block in hunk.blocks if not block.same]
    assert [[line.number for line in block.before] for block in changed] == [[87, 88, 89, 90, 91], [271]]
    assert [[line.number for line in block.after] for block in changed] == [[87, 88, 89], [269]]
    last = second.hunks[-1].blocks[-1]
    assert [line.open for line in (*last.before, *last.after)] == [True, True]


def test_new_and_removed_files_and_blocks_one_after_the_other() -> None:
    (made,) = diffs.parsed("--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x = 1\n")
    (gone,) = diffs.parsed("--- a/old.py\t2026\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 1\n")
    assert (made.name, gone.name) == ("new.py", "old.py")
    (file,) = diffs.parsed("--- a/m\n+++ b/m\n@@ -1,2 +1,2 @@\n-a\n+b\n-c\n+d\n")
    assert [(len(b.before), len(b.after)) for b in file.hunks[0].blocks] == [(1, 1), (1, 1)]


def test_what_is_no_diff_is_shown_as_it_is() -> None:
    root = Tree(diffs.side_by_side("two <lines>\nof text\n")).root
    assert root.all("pre")[0].text == "two <lines>\nof text\n"
    assert diffs.side_by_side("") == ""


def test_what_differs_in_a_line_is_marked() -> None:
    root = Tree(diffs.side_by_side(samples.ROTARY_DIFF)).root
    assert [node.text for node in root.all("mark")] == ["(T_curr == T_kv)", "True if T_curr == T_kv else False"]
    assert len(root.all("del")) == len(root.all("ins")) == 2
    other = Tree(diffs.side_by_side("--- a/m\n+++ b/m\n@@ -1 +1 @@\n-one thing\n+all else\n")).root
    assert not other.all("mark")


def test_margin() -> None:
    assert margin(["    a", "      b", "", "  "]) == 4
    assert margin(["\ta", "    b"]) == 0
    assert margin(["", " "]) == 0
    assert margin([]) == 0
    assert margin(["a", "  b"]) == 0


# -- markup and colours


def test_elements() -> None:
    assert element("p", "a < b", class_="x", hidden=True, title=False) == '<p class="x" hidden>a &lt; b</p>'
    assert element("p", element("b", "&"), ['"', element("wbr")]) == "<p><b>&amp;</b>&quot;<wbr></p>"
    assert element("a", "x", title='"><script>') == '<a title="&quot;&gt;&lt;script&gt;">x</a>'
    assert prose("a `<b>` c") == "a <code>&lt;b&gt;</code> c"
    assert prose("a ``b`` and `c`") == "a <code>b</code> and <code>c</code>"
    assert prose("an odd ` one") == "an odd ` one"


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """As WCAG 2 defines it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


TEXT = [(ink, "ground") for ink in ("ink", "quiet", "link", "high", "medium", "low", "good")]
TEXT += [(ink, ground) for ink in ("ink", "quiet") for ground in ("raised", "old", "new", "here", "alarm")]
TEXT += [("ink", "old-mark"), ("ink", "new-mark"), ("high", "alarm"), ("link", "alarm")]


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast(palette: dict[str, str]) -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    for ink, ground in TEXT:
        assert contrast(palette[ink], palette[ground]) >= 4.5, (ink, ground)
    for bar in ("bar-eager", "bar-before", "bar-after", "ink", "link"):
        assert contrast(palette[bar], palette["ground"]) >= 3, bar
    assert LIGHT.keys() == DARK.keys()


def test_all_colours_are_from_the_palette() -> None:
    (sheet,) = read(samples.broken()).all("style")
    rules = sheet.text.partition("}")[2].partition("} }")[2]
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[;, ])", rules)
    assert set(re.findall(r"var\(--([a-z-]+)\)", rules)) - {"hang"} == set(LIGHT)


def test_remarks_without_code_have_no_column_for_it() -> None:
    some = read(samples.rich()).by_id("fine").all("table")[0]
    assert cells(some)[0] == ["Where", "What", "Why", "Code"]
    none = dataclasses.replace(samples.rich(), fine=(Remark("m.py:1", "print", "in `__init__`"),))
    assert cells(read(none).by_id("fine").all("table")[0])[0] == ["Where", "What", "Why"]
