"""Endpoints: where a participant serves its bytes, as `http://host:port`.

Owns: the form of an endpoint. Never: connects, or imports a transport: the command line checks an
address at once.
Next: `http.py`, which serves and calls them.
"""

import re
from typing import Final

from yarl import URL

from troth_client.transport.errors import EndpointError

MAX_ENDPOINT_BYTES: Final = 96
"""The number of bytes that fit into the chain's Participant account."""
SCHEMES: Final = ("http", "https")
ANOTHER: Final = "Asking another holder."
NOWHERE: Final = "none"
"""The word for no endpoint at all: then every connection is outbound."""
HOLDER: Final = "Name the address of somebody who has the files, like http://host:7000."
OWN: Final = "Name the address where others reach you, like http://203.0.113.7:9000."
HUB: Final = "Name the address of a hub, like https://hub.example:9000."
STORE: Final = "Name a bucket, and a prefix if you like: s3://bucket/prefix."
_STORE = re.compile(r"(?:(?:s3|gs|az)://[a-z0-9][a-z0-9._-]*|file://)(?:/[A-Za-z0-9._/-]*)?")


def check_endpoint(endpoint: str, next_step: str = ANOTHER) -> URL:
    """Return the URL of http(s)://host:port and nothing else; EndpointError otherwise.

    `next_step` ends the error: `OWN` for an address that we announce ourselves.
    """
    if not endpoint.isascii() or not endpoint.isprintable() or " " in endpoint:
        expected = "printable ASCII without spaces (other names in their xn-- form)"
        raise EndpointError(expected, repr(endpoint), next_step)
    if len(endpoint) > MAX_ENDPOINT_BYTES:
        raise EndpointError(f"at most {MAX_ENDPOINT_BYTES} bytes", f"{len(endpoint)}", next_step)
    expected = "an endpoint like http://host:port"
    try:
        url = URL(endpoint)
        # The host is decoded when it is read.
        host = url.host or ""
    except ValueError as error:
        raise EndpointError(expected, f"{error}", next_step) from error
    if url.scheme and url.scheme not in SCHEMES and host:
        expected = "an endpoint that begins with http:// or https://"
        raise EndpointError(expected, f"{url.scheme}://", next_step)
    plain = url.scheme in SCHEMES and host and url.path in ("", "/")
    if not plain or url.user or url.password or url.query_string or url.fragment:
        raise EndpointError(expected, repr(endpoint), next_step)
    if not _is_host(host):
        expected = "an endpoint with a host name or address"
        raise EndpointError(expected, repr(endpoint), next_step)
    return url.origin()


def check_store(url: str) -> None:
    """Raise EndpointError unless this is the address of an object store, or of a folder as one.

    It has no credentials in it: those are in the environment, where no log repeats them.
    """
    if not _STORE.fullmatch(url) or url == "file://" or ".." in url:
        expected = "s3://, gs:// or az:// with a bucket, or file:// with a folder; no @, ? or #"
        # A refused address may hold a secret, so the error does not repeat it.
        raise EndpointError(expected, f"{url.partition(':')[0]}: in another form", STORE)
    if len(url) > MAX_ENDPOINT_BYTES:
        raise EndpointError(f"at most {MAX_ENDPOINT_BYTES} bytes", f"{len(url)}", STORE)


def check_holder(url: str) -> None:
    """Raise EndpointError unless this is somebody to fetch from: an endpoint or an object store."""
    if is_store(url):
        check_store(url)
    else:
        check_endpoint(url, HOLDER)


def is_store(url: str) -> bool:
    """Return whether an address has the scheme of an object store."""
    return url.startswith(("s3:", "gs:", "az:", "file:"))


def _is_host(host: str) -> bool:
    """Return whether a resolver can be asked: labels of 1 to 63 bytes, or an address."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return bool(host.strip("."))
