"""The user's own files: browse, read, download, upload, edit, remove. A program that runs as the user does it (file_access.py), so
the page reaches no file that this user could not."""
import asyncio
import contextlib
import hmac
import json
import os
import posixpath
import re
from urllib.parse import quote

from starlette.responses import JSONResponse, RedirectResponse, Response

from clusterd_lib import audit, roles
from clusterd_lib.errors import AgentError

from .. import commands
from . import access, forms

EDIT_MAX = 100_000
FILE_MAX = 64 << 20
PATH_MAX = 1000
UPLOAD_SECONDS = 600
_PROGRAM = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "file_access.py")
_WORDS = ("/usr/bin/python3", "-I", "-B", _PROGRAM)


class NoText(AgentError):
    """The file is no text, or too long to be edited here."""


def path_of(text):
    """A path below the home directory, without . and .. ; empty for the home directory itself."""
    parts = [part for part in text.split("/") if part]
    if len(text) > PATH_MAX or not text.isprintable() or any(part in (".", "..") for part in parts):
        raise forms.BadForm("no such path")
    return "/".join(parts)


def _link(path):
    return "/files?path=" + quote(path, safe="/")


async def access_files(user, action, path, *more, stdin=b""):
    return await commands.run_as(user, *_WORDS, action, path, *more, stdin=stdin, name=path or "home")


async def _trail(path):
    """(name, link) of each folder above."""
    parts = path.split("/") if path else []
    return [(part, _link("/".join(parts[:number + 1]))) for number, part in enumerate(parts)]


async def browse(request, visit):
    path = path_of(request.query_params.get("path", ""))
    found = json.loads(await access_files(visit.user, "list", path))
    return request.app.state.context.page("files.html", visit, path=path, trail=await _trail(path), where=found["where"],
                                          folders=found["folders"], files=found["files"], more=found["more"], edit_max=EDIT_MAX, file_max=FILE_MAX)


async def read_text(user, path):
    """The text of a file that can be edited here."""
    data = await access_files(user, "read", path, str(EDIT_MAX + 1))
    try:
        if len(data) > EDIT_MAX or b"\0" in data:
            raise ValueError
        return data.decode()
    except ValueError as error:
        raise NoText(f"{path} is no text of at most {EDIT_MAX} bytes: download it") from error


async def whole_path(user, path):
    return (await access_files(user, "where", path)).decode(errors="replace")


async def edit(request, visit):
    path = path_of(request.query_params.get("path", ""))
    text = "" if request.query_params.get("new") else await read_text(visit.user, path)
    return request.app.state.context.page("file.html", visit, path=path, text=text, trail=await _trail(posixpath.dirname(path)))


async def save(request, visit):
    path = path_of(visit.form.get("path", ""))
    if visit.form.get("name"):
        path = path_of(posixpath.join(path, visit.form["name"].replace("/", "")))
    if not path:
        raise forms.BadForm("the file needs a name")
    text = visit.form.get("text", "").replace("\r\n", "\n").encode()
    await access_files(visit.user, "write", path, str(len(text)), stdin=text)
    audit.note("file written", user=visit.user, path=path, bytes=len(text))
    return RedirectResponse(_link(posixpath.dirname(path)), 303)


async def change(request, visit):
    """Removes a file, or makes a folder."""
    path = path_of(visit.form.get("path", ""))
    action = visit.form.get("action", "")
    if action not in ("remove", "folder"):
        raise forms.BadForm("no such action")
    if action == "folder":
        path = path_of(posixpath.join(path, visit.form.get("name", "").replace("/", "")))
    await access_files(visit.user, action, path)
    audit.note(f"file {action}", user=visit.user, path=path)
    return RedirectResponse(_link(posixpath.dirname(path)), 303)


async def download(request, visit):
    path = path_of(request.query_params.get("path", ""))
    data = await access_files(visit.user, "read", path, str(FILE_MAX))
    return Response(data, media_type="application/octet-stream", headers={
        "content-disposition": f"attachment; filename*=UTF-8''{quote(posixpath.basename(path), safe='')}"})


async def upload(request, visit):
    """The body is the file; a script of the page sends it, with the token of the session in a header."""
    path, length = path_of(request.query_params.get("path", "")), request.headers.get("content-length", "")
    if not path or not re.fullmatch("[0-9]{1,12}", length) or int(length) > FILE_MAX:
        raise forms.BadForm(f"a file of at most {FILE_MAX >> 20} MB, with its name and length", 413)
    process = await commands.started_as(visit.user, (*_WORDS, "write", path, length))
    errors = asyncio.ensure_future(process.stderr.read())

    async def copy():
        async for piece in request.stream():
            process.stdin.write(piece)
            await process.stdin.drain()

    try:
        with contextlib.suppress(ConnectionError):  # the program says why it has ended
            await asyncio.wait_for(copy(), UPLOAD_SECONDS)
    except BaseException:
        process.kill()
        raise
    process.stdin.close()
    if await process.wait():
        raise AgentError(f"{path}: {commands.reason_of(await errors, process.returncode)}")
    audit.note("file written", user=visit.user, path=path)
    return JSONResponse({"path": path})


def _token_is_right(request, session):
    return hmac.compare_digest(session.token.encode(), request.headers.get("x-token", "").encode(errors="replace"))


ROUTES = [access.page("/files", roles.SUBMIT, browse), access.page("/files/edit", roles.SUBMIT, edit),
          access.page("/files/edit", roles.SUBMIT, save, "POST"), access.page("/files/change", roles.SUBMIT, change, "POST"),
          access.page("/files/download", roles.SUBMIT, download),
          access.page("/files/upload", roles.SUBMIT, upload, "POST", token_check=_token_is_right)]
