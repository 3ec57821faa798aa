"""Faults on real processes: kill, stop, RPC, transport, disk; nobody honest loses anything by them.

The short form kills, stops, fills a disk, and troubles RPC and endpoints for half a minute. A full
disk may end the process, which is started again. The long ones are the claims about a public
cluster.
"""

import asyncio
import sys

import pytest
import soak

from troth_simulation.faults.schedule import Fault, Weather, schedule
from troth_simulation.faults.trouble import Kind

pytestmark = pytest.mark.processes

SLOT_MILLISECONDS = 100
NUM_SLOTS = 260
# Spread over four members.
SHORT = (
    Fault(10, 3, 0, Kind.KILL),
    Fault(25, 20, 1, Kind.RPC_503),
    Fault(50, 20, 2, Kind.PEER_REFUSE),
    Fault(75, 20, 3, Kind.STOP),
    Fault(100, 15, 0, Kind.RPC_SWALLOW),
    Fault(120, 15, 1, Kind.RPC_FREEZE),
    Fault(140, 20, 2, Kind.PEER_CORRUPT),
    Fault(165, 15, 3, Kind.RPC_LAG),
    Fault(185, 15, 0, Kind.PEER_STALL),
    Fault(190, 50, 3, Kind.DISK_FULL),
    Fault(205, 3, 1, Kind.KILL),
    Fault(220, 15, 2, Kind.RPC_RESET),
)


def play(folder, faults, num_slots, **options):
    settings = soak.SoakOptions(folder=folder, **options)
    return asyncio.run(soak.soak(settings, faults, num_slots))


@pytest.mark.long(reason="four processes for a minute, and twelve faults")
def test_half_a_minute_of_faults_costs_nobody_its_stake(tmp_path):
    report = play(
        tmp_path / "run",
        SHORT,
        NUM_SLOTS,
        num_trainers=4,
        slot_milliseconds=SLOT_MILLISECONDS,
        seed=1,
    )
    sys.stdout.write(report.to_text())
    assert report.num_faults == len(SHORT)
    assert report.diverged == ()
    assert [one.name for one in report.members if not one.is_active] == []
    assert min(one.lowest_stake for one in report.members) >= report.keep_stake
    for end in report.ends:
        assert end.code == 1 and Kind.DISK_FULL in end.during, "nobody ends for a fault of others"
    assert [one.kind for one in report.kinds if one.never] == [], "all are back"
    assert report.earned > 0


@pytest.mark.long(reason="a member sleeps for longer than the windows of its duties")
def test_a_member_that_sleeps_through_its_windows_is_fined_and_the_report_says_so(tmp_path):
    """A report that shows no loss proves something only because it shows this one."""
    report = play(
        tmp_path / "run",
        (Fault(10, 420, 1, Kind.STOP),),
        440,
        num_trainers=4,
        slot_milliseconds=SLOT_MILLISECONDS,
        seed=1,
    )
    sys.stdout.write(report.to_text())
    assert {one.member for one in report.losses} == {"trainer-1"}
    assert {one.during for one in report.losses} == {(Kind.STOP,)}
    assert report.fined == sum(one.lamports for one in report.losses) > 0
    assert report.members[1].missed > 0
    assert [one.missed for one in report.members if one.name != "trainer-1"] == [0, 0, 0]
    assert report.diverged == ()


def storm(folder, kinds, minutes, period_seconds, seed):
    """A soak of five at the slot time of a public cluster."""
    weather = Weather(
        kinds=kinds,
        members=range(5),
        num_slots=int(minutes * 150),
        period_slots=int(period_seconds / 0.4),
        seed=seed,
    )
    faults = schedule(weather)
    report = play(
        folder, faults, weather.num_slots, num_trainers=5, slot_milliseconds=400, seed=seed
    )
    sys.stdout.write(report.to_text())
    return report


@pytest.mark.nightly(reason="ten minutes at public slot time are the claim")
def test_a_death_every_fifteen_seconds_for_ten_minutes_costs_nobody_its_stake(tmp_path):
    report = storm(tmp_path / "run", (Kind.KILL,), 10, 15, seed=7)
    assert report.num_faults >= 38
    assert report.broken() == ()


@pytest.mark.nightly(reason="an hour at public slot time and three hundred faults are the claim")
def test_an_hour_of_mixed_faults_costs_nobody_its_stake(tmp_path):
    report = storm(tmp_path / "run", tuple(Kind), 60.1, 12, seed=1)
    assert report.num_faults >= 300
    assert report.broken() == ()
