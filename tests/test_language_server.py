"""The language server, as an editor talks to it: a process of its own, over pipes, with `pytest_lsp` as the client."""

from __future__ import annotations

import ast
import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

from patcher.diagnose import latest
from patcher.diagnose.diagnosis import Cause, Diagnosis, Impact

ROOT = Path(__file__).resolve().parent.parent
HEAD = "import torch\nfrom torch import nn\n\n\n"
MODEL = (
    HEAD
    + """class Net(nn.Module):
    def forward(self, x):
        "😋 ünï"; y = torch.where(x.sum() > 0, x, -x) if "😋" else x
        if x.sum() > 0:
            y = y * 2
        else:
            y = y - 1
        return y
"""
)
FIXED = MODEL.replace(
    """        if x.sum() > 0:
            y = y * 2
        else:
            y = y - 1
""",
    """        y = torch.where(x.sum() > 0, y * 2, y - 1)
""",
)
#: Findings after characters that UTF-16 has two units for; the one of the function has an unsafe fix.
LOOP = (
    HEAD
    + """class Net(nn.Module):
    def forward(self, x):
        for row in x: a = "😋😋"; n = int(x.sum().item()); x = x[:n]
        return x
"""
)
CLIENTS = {"vscode": "visual-studio-code", "neovim": "neovim"}


class Session:
    """An editor with one server."""

    def __init__(self, client: LanguageClient, answer: types.InitializeResult) -> None:
        self.client, self.capabilities = client, answer.capabilities
        self.versions: dict[str, int] = {}
        self.arrived: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        self.listen()

    def listen(self) -> None:
        """Take what is published, also when two arrive at once: the client's own way waits for one."""

        def take(told: types.PublishDiagnosticsParams) -> None:
            self.arrived.put_nowait(told)
            self.listen()

        self.client.protocol.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, take)

    async def found(self, path: Path, text: str) -> list[types.Diagnostic]:
        """Open the text, or change it, and wait for what is found in that version of it."""
        uri = path.as_uri()
        version = self.versions[uri] = self.versions.get(uri, 0) + 1
        if version == 1:
            item = types.TextDocumentItem(uri, "python", version, text)
            self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        else:
            document = types.VersionedTextDocumentIdentifier(version, uri)
            change = [types.TextDocumentContentChangeWholeDocument(text)]
            self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, change))
        while (told := await self.told()).version != version or told.uri != uri:
            pass  # what is known of the project may change what was found in others
        return list(told.diagnostics)

    async def told(self) -> types.PublishDiagnosticsParams:
        return await asyncio.wait_for(self.arrived.get(), 60)

    async def actions(self, path: Path, line: int, *only: str) -> list[types.CodeAction]:
        spot = types.Range(types.Position(line, 0), types.Position(line, 0))
        context = types.CodeActionContext([], only=list(only) or None)
        asked = types.CodeActionParams(types.TextDocumentIdentifier(path.as_uri()), spot, context)
        found = await self.client.text_document_code_action_async(asked)
        return [_action(one) for one in found or ()]

    async def chosen(self, action: types.CodeAction) -> types.WorkspaceEdit:
        done = await self.client.code_action_resolve_async(action)
        assert done.edit is not None, done.disabled
        return done.edit

    async def hover(self, path: Path, line: int) -> str:
        asked = types.HoverParams(types.TextDocumentIdentifier(path.as_uri()), types.Position(line, 9))
        told = await self.client.text_document_hover_async(asked)
        assert told is None or isinstance(told.contents, types.MarkupContent)
        return told.contents.value if told else ""


def _action(one: types.CodeAction | types.Command) -> types.CodeAction:
    """The client's library takes an action with a command for a command, and makes that a text."""
    if isinstance(one, types.CodeAction):
        return one
    told: dict[str, Any] = ast.literal_eval(one.command)
    return types.CodeAction(one.title, command=types.Command(**told))


class Editors:
    """One server for each editor, all started when first needed, and the loop that talks to them."""

    def __init__(self, cache: Path) -> None:
        self._environment = {**os.environ, "FIX_COMPILE_CACHE": str(cache)}
        self._loop = asyncio.new_event_loop()
        self._sessions: dict[str, Session] = {}

    def run(self, scenario: Callable[[Session], Coroutine[Any, Any, None]], name: str = "vscode") -> None:
        self._loop.run_until_complete(self._run(scenario, name))

    async def _run(self, scenario: Callable[[Session], Coroutine[Any, Any, None]], name: str) -> None:
        if name not in self._sessions:
            command = [sys.executable, str(ROOT / "fix_compile.py"), "server", "--stdio"]
            client = await ClientServerConfig(command, server_env=self._environment).start()
            assert isinstance(client, LanguageClient)
            capabilities = client_capabilities(CLIENTS[name])
            answer = await client.initialize_session(types.InitializeParams(capabilities=capabilities))
            self._sessions[name] = Session(client, answer)
        await scenario(self._sessions[name])

    def stop(self) -> None:
        for session in self._sessions.values():
            self._loop.run_until_complete(session.client.shutdown_session())
            self._loop.run_until_complete(session.client.stop())
        self._loop.close()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def editors(cache: Path) -> Iterator[Editors]:
    every = Editors(cache)
    yield every
    every.stop()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[tool.fix-compile]\nexclude = ["generated"]\n')
    return tmp_path


