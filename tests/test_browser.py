"""The HTML report in a real browser: what a reader sees, on a phone, in the dark, with a keyboard, on paper."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patcher.report.diagnosis_html import diagnosis_html
from tests.chromium import Page, browser, started
from tests.diagnosis_samples import SAMPLES

pytestmark = [
    pytest.mark.skipif(browser() is None, reason="needs chromium or google-chrome, which pip does not install"),
    pytest.mark.skipif(sys.platform == "win32", reason="the browser is talked to over inherited pipes"),
]
PHONE, SCREEN = 360, 1280
each_sample = pytest.mark.parametrize("name", sorted(SAMPLES))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    executable = browser()
    assert executable
    with started(executable, tmp_path_factory.mktemp("profile")) as made:
        yield made


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The reports of all samples."""
    folder = tmp_path_factory.mktemp("reports")
    for name, sample in SAMPLES.items():
        (folder / f"{name}.html").write_text(diagnosis_html(sample()), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in SAMPLES}


@each_sample
def test_nothing_runs_and_nothing_is_asked_for(page: Page, files: dict[str, Path], name: str) -> None:
    page.open(files[name], SCREEN)
    assert page.said == []
    assert page.requests == [files[name].resolve().as_uri()]
    assert page.value("document.scripts.length + document.images.length") == 0
    assert page.value("document.compatMode") == "CSS1Compat"


OUTSIDE = """[...document.querySelectorAll("body *")].filter(node => !node.closest(".scroll, .skip, svg, nav ul"))
    .filter(node => node.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
    .map(node => node.tagName + "." + node.getAttribute("class"))"""


