"""Progress is reported every two seconds, with the time that the rest takes at the speed so far."""

from troth_client.telemetry.pace import REPORT_SECONDS, Pace


class Clock:
    """Seconds that a test sets."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __call__(self):
        return self.seconds


def test_a_report_is_due_once_per_interval():
    clock = Clock(100.0)
    pace = Pace(clock)
    assert not pace.is_due()
    clock.seconds += REPORT_SECONDS - 0.1
    assert not pace.is_due()
    clock.seconds += 0.1
    assert pace.is_due()
    assert not pace.is_due(), "it was just reported"
    clock.seconds += 10 * REPORT_SECONDS
    assert pace.is_due()
    assert not pace.is_due(), "missed intervals are not made up for"


def test_the_rest_takes_as_long_for_each_part_as_what_is_done():
    clock = Clock(50.0)
    pace = Pace(clock)
    clock.seconds = 60.0
    assert pace.seconds_left(done=5, remaining=15) == 30
    assert pace.seconds_left(done=20, remaining=0) == 0


def test_nobody_can_tell_before_the_first_part_is_done():
    clock = Clock(0.0)
    pace = Pace(clock)
    clock.seconds = 9.0
    assert pace.seconds_left(done=0, remaining=15) is None


def test_where_time_stands_nothing_is_due_and_nothing_is_known():
    pace = Pace(Clock(None))
    assert not pace.is_due()
    assert pace.seconds_left(done=1, remaining=1) is None
