"""A profile's findings: composition of curves, the table, the page, the picture."""

from xml.dom.minidom import parseString

import pytest
from support.profiles import row, study

from troth_cli.plot.profile import svg_of
from troth_cli.view.output import Facts
from troth_cli.view.profile import COMPOSED, grid, markdown, seconds_to, to_json
from troth_simulation.profile.records import composed, steps_to

POINTS = ((0, 5.0), (10, 4.0), (20, 4.5), (30, 3.0))


def test_a_composed_curve_has_the_loss_of_each_step_at_its_time():
    assert dict(composed(POINTS, 0.5)) == {0.0: 5.0, 5.0: 4.0, 10.0: 4.5, 15.0: 3.0}


@pytest.mark.parametrize(
    ("loss", "steps"), [(5.0, 0.0), (4.5, 5.0), (4.0, 10.0), (3.75, 25.0), (3.0, 30.0)]
)
def test_a_curve_is_straight_between_its_points_and_counts_where_it_is_down_first(loss, steps):
    assert steps_to(POINTS, loss) == pytest.approx(steps)


def test_a_loss_that_a_curve_never_reaches_has_no_steps():
    assert steps_to(POINTS, 2.9) is None
    assert steps_to((), 2.9) is None


def test_all_methods_are_compared_at_the_lowest_loss_that_each_of_them_reached():
    found = study()
    assert found.common_loss("demo") == 3.5
    assert seconds_to(found, row("ddp", 10)) == pytest.approx(15 * 4.0)
    assert seconds_to(found, row("demo", 10)) == pytest.approx(20 * 0.2)


def test_wire_seconds_are_the_bytes_of_the_busier_direction_at_the_rate():
    assert row("ddp", 10).wire_seconds == pytest.approx(4_000_100 * 8 / 10_000_000)
    assert row("ddp", None).wire_seconds is None


def test_the_table_has_a_row_for_each_measurement_in_groups_of_one_rate():
    table = grid(study())
    found = [dict(zip(table.columns, line, strict=True)) for line in table.rows]
    assert [one["method"] for one in found] == ["DDP", "DeMo", "DDP", "DeMo"]
    assert [one["Mbit/s"] for one in found] == ["10", "10", "no bound", "no bound"]
    assert found[0]["sent kB/step"] == "4,000.0"
    assert found[0]["s/step"] == "4.000"
    assert found[0]["slowest"] == "6.000"
    assert found[0]["wire s"] == "3.200"
    assert found[0]["s to loss"] == "60.0"
    assert found[2]["wire s"] == "-"


def test_the_page_says_that_loss_against_time_is_composed():
    page = markdown(study(), Facts([("load before", 1.5)]), "profile.svg")
    assert COMPOSED in page
    assert "composed, not measured" in COMPOSED
    assert "| 656,256 | 10 | DDP | 5 | 4,000.0 | 4,000.1 |" in page
    assert "![loss against time](profile.svg)" in page
    assert "- load before: 1.5" in page


def test_json_keeps_composed_numbers_apart_from_measured_ones():
    values = to_json(study(), [], {"cores": 2})
    assert [one["method"] for one in values["measured"]] == ["ddp", "demo", "ddp", "demo"]
    assert "points" not in values["measured"][0]
    assert dict(values["composed"][1]["points"])[20 * 0.2] == 3.5
    assert dict(values["losses"][0]["points"])[20] == 3.0


def test_the_picture_is_one_document_and_the_same_each_time():
    picture = svg_of(study())
    assert parseString(picture).documentElement.tagName == "svg"
    assert svg_of(study()) == picture
    for words in ("656,256 parameters, DeMo at 10 Mbit/s", "no bound", "seconds, composed"):
        assert words in picture
