"""Whether others reach this machine, and who serves for it where nobody can."""

from types import SimpleNamespace

import pytest

from troth_cli.workflows.checks import Level
from troth_cli.workflows.reach_checks import reach_result
from troth_cli.workflows.take_part import reach
from troth_coordinator.rules.config import NetworkSection


@pytest.mark.parametrize(
    ("answer", "level"), [(True, Level.OK), (False, Level.REFUSED), (None, Level.UNTESTED)]
)
def test_reachability_has_three_answers(answer, level):
    assert reach_result(answer).level is level


HUB, BUCKET, MEMBERS = (
    "https://hub.example",
    "s3://bucket/run",
    ("http://a.example", "http://b.example"),
)


@pytest.mark.parametrize(
    ("where", "level"),
    [
        ({}, Level.WARNING),
        ({"holders": MEMBERS[:1]}, Level.WARNING),
        ({"holders": MEMBERS}, Level.OK),
        ({"hubs": (HUB,)}, Level.OK),
        ({"stores": (BUCKET,)}, Level.OK),
        ({"run_hubs": (HUB,)}, Level.OK),
        ({"run_stores": (BUCKET,)}, Level.OK),
    ],
)
@pytest.mark.parametrize(
    ("listen", "is_guarded"), [(("", 0), False), (("", 0), True), (("127.0.0.1", 0), True)]
)
async def test_a_member_that_nobody_connects_to_needs_others_that_serve(
    where, level, listen, is_guarded
):
    """On a public cluster that is also one that listens at a private address, as by default."""
    settings, looked = asking(listen, is_guarded=is_guarded, **where)
    found = await reach(settings, looked)
    assert found.level is level
    assert ("--listen" in found.advice) is (level is Level.WARNING)


@pytest.mark.parametrize(
    ("endpoint", "is_guarded", "words"),
    [("", False, "nobody to ask"), ("http://me.example", True, "named by hand")],
)
async def test_who_can_be_connected_to_needs_nobody(endpoint, is_guarded, words):
    """A local network, or an address that the user has named."""
    settings, looked = asking(("127.0.0.1", 0), endpoint=endpoint, is_guarded=is_guarded)
    found = await reach(settings, looked)
    assert found.level is Level.UNTESTED
    assert words in found.found


def asking(
    listen, *, endpoint="", hubs=(), stores=(), holders=(), run_hubs=(), run_stores=(), is_guarded
):
    """Settings and what was seen of the run, as far as reachability asks."""
    network = NetworkSection(hubs=run_hubs, stores=run_stores)
    host, port = listen
    settings = SimpleNamespace(
        config=SimpleNamespace(network=network),
        host=host,
        port=port,
        endpoint=endpoint,
        hubs=hubs,
        stores=stores,
    )
    return settings, SimpleNamespace(holders=holders, is_guarded=is_guarded)
