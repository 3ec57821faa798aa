"""Endpoints: where a participant serves its bytes, as `http://host:port`.

Owns: the form of an endpoint. Never: connects, or imports a transport: the command line checks an
address at once.
Next: `http.py`, which serves and calls them.
"""

from typing import Final

from yarl import URL

from troth_client.transport.errors import EndpointError

MAX_ENDPOINT_BYTES: Final = 96
"""The number of bytes that fit into the chain's Participant account."""
_NEXT: Final = "Asking another holder."


def check_endpoint(endpoint: str) -> URL:
    """Return the URL of http(s)://host:port and nothing else; EndpointError otherwise."""
    try:
        url = URL(endpoint)
    except ValueError as error:
        raise EndpointError("an endpoint like http://host:port", f"{error}", _NEXT) from error
    plain = url.scheme in ("http", "https") and url.host and url.path in ("", "/")
    if not plain or url.user or url.password or url.query_string or url.fragment:
        raise EndpointError("an endpoint like http://host:port", repr(endpoint), _NEXT)
    if not _is_host(url.host or ""):
        raise EndpointError("an endpoint with a host name or address", repr(endpoint), _NEXT)
    if len(endpoint.encode()) > MAX_ENDPOINT_BYTES:
        raise EndpointError(f"at most {MAX_ENDPOINT_BYTES} bytes", f"{len(endpoint)}", _NEXT)
    return url.origin()


def _is_host(host: str) -> bool:
    """Return whether a resolver can be asked: labels of 1 to 63 bytes, or an address."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return bool(host.strip("."))
