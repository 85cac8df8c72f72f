"""Style, scripts and the fetched packages: the page reads a fixed list of files at its start and serves them to
everyone."""
import os

from starlette.responses import Response

from .. import assets
from . import access

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_OWN = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "static")


def _read():
    found = {}
    for directory, names in ((assets.directory(), assets.FILES), (_OWN, os.listdir(_OWN))):
        for name in names:
            path = os.path.join(directory, name)
            if os.path.isfile(path) and os.path.splitext(name)[1] in _TYPES:
                with open(path, "rb") as file:
                    found[name] = file.read()
    return found


def routes():
    contents = _read()

    async def serve(request, _visit):
        name = request.path_params["name"]
        if name not in contents:
            return Response(status_code=404)
        return Response(contents[name], media_type=_TYPES[os.path.splitext(name)[1]], headers={"cache-control": "max-age=300"})

    return [access.page("/static/{name}", None, serve)]
