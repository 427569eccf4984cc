"""The language server: documents that are open, and what the client asks of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from patcher.config import ConfigError
from patcher.diagnose import latest
from patcher.editor.actions import APPLY, Actions, Document
from patcher.editor.folder import Folder, Look, folder_root
from patcher.editor.protocol import FIX_ALL, Abilities, diagnostics, page
from patcher.files.lines import split_lines
from patcher.rule import Rule
from patcher.version import VERSION

_TYPING = 0.05  # seconds without a key before a text is looked at
_IDLE = 0.4  # and before what it says of the others is worked out
_MANY = 50  # files that change at once, as when another branch is checked out
_WATCHED = ("**/*.py", "**/pyproject.toml")
T = TypeVar("T")


class Server(LanguageServer):
    """Looks at texts in one thread, and reads projects in another; the protocol has the main one."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        # Whole texts: an editor counts lines as Python does, and what makes a text of its parts here does not.
        super().__init__("fix-compile", VERSION, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self.rules = tuple(rules)
        self.documents: dict[str, Document] = {}
        self.able = Abilities()
        self._folders: dict[str, Folder | None] = {}
        self._looking = ThreadPoolExecutor(1, "looking")
        self._reading = ThreadPoolExecutor(1, "reading")
        self._tasks: set[asyncio.Task[None]] = set()

    async def off_thread(self, call: partial[T]) -> T:
        """Do it in the thread that looks at texts."""
        return await asyncio.get_running_loop().run_in_executor(self._looking, call)

    def opened(self, item: types.TextDocumentItem) -> None:
        """Take a text, unless the project's configuration leaves its file out."""
        path = to_fs_path(item.uri)
        if path is None or not path.endswith((".py", ".pyw")):
            return
        folder = self._folder(path)
        covered = folder is not None and folder.covers(path)
        document = Document(item.uri, path, item.text, item.version, folder if covered else None)
        self.documents[item.uri] = document
        self.schedule(document, 0.0)

    def changed(self, uri: str, text: str, version: int | None) -> None:
        """The text is another one now."""
        if document := self.documents.get(uri):
            document.text, document.version = text, version
            self.schedule(document, _TYPING)

    def closed(self, uri: str) -> None:
        """The file is what is on disk again."""
        document = self.documents.pop(uri, None)
        if document is None:
            return
        if document.task:
            document.task.cancel()
        if document.folder:
            self._looking.submit(document.folder.forget, document.path)
        self._publish(uri, None, [])

    def files_changed(self, paths: Sequence[str]) -> None:
        """Something else has written files: other sources, or the configuration; of many, all is read anew."""
        if len(paths) > _MANY or any(Path(path).name == "pyproject.toml" for path in paths):
            self._folders.clear()
            for document in self.documents.values():
                folder = self._folder(document.path)
                document.folder = folder if folder is not None and folder.covers(document.path) else None
        open_now = {document.path for document in self.documents.values()}
        for folder in filter(None, self._folders.values()):
            for path in paths:
                if path.endswith(".py") and path not in open_now:
                    self._looking.submit(folder.reread, path)
        self.look_again()

    def look_again(self, folder: Folder | None = None) -> None:
        """Look once more at all texts that are open, or those of one project."""
        for document in self.documents.values():
            if folder is None or document.folder is folder:
                self.schedule(document, 0.0)

    def schedule(self, document: Document, wait: float) -> None:
        """Look at the text soon, unless it changes before."""
        if document.task:
            document.task.cancel()
        document.task = asyncio.get_running_loop().create_task(self._follow(document, wait))

    async def _follow(self, document: Document, wait: float) -> None:
        await asyncio.sleep(wait)
        await self._look(document)
        if document.folder is None:
            return
        await asyncio.sleep(_IDLE if wait else 0.0)
        if await self.off_thread(partial(document.folder.learn, document.path, document.text)):
            await self._look(document)

    async def _look(self, document: Document) -> None:
        look = await self.current(document)
        if not look.error and self.documents.get(document.uri) is document and look.text == document.text:
            codec = self.workspace.position_codec
            self._publish(document.uri, document.version, diagnostics(look.found, look.text, codec))

    async def current(self, document: Document) -> Look:
        """What is found in the text as it is now."""
        if document.folder is None:
            return Look(document.text)
        look = await self.off_thread(partial(document.folder.look, document.path, document.text))
        document.look = look
        return look

    def _publish(self, uri: str, version: int | None, found: list[types.Diagnostic]) -> None:
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))

    def _folder(self, path: str) -> Folder | None:
        root = folder_root(path)
        if root not in self._folders:
            try:
                folder = self._folders[root] = Folder(root, self.rules)
            except ConfigError as error:
                self._folders[root] = None
                self.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"fix-compile: {error}"))
                return None
            task = asyncio.get_running_loop().create_task(self._index(folder))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return self._folders[root]

    async def _index(self, folder: Folder) -> None:
        await asyncio.get_running_loop().run_in_executor(self._reading, folder.index)
        self.look_again(folder)

    async def hovered(self, uri: str, line: int) -> str:
        """Markdown for a line (from 0)."""
        document = self.documents.get(uri)
        if document is None:
            return ""
        look = await self.current(document)
        lines = split_lines(document.text)
        found = [one for one in look.found if one.line == line + 1]
        causes = latest.by_line(latest.recall(_real_root(document.path)), document.path, lines)
        return page(found, causes.get(line + 1, []), {rule.code: rule for rule in self.rules})

    def stop(self) -> None:
        """Let the threads end."""
        self._looking.shutdown(wait=False, cancel_futures=True)
        self._reading.shutdown(wait=False, cancel_futures=True)


