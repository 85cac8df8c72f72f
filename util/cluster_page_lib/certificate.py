"""The certificate of the page. If the operator gives none, the first start makes one; users compare its fingerprint."""
import hashlib
import os
import re
import socket
import ssl
import subprocess

from clusterd_lib.errors import AgentError

_DAYS = 825


def _make(certificate, key, names):
    subject = ",".join(f"IP:{name}" if re.fullmatch(r"[0-9.]+|[0-9a-f:]*:[0-9a-f:]*", name) else f"DNS:{name}" for name in names)
    old = os.umask(0o077)
    try:
        result = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-batch",
             "-days", str(_DAYS), "-subj", f"/CN={names[0]}", "-addext", f"subjectAltName={subject}",
             "-addext", "basicConstraints=critical,CA:FALSE", "-addext", "extendedKeyUsage=serverAuth",
             "-keyout", key, "-out", certificate], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise AgentError("openssl is not installed: install it, or use --certificate") from error
    finally:
        os.umask(old)
    if result.returncode:
        raise AgentError(f"no certificate could be made: {result.stderr.strip().splitlines()[-1]}")


def ensure(settings):
    """Paths of certificate and key."""
    if settings.certificate:
        return settings.certificate, settings.certificate_key
    certificate, key = (os.path.join(settings.state, name) for name in ("certificate.pem", "key.pem"))
    if not (os.path.exists(certificate) and os.path.exists(key)):
        os.makedirs(settings.state, mode=0o711, exist_ok=True)
        host = socket.gethostname()
        _make(certificate, key, list(dict.fromkeys([host, socket.getfqdn(), "localhost", "127.0.0.1"])))
    return certificate, key


def fingerprint(path):
    """The SHA-256 fingerprint, as browsers show it."""
    with open(path, encoding="ascii") as file:
        first = re.search(r"-+BEGIN CERTIFICATE.*?END CERTIFICATE-+", file.read(), re.DOTALL).group(0)
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).hexdigest().upper()
    return ":".join(digest[at:at + 2] for at in range(0, len(digest), 2))
