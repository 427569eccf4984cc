"""The HTML report in a real browser: what a reader sees, on a phone, in the dark, with a keyboard, on paper."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patcher.diagnose.call import FORMATS
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
        (folder / f"{name}.html").write_text(FORMATS["html"](sample()), encoding="utf-8")
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
    assert page.value("innerWidth") == width
    assert page.value("document.documentElement.scrollWidth") <= width
    assert page.value(OUTSIDE) == []
    contents = "document.querySelector('nav ul')"
    assert page.value(f"{contents}.scrollWidth - {contents}.clientWidth") == 0


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
    told = page.value(CONTRAST)
    assert told["seen"] > 100
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
    wanted = page.value("document.querySelectorAll('a[href], [tabindex=\"0\"]').length")
    stops = [tabbed(page) for _ in range(wanted)]
    assert stops[0]["href"] == "#report"
    assert all(stop["outline"] == "solid 2px" and stop["seen"] for stop in stops), [
        stop for stop in stops if stop["outline"] != "solid 2px" or not stop["seen"]
    ]
    assert {stop["tag"] for stop in stops} == {"A", "DIV"}
    assert all(stop["label"] for stop in stops if stop["tag"] == "DIV")


def test_the_skip_link_skips(page: Page, files: dict[str, Path]) -> None:
    page.open(files["rich"], PHONE)
    assert page.value("document.querySelector('.skip').getBoundingClientRect().right") < 0
    assert tabbed(page)["text"] == "Skip to the report"
    page.press("Enter", 13)
    assert page.value("document.activeElement.id") == "report"


def test_a_picture_is_made(page: Page, files: dict[str, Path], tmp_path: Path) -> None:
    page.open(files["rich"], PHONE, dark=True)
    page.picture(tmp_path / "report.png")
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
