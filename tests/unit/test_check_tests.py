"""The check of the tests finds values without names, and tests that import each other."""

from pathlib import Path

import pytest
from support.scripts import script

ROOT = Path(__file__).parents[2]


check = script("check_tests.py")


@pytest.mark.parametrize(
    "assertion",
    [
        "assert (entry.stake, entry.strikes) == (5, 0)",
        "assert measure(entry) == (5, 0)",
        "assert (5, 0) != measure(entry)",
        "assert [(e.index, e.stake) for e in found] == expected",
        "assert sorted(found) == [(1, 5), (2, 0)]",
        "assert (said.round, said.target) in refused",
        "assert is_over and (a, b) == (1, 2)",
        "assert not (a, b) == (1, 2)",
    ],
)
def test_unnamed_values_are_found(assertion):
    (problem,) = check.problems_of(assertion)
    assert problem.startswith("1: compares unnamed values")


@pytest.mark.parametrize(
    "assertion",
    [
        "assert entry.stake == 5",
        "assert array.shape == (3, 64, 64)",
        "assert found == {'stake': 5, 'strikes': 0}",
        "assert phase in (Phase.COMMIT, Phase.ATTEST)",
        "assert names == ['opened', 'closed']",
        "assert_fields(entry, stake=5, strikes=0)",
        "assert found == ()",
    ],
)
def test_named_values_are_left_alone(assertion):
    assert not list(check.problems_of(assertion))


@pytest.mark.parametrize(
    "statement",
    [
        "from program.test_join import newcomer",
        "import unit.chain.test_accounts",
        "from integration.conftest import data",
        "from . import test_join",
    ],
)
def test_an_import_of_a_test_module_is_found(statement):
    (problem,) = check.problems_of(statement)
    assert "move what is shared into tests/support" in problem


MARKED = "@pytest.mark.cuda\ndef test_it():\n    "
ON_CUDA = "torch.zeros(1, device='cuda')"


@pytest.mark.parametrize(
    "source",
    [
        f"def test_it():\n    {ON_CUDA}",
        "@pytest.mark.skipif(not torch.cuda.is_available(), reason='')\ndef test_it(): pass",
        "async def test_it(): choose_device('cuda:0')",
        f"def helper(): {ON_CUDA}\ndef test_it(): helper()",
        f"@pytest.fixture\ndef there(): return {ON_CUDA}\ndef test_it(there): pass",
        "WAYS = ['cpu', 'cuda']\n@pytest.mark.parametrize('way', WAYS)\ndef test_it(way): pass",
        f"def test_it(): other()\ndef other(): helper()\ndef helper(): {ON_CUDA}",
        f"{MARKED}{ON_CUDA}\ndef test_other(): choose_path('cuda')",
    ],
)
def test_a_test_that_make_gpu_would_leave_out_is_found(source):
    (problem,) = check.problems_of(source)
    assert "expected @pytest.mark.cuda" in problem


@pytest.mark.parametrize(
    "source",
    [
        f"{MARKED}{ON_CUDA}",
        f"pytestmark = pytest.mark.cuda\ndef test_it(): {ON_CUDA}",
        f"pytestmark = [pytest.mark.long(reason=''), pytest.mark.cuda]\ndef test_it(): {ON_CUDA}",
        "def test_it(): refuses('auto, cpu, cuda, mps')",
    ],
)
def test_marked_tests_and_plain_words_are_left_alone(source):
    assert not list(check.problems_of(source))


def test_support_that_asks_for_a_gpu_is_found():
    (problem,) = check.problems_of(f"def there(): return {ON_CUDA}")
    assert "a test should" in problem


def test_support_may_be_imported():
    assert not list(check.problems_of("from support.program.rounds import RoundDriver"))


@pytest.mark.parametrize("mark", ["long(reason='a whole run')", "validator"])
def test_support_marks_no_test_of_make_long(mark):
    source = f"SLOW = pytest.mark.{mark}"
    (problem,) = check.problems_of(source, is_test=False)
    assert "make long would not read them" in problem
    assert not list(check.problems_of(source, is_test=True))
