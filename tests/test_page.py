"""The HTML report as a document: its structure, what is in it, that nothing gets out of its place."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser

import pytest

from patcher.diagnose.call import FORMATS
from patcher.report.diagnosis_markdown import diagnosis_markdown
from patcher.report.page import page
from tests import diagnosis_samples as samples

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

    def all(self, *tags: str) -> list[Node]:
        """All below with one of these tags, in the order of the document."""
        found = []
        for part in self.parts:
            if isinstance(part, Node):
                found += [part] if not tags or part.tag in tags else []
                found += part.all(*tags)
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
        node = Node(tag, dict(attributes))
        self._open[-1].parts.append(node)
        if tag != "meta":
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self._open[-1].parts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def read(name: str) -> Node:
    return Tree(FORMATS["html"](samples.SAMPLES[name]())).root


def shown(markdown: str) -> str:
    return page(markdown, "").partition('tabindex="-1">\n')[2].partition("\n</main>")[0]


@each_sample
def test_ids_are_unique_and_references_hit(name: str) -> None:
    root = read(name)
    ids = [node.attributes["id"] for node in root.all() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    links = [address for node in root.all("a") if (address := node.attributes["href"] or "").startswith("#")]
    assert {address[1:] for address in links} <= set(ids)
    assert [a.text for a in root.all("nav")[0].all("a")] == [heading.text for heading in root.all("h2")]


@each_sample
def test_nothing_is_fetched_and_nothing_runs(name: str) -> None:
    root = read(name)
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
    tame, wild = read("proven"), read("hostile")
    ours = {(node.tag, *sorted(node.attributes)) for node in tame.all()}
    assert {(node.tag, *sorted(node.attributes)) for node in wild.all()} <= ours
    assert wild.text.count("<script>alert(1)</script>") > 100


@each_sample
def test_all_of_the_markdown_report_is_there(name: str) -> None:
    main = read(name).all("main")[0]
    told = main.text + " ".join(f"{node.text} {node.attributes.get('href')}" for node in main.all())
    words = set(re.findall(r"\w{4,}", diagnosis_markdown(samples.SAMPLES[name]())))
    assert words - set(re.findall(r"\w+", told)) <= {"text", "bash", "diff", "python"}


def test_blocks() -> None:
    assert shown("one\ntwo\n\nthree") == "<p>one two</p>\n<p>three</p>"
    assert shown("## A `b`") == '<h2 id="a--b-">A <code>b</code></h2>'
    assert shown("- a\n  - b\n    goes on\n- c") == "<ul><li>a<ul><li>b goes on</li></ul></li><li>c</li></ul>"
    assert shown("```diff\n-a\n+b <\n```") == (
        '<pre><code><span class="old">-a</span>\n<span class="new">+b &lt;</span></code></pre>'
    )
    table = Tree(shown("| a | b |\n|---|---|\n| `x\\|y` | 1.5 |")).root
    assert [node.text for node in table.all("th", "td")] == ["a", "b", "x|y", "1.5"]
    assert [node.attributes.get("class") for node in table.all("th", "td")] == [None, "figure", None, "figure"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (r"a \*b\* \`c\`", "a *b* `c`"),
        ("`` `a` `` **b `c`**", "<code>`a`</code> <strong>b <code>c</code></strong>"),
        ("[a](https://b.c)", '<a href="https://b.c" rel="noreferrer">a</a>'),
        (r"\[a](javascript:b) <i>", "[a](javascript:b) &lt;i&gt;"),
    ],
)
def test_text(text: str, told: str) -> None:
    assert shown(text) == f"<p>{told}</p>"
