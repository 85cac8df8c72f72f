"""Guards every request: it limits what a browser may do with our answers, and checks that a form came from our own
pages.

It refuses a change unless the browser says that it comes from this site (Origin), whatever token the form carries. The
policy forbids inline scripts and styles, and no page has any: if a user's text got into a page as markup, it would not
run.
"""
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
                               "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff", "x-frame-options": "DENY", "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()"}


class Guard:
    def __init__(self, app):
        self._app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] == "websocket" and not _is_our_own(Headers(scope=scope)):
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message):
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                if "style_nonce" in scope:  # a page whose scripts make styles at run time
                    headers["content-security-policy"] = _HEADERS["content-security-policy"].replace(
                        "style-src 'self'", f"style-src 'self' 'nonce-{scope['style_nonce']}'")
                headers.setdefault("cache-control", "no-store")
            await send(message)

        if scope["method"] not in ("GET", "HEAD", "POST"):
            await PlainTextResponse("method not allowed", 405)(scope, receive, send_guarded)
        elif scope["method"] == "POST" and not _is_our_own(Headers(scope=scope)):
            await PlainTextResponse("refused: this request does not come from this page", 403)(scope, receive, send_guarded)
        else:
            await self._app(scope, receive, send_guarded)


def _is_our_own(headers):
    return headers.get("origin") == f"https://{headers.get('host', '')}" and \
        headers.get("sec-fetch-site", "same-origin") == "same-origin"
