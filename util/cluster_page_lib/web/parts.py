"""Parts of a page that refresh themselves. A part asks again with the mark of its present text; if that is unchanged
the answer is empty. So an unchanged part keeps its scroll position and focus, and a screen reader does not read it
again."""
import hashlib

from starlette.responses import HTMLResponse, Response


def mark_of(text):
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def answer(request, text):
    """204 if the asker shows this text already. The part carries its own mark in place of @MARK@."""
    mark = mark_of(text)
    if request.query_params.get("have") == mark:
        return Response(status_code=204)
    return HTMLResponse(text.replace("@MARK@", mark))


def first(text):
    """The same, for a part inside a page."""
    return text.replace("@MARK@", mark_of(text))
