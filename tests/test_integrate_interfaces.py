"""`fix-compile integrate` on user interfaces that list every parameter: each place that lacks an option is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_integrate import MODEL, TRAIN, contents, fix_compile, python

NAMES = [
    "compile",
    "compile_backend",
    "compile_mode",
    "compile_dynamic",
    "compile_fullgraph",
    "compile_cache_size_limit",
]
OWN = [f"setting_{i}" for i in range(22)]


def gui(
    save: list[str],
    load: list[str],
    train: list[str],
    parts: list[str],
    saved: list[str],
    made: list[str],
) -> str:
    """An interface with these parameters besides its own, in each of its places."""

    def function(name: str, names: list[str], body: str) -> str:
        rows = "".join(f"    {n},\n" for n in [*OWN, *names])
        return f"def {name}(\n    path,\n{rows}):\n{body}\n\n"

    entries = "".join(f'        "{n}": {n},\n' for n in [*OWN[2:], *saved])
    return (
        "import json\n\nimport gradio as gr\n\n\nclass Settings:\n    def __init__(self):\n"
        + "".join(f"        self.{n} = gr.Textbox()\n" for n in [*OWN, *made])
        + "\n\n"
        + function("save", save, "    return json.dumps(list(locals().items()))\n")
        + function("load", load, "    return json.loads(path)\n")
        + function("train", train, f"    config = {{\n{entries}    }}\n    config['steps'] = 1\n    return config\n")
        + "def tab():\n    settings = Settings()\n    components = [\n"
        + "".join(f"        settings.{n},\n" for n in [*OWN, *parts])
        + "    ]\n    gr.Button().click(train, inputs=[components[0], components[1]], outputs=components)\n"
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 120\n")
    return tmp_path


def told(project: Path, script: str, *others: str) -> list[str]:
    (project / "gui.py").write_text(script)
    before = contents(project)
    status, out, err = fix_compile(project, "integrate", "gui.py", *others)
    assert contents(project) == before
    assert (status, err) in ((1, "nothing was changed\n"), (0, "integrated already: nothing to do\n"))
    return out.splitlines()


def test_every_place_is_told(project: Path) -> None:
    every = gui([], [], [], [], [], [])
    lines = told(project, every)
    what = ", ".join(NAMES)
    text = every.splitlines()

    def line(start: str) -> int:
        return next(i for i, row in enumerate(text, 1) if row.startswith(start))

    assert lines == [
        *(
            f"gui.py:{line(f'def {name}(')}: `{name}` takes every parameter, but not {what}: "
            "give it those, as the last, as the others alike"
            for name in ("save", "load", "train")
        ),
        f"gui.py:{line('    config = ')}: `config` is written to a configuration, without {what}: add those",
        f"gui.py:{line('    components = ')}: `components` lists every component, but not {what}: "
        "add those, as the last",
        f"gui.py:{line('class')}: `Settings` makes most of the components, and none is called {what}: make those here",
    ]


@pytest.mark.parametrize("place", range(6))
@pytest.mark.parametrize("name", [NAMES[0], NAMES[4]])
def test_one_that_is_missing_in_one_place(place: int, name: str, project: Path) -> None:
    """With all of them nothing is told; without one of them, that place is."""
    places = [list(NAMES) for _ in range(6)]
    assert told(project, gui(*places)) == []
    places[place].remove(name)
    [line] = told(project, gui(*places))
    start = ["`save`", "`load`", "`train`", "`components`", "`config`", "`Settings`"][place]
    assert f": {start} " in line
    assert f"{name}: " in line
    assert not any(f" {other}," in line or f" {other}:" in line for other in NAMES if other != name)


def test_options_of_one_kind_of_model(project: Path) -> None:
    """A prefix is no matter; a condition is told."""
    own = [f"flux_{name}" for name in NAMES]
    places = [own, own, own, own, [], own]
    script = gui(*places)
    entries = "".join(f'        "{name}": flux_{name} if setting_3 else None,\n' for name in NAMES)
    script = script.replace('        "setting_21": setting_21,\n', f'        "setting_21": setting_21,\n{entries}')
    [line] = told(project, script)
    assert f": `config` writes {', '.join(NAMES)} only where `setting_3` says so" in line


def test_few_parameters_are_no_list_of_all(project: Path) -> None:
    script = "import gradio\n\n\ndef save(a, b, c):\n    pass\n\n\ndef load(a, b, c):\n    pass\n"
    assert "no argparse.ArgumentParser is made here" in told(project, script)[0]
    different = gui([], [], [], [], [], []).replace("def load(\n    path,\n", "def load(\n    path,\n    setting_x,\n")
    one = different[: different.index("def load")] + "\n"
    assert "no argparse.ArgumentParser is made here" in told(project, one)[0]


def test_a_script_with_its_interface(project: Path) -> None:
    """The script is integrated, and what the interface lacks is told besides."""
    (project / "model.py").write_text(MODEL)
    (project / "train.py").write_text(TRAIN)
    (project / "gui.py").write_text(gui([], [], [], [], [], []))
    status, out, err = fix_compile(project, "integrate", "train.py", "gui.py")
    assert status == 0, out + err
    assert out.count("gui.py:") == 6
    assert "compile_utils" not in (project / "gui.py").read_text()
    assert python(project, "train.py", "--compile", "--compile_backend", "eager").endswith("graphs 2\n")