@each_sample
@pytest.mark.parametrize("width", [320, PHONE, 760, 1000, SCREEN])
def test_the_page_never_scrolls_to_the_side(page: Page, files: dict[str, Path], name: str, width: int) -> None:
    page.open(files[name], width)
    page.value("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.value("innerWidth") == width
    assert page.value("document.documentElement.scrollWidth") <= width
    assert page.value(OUTSIDE) == []
    contents = "document.querySelector('nav ul')"
    assert page.value(f"{contents}.scrollWidth - {contents}.clientWidth") == 0


@each_sample
@pytest.mark.parametrize("width", [PHONE, 380])
def test_tables_are_read_without_scrolling(page: Page, files: dict[str, Path], name: str, width: int) -> None:
    page.open(files[name], width)
    page.value("document.querySelectorAll('details').forEach(one => one.open = true)")
    hidden = "[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth)"
    assert page.value(f"{hidden}.map(one => one.getAttribute('aria-label'))") == []
    small = """[...document.querySelectorAll("td, tbody th")].filter(one => one.textContent)
        .filter(one => parseFloat(getComputedStyle(one).fontSize) < 12).length"""
    assert page.value(small) == 0


def test_a_cell_on_a_phone_says_what_it_is(page: Page, files: dict[str, Path]) -> None:
    told = """getComputedStyle(document.querySelector(".dense td"), "::before").content"""
    page.open(files["rich"], 380)
    assert page.value(told) == '"MAE diff"'
    page.open(files["rich"], SCREEN)
    assert page.value(told) == "none"


CONTRAST = """(() => {
    const bright = ([r, g, b]) => [r, g, b].map(c => c / 255)
        .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
    const ground = node => {
        for (; node; node = node.parentElement) {
            const colour = numbers(getComputedStyle(node).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), bad = [];
    let seen = 0;
    for (let text = walk.nextNode(); text; text = walk.nextNode()) {
        const node = text.parentElement, style = getComputedStyle(node);
        if (!text.data.trim() || ["title", "desc"].includes(node.tagName)) continue;
        const ink = numbers(node instanceof SVGElement ? style.fill : style.color);
        const pair = [bright(ink), bright(ground(node))].sort((a, b) => a - b);
        const ratio = (pair[1] + 0.05) / (pair[0] + 0.05);
        seen += 1;
        if (ratio < 4.5) bad.push([text.data.slice(0, 40), ratio]);
    }
    return {seen, bad};
})()"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_contrast_of_every_text(page: Page, files: dict[str, Path], dark: bool) -> None:
    page.open(files["proven"], SCREEN, dark=dark)
    page.value("document.querySelectorAll('details').forEach(one => one.open = true)")
    told = page.value(CONTRAST)
    assert told["seen"] > 400
    assert told["bad"] == []


def grounds(page: Page) -> str:
    told = page.value("getComputedStyle(document.body).backgroundColor")
    assert isinstance(told, str)
    return told


def test_dark_is_dark_and_paper_is_white(page: Page, files: dict[str, Path]) -> None:
    page.open(files["rich"], SCREEN)
    light = grounds(page)
    page.open(files["rich"], SCREEN, dark=True)
    assert (light, grounds(page)) == ("rgb(255, 255, 255)", "rgb(20, 23, 27)")
    page.open(files["rich"], SCREEN, dark=True, media="print")
    assert grounds(page) == "rgb(255, 255, 255)"
    assert page.value("getComputedStyle(document.querySelector('nav')).display") == "none"


def test_on_paper_nothing_is_folded_away(page: Page, files: dict[str, Path]) -> None:
    hidden = """[...document.querySelectorAll("details:not([open]) p")].filter(one => !one.checkVisibility(
        {contentVisibilityAuto: true, visibilityProperty: true})).length"""
    page.open(files["rich"], SCREEN)
    if not page.value("CSS.supports('selector(details::details-content)')"):
        pytest.skip("this browser is too old for ::details-content")
    assert page.value(hidden) > 0
    page.open(files["rich"], SCREEN, media="print")
    assert page.value(hidden) == 0


def test_paper_is_wide_enough(page: Page, files: dict[str, Path]) -> None:
    page.open(files["proven"], 718, media="print")  # A4 between its margins
    assert page.value("document.documentElement.scrollWidth") <= 718


def test_a_diff_is_side_by_side_only_where_there_is_room(page: Page, files: dict[str, Path]) -> None:
    boxes = """(() => {
        const box = node => { const b = node.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; };
        const diff = document.querySelector("#cause-1 .diff");
        return [box(diff.querySelector("del")), box(diff.querySelector("ins")),
            [...diff.querySelectorAll(".copy, .void")].some(one => one.checkVisibility())];
    })()"""
    page.open(files["rich"], SCREEN)
    old, new, copied = page.value(boxes)
    assert old[2] <= new[0] + 0.5
    assert (old[1], old[3]) == (new[1], new[3])
    assert copied
    page.open(files["rich"], PHONE)
    old, new, copied = page.value(boxes)
    assert old[3] <= new[1] + 0.5
    assert (old[0], old[2]) == (new[0], new[2])
    assert not copied


def test_numbers_of_lines_are_not_copied(page: Page, files: dict[str, Path]) -> None:
    page.open(files["rich"], PHONE)
    page.value("getSelection().selectAllChildren(document.querySelector('#cause-1 .listing'))")
    copied = page.value("getSelection().toString()")
    assert copied.splitlines()[2:4] == ["max_seq = position_ids.max() + 1", "if max_seq > self.original_max_seq_len:"]


FOCUSED = """(() => {
    const node = document.activeElement, box = node.getBoundingClientRect(), style = getComputedStyle(node);
    return {tag: node.tagName, text: node.textContent.slice(0, 30), href: node.getAttribute("href"),
        label: node.getAttribute("aria-label"), outline: style.outlineStyle + " " + style.outlineWidth,
        seen: box.width > 0 && box.left >= 0 && box.bottom > 0 && box.top < innerHeight};
})()"""


def tabbed(page: Page) -> dict[str, Any]:
    page.press("Tab", 9)
    told: dict[str, Any] = page.value(FOCUSED)
    return told


def test_everything_can_be_reached_with_the_keyboard(page: Page, files: dict[str, Path]) -> None:
    page.open(files["proven"], SCREEN)
    wanted = page.value("document.querySelectorAll('a[href], summary, [tabindex=\"0\"]').length")
    inside = page.value("document.querySelectorAll('details:not([open]) :is(a, summary, [tabindex=\"0\"])').length")
    folded = page.value("document.querySelectorAll('details:not([open]) > summary').length")
    stops = [tabbed(page) for _ in range(wanted - inside + folded)]
    assert stops[0]["href"] == "#report"
    assert all(stop["outline"] == "solid 2px" and stop["seen"] for stop in stops), [
        stop for stop in stops if stop["outline"] != "solid 2px" or not stop["seen"]
    ]
    assert {stop["tag"] for stop in stops} == {"A", "SUMMARY", "DIV"}
    assert all(stop["label"] for stop in stops if stop["tag"] == "DIV")
    assert sum(stop["tag"] == "SUMMARY" for stop in stops) == page.value("document.querySelectorAll('summary').length")


def test_the_skip_link_skips(page: Page, files: dict[str, Path]) -> None:
    page.open(files["rich"], PHONE)
    assert page.value("document.querySelector('.skip').getBoundingClientRect().right") < 0
    assert tabbed(page)["text"] == "Skip to the report"
    page.press("Enter", 13)
    assert page.value("document.activeElement.id") == "report"
    assert tabbed(page)["tag"] == "DIV"  # the table of the summary, the contents are behind


def test_a_fold_opens_with_the_keyboard(page: Page, files: dict[str, Path]) -> None:
    page.open(files["rich"], SCREEN)
    page.value("document.querySelector('details:not([open]) summary').focus()")
    page.press("Enter", 13)
    assert page.value("document.activeElement.parentElement.open") is True


def test_the_contents_stay_in_sight_where_there_is_room(page: Page, files: dict[str, Path]) -> None:
    top = "document.querySelector('nav').getBoundingClientRect().top"
    for width, stays in ((SCREEN, True), (PHONE, False)):
        page.open(files["rich"], width)
        page.value("scrollTo(0, 3000)")
        assert (page.value(top) == 0) == stays


@pytest.mark.parametrize("width", [PHONE, 1000, SCREEN])
def test_a_link_of_the_contents_shows_the_heading(page: Page, files: dict[str, Path], width: int) -> None:
    page.open(files["proven"], width)
    for place in ("performance", "causes", "cause-2"):
        page.value(f"location.hash = '#{place}'")
        top, bar = page.value(f"""(() => {{
            const nav = document.querySelector("nav").getBoundingClientRect();
            const heading = document.querySelector("#{place} :is(h2, h3)").getBoundingClientRect();
            return [heading.top, nav.top < heading.top ? nav.bottom : 0];
        }})()""")
        assert max(bar, 0) <= top < 300, place


def test_what_a_screen_reader_is_told(page: Page, files: dict[str, Path]) -> None:
    page.open(files["rich"], SCREEN)
    nodes = page.ask("Accessibility.getFullAXTree")["nodes"]
    told = [
        (node["role"]["value"], node.get("name", {}).get("value", ""), node.get("description", {}).get("value", ""))
        for node in nodes
        if not node["ignored"]
    ]
    images = [(name, about) for role, name, about in told if role == "image"]
    assert [name for name, _ in images] == ["Launches", "Warm time"]
    assert images[0][1].startswith("decode [default]: before 260, after 13;")
    assert ("navigation", "Contents", "") in told
    roles = [role for role, _, _ in told]
    assert roles.count("main") == roles.count("banner") == 1
    assert ("heading", "Fix FC101 data-dependent-branch", "") in told
    assert ("article", "1. A branch on tensor data", "") in told
    assert {"deletion", "insertion", "table", "rowheader", "columnheader"} <= set(roles)
    assert ("group", "Diff of models/language_model.py", "") in told
    assert [told for told in told if told[0] in ("region", "link", "article", "image") and not told[1]] == []


LOST = """[...document.querySelectorAll("svg text")].filter(text => {
    const box = text.getBoundingClientRect(), frame = text.closest("svg").getBoundingClientRect();
    return box.right > frame.right + 0.5 || box.bottom > frame.bottom + 0.5 || box.left < frame.left - 0.5;
}).map(text => text.textContent)"""


@pytest.mark.parametrize("name", ["rich", "empty", "unwell"])
@pytest.mark.parametrize("width", [320, PHONE, SCREEN])
def test_figures_of_the_charts_are_not_cut_off(page: Page, files: dict[str, Path], name: str, width: int) -> None:
    page.open(files[name], width)
    assert page.value(LOST) == []
    longest = page.value("Math.max(...[...document.querySelectorAll('rect')].map(one => one.getBBox().width))")
    assert longest > 0.4 * min(width, 500)


def test_a_picture_is_made(page: Page, files: dict[str, Path], tmp_path: Path) -> None:
    page.open(files["rich"], PHONE, dark=True)
    page.picture(tmp_path / "report.png")
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