def edited(text: str, edit: types.WorkspaceEdit) -> str:
    """What an editor makes of it. UTF-16 is how the client counts."""
    (change,) = edit.document_changes or [next(iter((edit.changes or {}).values()))]  # type: ignore[list-item]
    edits = change.edits if isinstance(change, types.TextDocumentEdit) else change
    units = text.encode("utf-16-le")
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + 2 * len((line + "\n").encode("utf-16-le")) // 2)
    for one in sorted(edits, key=lambda e: e.range.start.line, reverse=True):  # type: ignore[union-attr]
        first, last = (starts[p.line] + 2 * p.character for p in (one.range.start, one.range.end))
        units = units[:first] + one.new_text.encode("utf-16-le") + units[last:]
    return units.decode("utf-16-le")


def places(found: list[types.Diagnostic]) -> list[tuple[str, int, int, int]]:
    return [(str(d.code), d.range.start.line, d.range.start.character, d.range.end.character) for d in found]


def test_findings_while_typing(project: Path, editors: Editors) -> None:
    path = project / "net.py"

    async def scenario(session: Session) -> None:
        assert session.capabilities.position_encoding in (None, types.PositionEncodingKind.Utf16)
        assert await session.found(path, "import torch\n") == []
        (branch,) = await session.found(path, MODEL)
        assert (branch.code, branch.source, branch.severity) == ("FC101", "fix-compile", 2)
        assert places([branch]) == [("FC101", 7, 8, 23)], "the head of the branch, not all of it"
        assert "a branch on tensor data" in branch.message
        # What is not yet Python says nothing, and what was said stands; the next text is looked at again.
        session.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(9, path.as_uri()),
                [types.TextDocumentContentChangeWholeDocument(MODEL + "class")],
            )
        )
        session.versions[path.as_uri()] = 9
        assert places(await session.found(path, "\n" + MODEL)) == [("FC101", 8, 8, 23)]
        # characters of two units before a finding
        loop = await session.found(path, LOOP)
        line = LOOP.splitlines()[6]
        start = len(line[: line.index("x.sum()")].encode("utf-16-le")) // 2
        assert places(loop) == [("FC204", 5, 4, 25), ("FC201", 6, start, start + len("x.sum().item()"))]
        # lines are those of Python: a form feed ends none
        assert places(await session.found(path, MODEL.replace("torch.where", "\f torch.where")))[0][1] == 7
        session.client.text_document_did_close(
            types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(path.as_uri()))
        )
        while (told := await session.told()).uri != path.as_uri() or told.diagnostics:
            pass

    editors.run(scenario)


@pytest.mark.parametrize("name", CLIENTS)
def test_fixes(project: Path, editors: Editors, name: str) -> None:
    path = project / "net.py"

    async def scenario(session: Session) -> None:
        await session.found(path, MODEL)
        fix, ignore = await session.actions(path, 7)
        assert (fix.title, fix.kind, fix.is_preferred) == ("FC101: fix data-dependent-branch", "quickfix", True)
        assert fix.edit is None, "made when it is chosen"
        edit = await session.chosen(fix)
        assert edited(MODEL, edit) == FIXED
        assert edited(MODEL, await session.chosen(ignore)) == MODEL.replace(
            "        if x.sum() > 0:\n", "        if x.sum() > 0:  # fix-compile: ignore[FC101]\n"
        )
        assert await session.actions(path, 6) == []
        if name == "vscode":
            (change,) = edit.document_changes or ()
            assert isinstance(change, types.TextDocumentEdit)
            assert change.text_document.version == session.versions[path.as_uri()]
            (note,) = (edit.change_annotations or {}).values()
            assert (note.label, note.needs_confirmation) == (fix.title, False)
        else:
            assert list(edit.changes or {}) == [path.as_uri()], "the client takes no more"
        # on saving
        (every,) = await session.actions(path, 0, "source.fixAll")
        assert edited(MODEL, await session.chosen(every)) == FIXED
        # an action of a text that is not there any more
        await session.found(path, MODEL + "\n\n")
        late = await session.client.code_action_resolve_async(fix)
        assert late.edit is None
        assert late.disabled is not None and late.disabled.reason == "the text has changed meanwhile"

    editors.run(scenario, name)


