"""Forms: read once, bounded, and only with the token of the session."""
from urllib.parse import parse_qsl

BYTES_MAX = 256 << 10
FIELDS_MAX = 64


class BadForm(Exception):
    """Why a form is refused, for its sender; `status` is that of HTTP."""

    def __init__(self, text, status=400):
        super().__init__(text)
        self.status = status


async def read(request, session):
    """Field -> text. Without a session, at the login, the origin alone counts."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > BYTES_MAX:
            raise BadForm(f"more than {BYTES_MAX >> 10} KB", 413)
    if request.headers.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
        raise BadForm("not a form")
    try:
        fields = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX))
    except ValueError as error:
        raise BadForm("not a form") from error
    if session is not None and not session.accepts(fields.pop("token", "")):
        raise BadForm("refused: the token of this form is wrong or old; load the page again", 403)
    if any("\0" in text for text in fields.values()):
        raise BadForm("a character that has no place in a form")
    return fields
