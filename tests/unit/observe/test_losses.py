"""Losses come from headers under their hash; neither a holder nor a trainer can spoil the mean."""

from dataclasses import replace

import pytest
from support.headers import HEADER, SEED
from support.holders import Hostile, hang, ok, says
from support.views import BALLOT, round_view

from troth_attestation import header as headers
from troth_attestation.errors import HeaderFieldError, HeaderSignatureError
from troth_cli.observe import losses
from troth_cli.observe.losses import SIGNED_BYTES, checked_loss, read_losses
from troth_client.telemetry.losses import RoundLoss, round_loss
from troth_client.transport.exchange import Patience
from troth_client.transport.http import http_reader

NAT = 10**6
I64_MAX, I64_MIN = 2**63 - 1, -(2**63)
ME = 6
LOSS = 3 * NAT
MADE = replace(HEADER, mean_loss=LOSS, index=ME)
SIGNED = headers.encode(MADE) + headers.sign(MADE, SEED)
QUICK = Patience(grace_seconds=1.5, hedge_seconds=0.1)


def round_of(header=MADE):
    """The round whose one included payload has this header."""
    ballots = {header.index: replace(BALLOT, header_hash=headers.header_hash(header))}
    return round_view(ballots, round=header.round, run=header.run, included=1 << header.index)


async def read_from(*holders, round_=None):
    async with http_reader(QUICK) as transport:
        return await read_losses(transport, round_ or round_of(), lambda _: holders, {})


@pytest.mark.parametrize(
    ("told", "mean", "median", "num_odd"),
    [
        ((3 * NAT, 5 * NAT), 4 * NAT, 4 * NAT, 0),
        ((3 * NAT, 4 * NAT, 5 * NAT, I64_MAX), 4 * NAT, 4 * NAT, 1),
        ((3 * NAT, 4 * NAT, 5 * NAT, I64_MIN, -1), 4 * NAT, 4 * NAT, 2),
        ((3 * NAT, 4 * NAT, 5 * NAT, 900 * NAT), 4 * NAT, round(4.5 * NAT), 1),
        ((I64_MAX, I64_MIN), None, None, 2),
        ((0, 0, 0), 0, 0, 0),
        ((), None, None, 0),
    ],
)
def test_an_absurd_loss_is_counted_and_left_out(told, mean, median, num_odd):
    found = round_loss(told)
    assert found == RoundLoss(mean, median, len(told), num_odd)


def test_a_loss_needs_the_signature_of_its_session_and_the_right_place():
    assert checked_loss(SIGNED, round_of(), ME) == LOSS
    forged = SIGNED[:-1] + bytes([SIGNED[-1] ^ 1])
    with pytest.raises(HeaderSignatureError):
        checked_loss(forged, round_of(), ME)
    for other in (replace(MADE, round=4), replace(MADE, index=1), replace(MADE, run=b"\1" * 32)):
        signed = headers.encode(other) + headers.sign(other, SEED)
        with pytest.raises(HeaderFieldError):
            checked_loss(signed, round_of(), ME)


@pytest.mark.parametrize(
    "lie",
    [
        says(ok(SIGNED_BYTES), SIGNED[:-1] + bytes([SIGNED[-1] ^ 1])),
        says(ok(SIGNED_BYTES), bytes(SIGNED_BYTES)),
        says(ok(SIGNED_BYTES * 10_000), SIGNED * 10_000),
        says(b"HTTP/1.1 200 OK\r\n\r\n", SIGNED, SIGNED * 1_000),
        says(ok(SIGNED_BYTES), SIGNED[:40]),
        says(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
        says(b"\x1b[2J\r\n\r\n"),
        hang,
    ],
    ids=["signature", "bytes", "huge", "endless", "short", "nothing", "noise", "slow"],
)
async def test_a_bad_holder_is_passed_over_for_the_next_one(lie):
    async with Hostile(lie) as bad, Hostile(says(ok(SIGNED_BYTES), SIGNED)) as good:
        assert await read_from(bad.endpoint, good.endpoint) == {ME: LOSS}
        assert await read_from(bad.endpoint) == {}


@pytest.mark.parametrize(
    "text", ["", "\x1b]0;x\x07", "http://", "ftp://a", "http://a b:1", "x" * 90]
)
async def test_an_endpoint_that_is_no_address_is_passed_over(text):
    async with Hostile(says(ok(SIGNED_BYTES), SIGNED)) as good:
        assert await read_from(text, good.endpoint) == {ME: LOSS}


async def test_headers_that_never_come_do_not_hold_up_the_round(monkeypatch):
    monkeypatch.setattr(losses, "ROUND_SECONDS", 0.2)
    patient = Patience(grace_seconds=60.0, hedge_seconds=60.0)
    async with Hostile(hang) as slow, http_reader(patient) as transport:
        found = await read_losses(transport, round_of(), lambda _: [slow.endpoint], {1: NAT})
    assert found == {1: NAT}, "what was known stays"


async def test_a_header_that_is_known_is_not_asked_for_again():
    async with Hostile(says(ok(SIGNED_BYTES), SIGNED)) as holder, http_reader(QUICK) as transport:
        again = await read_losses(transport, round_of(), lambda _: [holder.endpoint], {ME: 7})
    assert again == {ME: 7}
    assert holder.heads == []
