"""Forms: each is read once, is bounded, and must carry the token of the session."""
import asyncio
from urllib.parse import parse_qsl

BYTES_MAX = 256 << 10
FIELDS_MAX = 64
SECONDS_MAX = 30.0
WRONG_TOKEN = "refused: the token of this form is wrong or old; load the page again"


class BadForm(Exception):
    """The form is refused; the text tells its sender why, `status` is the HTTP status."""

    def __init__(self, text, status=400):
        super().__init__(text)
        self.status = status


async def _body(request):
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > BYTES_MAX:
            raise BadForm(f"more than {BYTES_MAX >> 10} KB", 413)
    return body


async def read(request, session):
    """Field -> text. At the login there is no session, so only the origin is checked."""
    try:
        body = await asyncio.wait_for(_body(request), SECONDS_MAX)
    except asyncio.TimeoutError as error:
        raise BadForm(f"the form did not come within {SECONDS_MAX:.0f} seconds", 408) from error
    if request.headers.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
        raise BadForm("not a form")
    try:
        fields = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX))
    except ValueError as error:
        raise BadForm("not a form") from error
    if session is not None and not session.accepts(fields.pop("token", "")):
        raise BadForm(WRONG_TOKEN, 403)
    if any("\0" in text for text in fields.values()):
        raise BadForm("a character that has no place in a form")
    return fields
