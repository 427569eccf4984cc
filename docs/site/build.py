"""Put the documentation together and build the site with MkDocs Material.

    python docs/site/build.py [--only-source]      what `make site` does; the site is in build/site

The pages are those of docs/; README.md is the first one. Links that lead out of docs/ become plain text, since the site
holds documentation only. Nothing is fetched: no fonts, and a search that runs in the browser.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # also for the tests, which load this file from where it lies
from charts import charted

ROOT = HERE.parent.parent
DOCS, BUILD = ROOT / "docs", ROOT / "build"
SOURCE, SITE = BUILD / "site-source", BUILD / "site"
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_FILES = ("*.yml", "*.json")  # what pages of docs/ link to besides each other
_FENCED = re.compile(r"^(```+|~~~+).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)

#: The order in which pages are found; folders and what is not named come where they fit.
NAVIGATION = (
    ("Start", (("What it is", "index.md"), ("Your first model in ten minutes", "tutorial.md"))),
    (
        "How to",
        (
            ("A training script", "howto/training.md"),
            ("A generation loop", "howto/generation.md"),
            ("A diffusion pipeline", "howto/diffusion.md"),
            ("Continuous integration", "ci.md"),
            ("Many models, many machines", "fleet.md"),
            ("An editor", "editors.md"),
            ("A coding assistant", "assistants.md"),
            ("Rules of your own", "own-rules.md"),
            ("How it compares", "compare.md"),
        ),
    ),
    (
        "Reference",
        (
            ("test: the harness", "harness.md"),
            ("diagnose and prove", "diagnose.md"),
            ("Diagnostics and tune", "diagnostics.md"),
            ("integrate", "integrate.md"),
            ("selftest", "selftest.md"),
        ),
    ),
)
LAST = {"Rules": "rules", "Results": "results", "More": ""}  # the rest, by folder


def main() -> int:
    """Build; the exit status is that of MkDocs, which is strict."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only-source", action="store_true", help="write the pages and mkdocs.yml, and build nothing")
    options = parser.parse_args()
    write(SOURCE)
    if options.only_source:
        return 0
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", str(SOURCE / "mkdocs.yml")]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # what Material says of its own future
    return subprocess.run([*command, "-d", str(SITE)], env=quiet, check=False).returncode


def write(source: Path) -> None:
    """The pages and ``mkdocs.yml``."""
    shutil.rmtree(source, ignore_errors=True)
    pages = {"index.md": ROOT / "README.md"}
    pages |= {name: file for file in sorted(DOCS.rglob("*.md")) if (name := file.relative_to(DOCS).as_posix())}
    files = {file.relative_to(DOCS).as_posix(): file for kind in _FILES for file in sorted(DOCS.rglob(kind))}
    for name, file in {**pages, **files}.items():
        target = source / "pages" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text(encoding="utf-8")
        if name in pages:
            text = page(charted(text), file, {**pages, **files}) + named_in_results(name, pages)
        target.write_text(text, encoding="utf-8")
    shutil.copyfile(HERE / "extra.css", source / "pages" / "extra.css")
    (source / "mkdocs.yml").write_text(configuration(pages), encoding="utf-8")


def page(text: str, file: Path, pages: dict[str, Path]) -> str:
    """A page with its links turned to pages of the site; what is not one becomes text. Code stays as it is."""
    places = {path: name for name, path in pages.items()}
    own = places[file]

    def turned(link: re.Match[str]) -> str:
        mark, words, address = link.groups()
        path, hash_, anchor = address.partition("#")
        if ":" in address or not path:
            return link[0]
        there = places.get((file.parent / path).resolve())
        if there is None or mark:
            return words
        up = "../" * own.count("/")
        return f"[{words}]({up}{there}{hash_}{anchor})"

    parts, end = [], 0
    for block in _FENCED.finditer(text):
        parts += [_LINK.sub(turned, text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, _LINK.sub(turned, text[end:])])


def named_in_results(name: str, pages: dict[str, Path]) -> str:
    """For the page of a rule: the pages of results that name it."""
    code = name.removeprefix("rules/").removesuffix(".md")
    if "/" in code or not name.startswith("rules/"):
        return ""
    found = [
        f"- [{_title(file)}](../{there})"
        for there, file in pages.items()
        if there.startswith("results/") and re.search(rf"\b{code}\b", file.read_text(encoding="utf-8"))
    ]
    return "\n".join(["\n## In the results", "", *found, ""]) if found else ""


def configuration(pages: dict[str, Path]) -> str:
    """``mkdocs.yml``."""
    placed = {name for _, inside in NAVIGATION for _, name in inside}
    lines = ["site_name: fix-compile", "docs_dir: pages", "use_directory_urls: false", *_THEME, "nav:"]
    for title, inside in NAVIGATION:
        lines += [f"  - {title}:", *(f"      - {_quoted(words)}: {name}" for words, name in inside)]
    for title, folder in LAST.items():
        rest = [name for name in pages if name not in placed and name.rpartition("/")[0] == folder]
        if folder:
            rest = [name for name in (f"{folder}.md",) if name in pages] + rest
        placed |= set(rest)
        lines += [f"  - {title}:", *(f"      - {_quoted(_title(pages[name]))}: {name}" for name in rest)]
    return "\n".join([*lines, ""])


def _title(file: Path) -> str:
    """The first heading of a page."""
    text = file.read_text(encoding="utf-8")
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found[1].replace("`", "") if found else file.stem


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_THEME = """\
theme:
  name: material
  font: false
  features: [navigation.tabs, navigation.top, navigation.tracking, content.code.copy, search.suggest, search.highlight]
  palette:
    - media: "(prefers-color-scheme: light)"
      scheme: default
      primary: blue grey
      toggle: {icon: material/weather-night, name: Dark}
    - media: "(prefers-color-scheme: dark)"
      scheme: slate
      primary: blue grey
      toggle: {icon: material/weather-sunny, name: Light}
plugins: [search]
extra_css: [extra.css]
markdown_extensions:
  - tables
  - toc: {permalink: true}
  - pymdownx.highlight: {anchor_linenums: true}
  - pymdownx.superfences
validation: {links: {not_found: warn, anchors: warn, unrecognized_links: warn}}""".splitlines()


if __name__ == "__main__":
    sys.exit(main())