@pytest.mark.parametrize("name", CLIENTS)
def test_an_unsafe_fix_says_what_it_assumes(project: Path, editors: Editors, name: str) -> None:
    path = project / "net.py"
    asked: list[types.ApplyWorkspaceEditParams] = []

    async def scenario(session: Session) -> None:
        @session.client.feature(types.WORKSPACE_APPLY_EDIT)
        def apply(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
            asked.append(params)
            return types.ApplyWorkspaceEditResult(applied=True)

        await session.found(path, LOOP)
        fix = (await session.actions(path, 5))[0]
        assert fix.title.startswith("FC204: fix break-cluster (unsafe, assumes: nothing compiles it with")
        assert not fix.is_preferred
        if name == "vscode":  # it shows a change and asks only where the server makes it
            assert fix.command is not None
            await session.client.workspace_execute_command_async(
                types.ExecuteCommandParams(fix.command.command, fix.command.arguments)
            )
            edit = asked[0].edit
            (note,) = (edit.change_annotations or {}).values()
            assert note.needs_confirmation
            assert "fullgraph" in str(note.description)
        else:
            edit = await session.chosen(fix)
        assert "@torch.compiler.disable" in edited(LOOP, edit)

    editors.run(scenario, name)


def test_the_project_around(project: Path, editors: Editors) -> None:
    """What calls a function is in another file; tests and what is excluded are left alone, as `check` does."""
    helper = project / "helper.py"
    text = "import torch\n\n\ndef scaled(x: torch.Tensor):\n    print(x.shape)\n    return x.sum().item()\n"
    net = "from torch import nn\nfrom helper import scaled\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n"
    net += "        return scaled(x)\n"
    (project / "net.py").write_text(net)
    (project / "generated").mkdir()
    for name in ("test_net.py", "generated/net.py"):
        (project / name).write_text(MODEL)

    async def scenario(session: Session) -> None:
        while not await session.found(helper, text):  # once the project has been read
            await asyncio.sleep(0.1)
        # another file is typed into: it calls the function no more
        await session.found(project / "net.py", net.replace("scaled(x)", "x"))
        while await session.found(helper, text):
            await asyncio.sleep(0.1)
        for name in ("test_net.py", "generated/net.py"):
            assert await session.found(project / name, MODEL) == []
            assert await session.actions(project / name, 7) == []
        (project / "pyproject.toml").write_text("[tool.fix-compile]\nall = true\n")
        changed = [types.FileEvent((project / "pyproject.toml").as_uri(), types.FileChangeType.Changed)]
        session.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams(changed))
        assert places(await session.found(project / "test_net.py", MODEL))[0][0] == "FC101"
        (project / "pyproject.toml").write_text("[tool.fix-compile]\nunknown = true\n")
        session.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams(changed))
        assert await session.found(project / "test_net.py", MODEL) == []
        assert "unknown key 'unknown' in [tool.fix-compile]" in session.client.messages[-1].message

    editors.run(scenario)


def test_lines_end_as_they_did_and_no_project_is_needed(tmp_path: Path, editors: Editors) -> None:
    """A file in a folder that may be anything is looked at alone; nobody walks through that folder."""
    path, text = tmp_path / "net.py", MODEL.replace("\n", "\r\n")
    (tmp_path / "other.py").write_text("import net\n")

    async def scenario(session: Session) -> None:
        assert places(await session.found(path, text)) == [("FC101", 7, 8, 23)]
        fix, ignore = await session.actions(path, 7)
        assert edited(text, await session.chosen(fix)) == FIXED.replace("\n", "\r\n")
        assert "if x.sum() > 0:  # fix-compile: ignore[FC101]\r\n" in edited(text, await session.chosen(ignore))

    editors.run(scenario)


def test_hover_tells_what_was_measured(
    project: Path, editors: Editors, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = project / "net.py"
    path.write_text(MODEL)
    cause = Cause(
        number=1, category="graph break", severity="high", title="Graph break in `forward`", where="net.py:8",
        function="Net.forward", trigger="if x.sum() > 0:", reason="Data-dependent branching", cases=("case",),
        impact=Impact(breaks=2, launches=1, calls=2, compile_seconds=1.25),
    )  # fmt: skip
    diagnosis = Diagnosis(
        title="", command="fix-compile diagnose --case case.py", started="2026-11-25T10:11:12", facts=(), problems=(),
        causes=(cause,), static_only=(), fine=(), sites=(), diagnostics=(), results=None, judgement=None,
    )  # fmt: skip
    monkeypatch.setenv("FIX_COMPILE_CACHE", str(cache))
    latest.keep(diagnosis, [str(path)], str(project.resolve()))

    async def scenario(session: Session) -> None:
        text = "\n# a line above\n" + MODEL  # the line has moved since
        await session.found(path, text)
        told = await session.hover(path, 9)
        assert "**Measured here** by `fix-compile diagnose --case case.py`, 2026-11-25 10:11:" in told
        assert "- high: Graph break in `forward`. 2 breaks, 1 launch, 1.2 s of compiling. Data-dependent" in told
        assert "**FC101 data-dependent-branch** (safe fix): a branch on tensor data breaks the graph" in told
        assert "**Why it breaks compilation**" in told
        assert "``" not in told
        assert await session.hover(path, 6) == ""
        await session.found(path, text.replace("x.sum() > 0:", "x.mean() > 0:"))
        assert "Measured" not in await session.hover(path, 9), "it is another line now"

    editors.run(scenario)