def _real_root(path: str) -> str:
    return str(Path(folder_root(path)).resolve())


def make_server(rules: Sequence[Rule]) -> Server:
    """The server with all that it answers."""
    server = Server(rules)
    actions = Actions(server.rules)

    @server.feature(types.INITIALIZED)
    def initialized(params: types.InitializedParams) -> None:
        server.able = Abilities.of(server.client_capabilities)
        workspace = server.client_capabilities.workspace
        watching = workspace.did_change_watched_files if workspace else None
        if watching and watching.dynamic_registration:
            watchers = [types.FileSystemWatcher(pattern) for pattern in _WATCHED]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
            registration = types.Registration("watch", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
            server.client_register_capability(types.RegistrationParams([registration]))

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def did_open(params: types.DidOpenTextDocumentParams) -> None:
        server.opened(params.text_document)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def did_change(params: types.DidChangeTextDocumentParams) -> None:
        text = params.content_changes[-1].text
        server.changed(params.text_document.uri, text, params.text_document.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def did_close(params: types.DidCloseTextDocumentParams) -> None:
        server.closed(params.text_document.uri)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def did_change_files(params: types.DidChangeWatchedFilesParams) -> None:
        server.files_changed([path for change in params.changes if (path := to_fs_path(change.uri))])

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        told = await server.hovered(params.text_document.uri, params.position.line)
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, told)) if told else None

    kinds = types.CodeActionOptions([types.CodeActionKind.QuickFix, FIX_ALL], resolve_provider=True)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)
    async def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        document = server.documents.get(params.text_document.uri)
        if document is None or document.folder is None:
            return []
        look = await server.current(document)
        offered = actions.offered(document, look, params, server.able, server.workspace.position_codec)
        if server.able.late:
            return offered
        made = [one if one.command else await resolved(one) for one in offered]
        return [action for action in made if action.edit or action.command]

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolved(action: types.CodeAction) -> types.CodeAction:
        data: Any = action.data
        document = server.documents.get(data["uri"]) if isinstance(data, dict) else None
        if document is None:
            return action
        codec = server.workspace.position_codec
        return await server.off_thread(partial(actions.resolved, action, document, server.able, codec))

    @server.command(APPLY)
    async def apply(ls: Server, asked: Any) -> None:  # pygls asks whether a first parameter's type is a class: `ls` is
        action = await resolved(types.CodeAction(asked["title"], data=asked))
        if action.edit is not None:
            await ls.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(action.edit, action.title))
        elif action.disabled is not None:
            told = f"fix-compile: {action.disabled.reason}"
            ls.window_show_message(types.ShowMessageParams(types.MessageType.Warning, told))

    return server
