"""The documentation as a site: links lead to pages; where MkDocs and Chromium are there, it works in a browser."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chromium import Page, browser, started

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "docs" / "site" / "build.py"
WIDTHS = (380, 1280, 1600)


def builder() -> Any:
    spec = importlib.util.spec_from_file_location("site_build", BUILD)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("source")
    builder().write(folder)
    return folder


def test_every_link_of_every_page_leads_to_a_page(source: Path) -> None:
    pages = source / "pages"
    for file in pages.rglob("*.md"):
        text = re.sub(r"^(```+).*?^\1\s*$|`[^`\n]+`", "", file.read_text(encoding="utf-8"), flags=re.M | re.S)
        for address in re.findall(r"\]\(([^)\s#]+)[^)]*\)", text):
            if ":" not in address:
                assert (file.parent / address).resolve().is_file(), f"{file.relative_to(pages)} links to {address}"


def test_a_rule_leads_to_the_results_that_name_it(source: Path) -> None:
    told = (source / "pages" / "rules" / "FC101.md").read_text(encoding="utf-8").partition("## In the results\n")[2]
    assert "](../results/prove.md)" in told
    assert "scan.md" not in told
    assert "## In the results" not in (source / "pages" / "rules.md").read_text(encoding="utf-8")


def test_every_page_has_its_place_in_the_navigation(source: Path) -> None:
    configured = yaml.safe_load((source / "mkdocs.yml").read_text(encoding="utf-8"))
    placed = [name for part in configured["nav"] for inside in part.values() for one in inside for name in one.values()]
    there = [file.relative_to(source / "pages").as_posix() for file in (source / "pages").rglob("*.md")]
    assert sorted(placed) == sorted(there)
    assert not configured["theme"]["font"]  # nothing is fetched
    assert {"rules/FC101.md", "tutorial.md", "ci.md", "compare.md"} <= set(placed)


def test_code_keeps_what_looks_like_a_link() -> None:
    module = builder()
    pages = {"index.md": ROOT / "README.md", "fleet.md": ROOT / "docs" / "fleet.md"}
    text = "[a](docs/fleet.md#x) [b](LICENSE) [c](https://e.org) [d](#e)\n\n```\n[f](LICENSE)\n```\n"
    told = module.page(text, ROOT / "README.md", pages)
    assert told == "[a](fleet.md#x) b [c](https://e.org) [d](#e)\n\n```\n[f](LICENSE)\n```\n"


TABLE = """\
| | graphs | share | ms |
|---|---|---|---|
| one `a\\|b` | 4 -> 1 (2 -> 2) | 50 % | **1,000** |
| **two** | 8 -> 2 | 100 % | 1.5e-01 |
| three | none | - | 3 |
"""


def bars(marker: str) -> list[str]:
    """What stands beside the bars, with their lengths."""
    return re.findall(r'--part: ([\d.]+)"></i><b>([^<]*)', builder().charted(f"{marker}\n\nread on\n\n{TABLE}\nend\n"))


def test_charts_show_the_figures_of_their_table() -> None:
    assert bars("<!-- chart: graphs = before, after -->") == [
        ("1.000", "4"), ("0.250", "1"), ("1.000", "8"), ("0.250", "2"),
    ]  # fmt: skip
    assert bars("<!-- chart: graphs = , after -->") == [("1.000", "1"), ("1.000", "2")]
    assert bars("<!-- chart on one scale: share -->") == [("0.500", "50 %"), ("1.000", "100 %")]
    assert bars("<!-- chart on one scale: ms -->") == [("1.000", "1,000"), ("0.000", "1.5e-01"), ("0.003", "3")]
    assert bars("no chart") == []
    told = builder().charted(f"<!-- chart: share | ms -->\n{TABLE}\nend\n")
    assert told.startswith(TABLE)
    assert told.endswith("\nend\n")
    assert 'class="name">two<' in told


@pytest.mark.parametrize("columns", ["seconds", "graphs = a, b, c, d", "graphs = , , , c"])
def test_a_chart_of_what_is_not_there_is_an_error(columns: str) -> None:
    with pytest.raises(Exception, match=r"^(there is no column 'seconds'|4 bars a row|no row has figures)"):
        bars(f"<!-- chart: {columns} -->")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, source: Path) -> Iterator[str]:
    """The address of the site, built and served here."""
    pytest.importorskip("material")
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-f", str(source / "mkdocs.yml"), "-d"]
    built = subprocess.run([*command, str(target)], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(target)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    executable = browser()
    if executable is None:
        pytest.skip("no Chromium")
    with started(executable, tmp_path_factory.mktemp("profile")) as tab:
        yield tab


def shown(page: Page, address: str, width: int, dark: bool = False) -> None:
    page.ask("Page.navigate", url="about:blank")
    until(page, "location.href === 'about:blank'")
    origin = "/".join(address.split("/")[:3])  # the palette of a visit is kept by the browser
    page.ask("Storage.clearDataForOrigin", origin=origin, storageTypes="local_storage")
    page.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
    features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    page.ask("Emulation.setEmulatedMedia", features=features)
    page.ask("Page.navigate", url=address)
    until(page, f"location.href === {address!r} && document.readyState === 'complete'")


def until(page: Page, expression: str) -> Any:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        value = page.value(expression)
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError(f"never true: {expression}")


@pytest.mark.slow
def test_no_page_is_wider_than_the_window_in_either_palette(site: str, page: Page) -> None:
    for name in ("index", "tutorial", "compare", "fleet", "rules/FC101", "results/h200", "results/breadth", "ci"):
        grounds = set()
        for width in WIDTHS:
            for dark in (False, True) if width == WIDTHS[0] else (False,):
                shown(page, f"{site}/{name}.html", width, dark)
                until(
                    page, f"document.body.getAttribute('data-md-color-scheme') === '{'slate' if dark else 'default'}'"
                )
                wide = page.value("document.documentElement.scrollWidth")
                assert wide <= width, f"{name} is {wide} wide at {width}"
                grounds.add(page.value("getComputedStyle(document.body).backgroundColor"))
        assert len(grounds) == 2, f"{name} looks the same in dark and light"
        outside = [address for address in page.requests if not address.startswith((site, "about:", "data:", "blob:"))]
        assert not outside, "nothing is fetched from elsewhere"


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_the_search_finds_a_rule(site: str, page: Page, width: int) -> None:
    shown(page, f"{site}/index.html", width)
    until(page, "document.querySelector('[data-md-component=search-query]') !== null")
    until(page, "document.querySelector('.md-search-result__meta').textContent.trim() === 'Type to start searching'")
    if width < 600:
        page.value("document.querySelector('label.md-header__button[for=__search]').click()")
    page.value("document.querySelector('[data-md-component=search-query]').focus()")
    page.ask("Input.insertText", text="key value cache index")
    page.press("End", 35)
    found = until(
        page,
        "[...document.querySelectorAll('.md-search-result__link')].map(link => link.href).join(' ')",
    )
    assert re.search(r"rules/FC30[12]", json.dumps(found)), found


@pytest.mark.slow
def test_no_link_of_the_built_site_is_broken(site: str, page: Page) -> None:
    """As the browser resolves them, anchors too."""
    script = """(async () => {
        const wrong = [], seen = new Set(), todo = [location.href.split('#')[0]], pages = {};
        while (todo.length) {
            const url = todo.pop();
            if (seen.has(url)) continue;
            seen.add(url);
            const answer = await fetch(url);
            if (!answer.ok) { wrong.push(url); continue; }
            if (!url.endsWith('.html')) continue;
            const doc = new DOMParser().parseFromString(await answer.text(), 'text/html');
            pages[url] = [new Set([...doc.querySelectorAll('[id]')].map(e => e.id)), []];
            for (const link of doc.querySelectorAll('a[href]')) {
                const full = new URL(link.getAttribute('href'), url);
                if (full.origin !== location.origin) continue;
                const bare = full.href.split('#')[0];
                if (full.hash) pages[url][1].push([bare, decodeURIComponent(full.hash.slice(1))]);
                todo.push(bare.endsWith('/') ? bare + 'index.html' : bare);
            }
        }
        for (const [url, [, anchors]] of Object.entries(pages))
            for (const [to, id] of anchors)
                if (pages[to] && id && !pages[to][0].has(id)) wrong.push(`${url} -> ${to}#${id}`);
        return JSON.stringify({wrong, pages: Object.keys(pages).length});
    })()"""
    shown(page, f"{site}/index.html", 1280)
    told = page.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
    found = json.loads(told["result"]["value"])
    assert found["wrong"] == []
    assert found["pages"] > 70
