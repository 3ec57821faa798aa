"""--device: auto, explicit, missing, nonsense."""

import contextlib

import pytest
import torch

from troth_client.model import device as module
from troth_client.model.device import CPU, Device, choose_device, in_precision, precisions_of
from troth_client.model.errors import DeviceError

MATMUL = torch.backends.cuda.matmul


def test_cpu_is_plain_fp32():
    assert choose_device("cpu") == CPU
    with CPU.autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


def test_the_processor_takes_a_precision_that_is_named():
    assert choose_device("cpu", precision="fp32") == CPU
    assert choose_device("cpu", 3, "bf16") == Device(CPU.torch, True, microbatch_sequences=3)


def test_a_precision_that_the_device_lacks_is_refused_with_those_that_it_has(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device("mps").precision == "fp32"
    with pytest.raises(DeviceError, match=r"of mps: fp32, found 'bf16'.*hints\.precision"):
        choose_device("mps", precision="bf16")


@pytest.mark.cuda
def test_auto_takes_cuda_where_there_is_one():
    expected = "cuda" if torch.cuda.is_available() else "cpu"
    assert choose_device("auto").torch.type == expected


@pytest.mark.parametrize("name", ["tpu", "", "gpu"])
def test_unknown_devices_are_named(name):
    with pytest.raises(DeviceError, match="auto, cpu, cuda, mps"):
        choose_device(name)


@pytest.mark.cuda
@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_a_missing_device_says_so():
    with pytest.raises(DeviceError, match="--device auto"):
        choose_device("cuda")


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_cuda_is_mixed_and_checks_the_card():
    device = choose_device("cuda:0")
    has_bf16 = bool(torch.version.hip) or torch.cuda.get_device_properties(0).major >= 8
    assert device.is_mixed == has_bf16
    for name in ("cuda:99", "cuda:x"):
        with pytest.raises(DeviceError):
            choose_device(name)


def test_the_other_precision_of_the_processor_is_bf16_and_back():
    other = CPU.other_precision()
    assert other == Device(torch.device("cpu"), is_mixed=True)
    assert other.other_precision() == CPU


def test_a_device_without_bf16_borrows_the_processor():
    device = Device(torch.device("mps"), is_mixed=False)
    assert device.other_precision() == Device(torch.device("cpu"), is_mixed=True)


@pytest.fixture
def tf32_is_allowed():
    """As another library of the process may leave it."""
    before = MATMUL.fp32_precision
    MATMUL.fp32_precision = "tf32"
    yield
    MATMUL.fp32_precision = before


@pytest.mark.cuda
@pytest.mark.parametrize(
    ("precision", "inside"), [("fp32", "ieee"), ("bf16", "ieee"), ("tf32", "tf32")]
)
def test_products_are_full_fp32_unless_tf32_is_asked_for(precision, inside, tf32_is_allowed):
    device = Device(torch.device("cuda"), precision == "bf16", precision == "tf32")
    assert device.precision == precision
    with device.products():
        assert MATMUL.fp32_precision == inside
    assert MATMUL.fp32_precision == "tf32"


@pytest.mark.cuda
def test_tf32_ends_with_its_block_also_after_an_error():
    before = MATMUL.fp32_precision
    with pytest.raises(RuntimeError), Device(torch.device("cuda"), False, True).products():
        raise RuntimeError
    assert MATMUL.fp32_precision == before


CARD = Device(torch.device("cuda"), is_mixed=False)


@pytest.mark.cuda
def test_blocks_of_threads_that_overlap_are_full_fp32_until_the_last_one_ends(tf32_is_allowed):
    """Training and judging compute at once: one begins within the other's block and ends later."""
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        first.enter_context(CARD.products())
        second.enter_context(CARD.products())
        first.close()
        assert MATMUL.fp32_precision == "ieee"
        second.close()
        assert MATMUL.fp32_precision == "tf32"


@pytest.mark.cuda
def test_a_block_within_a_block_gives_the_outer_one_its_products_back(tf32_is_allowed):
    with CARD.products(), Device(CARD.torch, False, is_tf32=True).products():
        with CARD.products():
            assert MATMUL.fp32_precision == "ieee"
        assert MATMUL.fp32_precision == "tf32"


def test_the_processor_has_no_tf32_and_leaves_the_setting_alone(tf32_is_allowed):
    assert precisions_of(CPU.torch) == ["fp32", "bf16"]
    with pytest.raises(DeviceError, match=r"found 'tf32'.* compute capability 8\.0"):
        in_precision(CPU.torch, "tf32")
    with CPU.products():
        assert MATMUL.fp32_precision == "tf32"


CARDS = [(7, 5), (9, 0), (8, 0)]


@pytest.fixture
def cards(monkeypatch):
    """A machine with these cards: an old one comes first, which PyTorch emulates bf16 on."""
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(CARDS))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *_, **__: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda card: CARDS[card.index or 0])


@pytest.mark.cuda
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("cuda", ["fp32"]),
        ("cuda:0", ["fp32"]),
        ("cuda:1", ["fp32", "tf32", "bf16"]),
        ("cuda:2", ["fp32", "tf32", "bf16"]),
    ],
)
def test_a_card_has_what_it_computes_in_itself_whichever_is_the_first(cards, name, found):
    card = torch.device(name)
    assert precisions_of(card) == found
    assert choose_device(name).precision == found[-1]
    assert choose_device(name, precision="fp32") == Device(card, is_mixed=False)
    if "tf32" in found:
        assert in_precision(card, "tf32") == Device(card, is_mixed=False, is_tf32=True)
        return
    for precision in ("tf32", "bf16"):
        with pytest.raises(DeviceError, match=f"a precision of {name}: fp32, found"):
            in_precision(card, precision)
    where = Device(card, is_mixed=False).other_precision().torch
    assert where == torch.device("cpu")


@pytest.mark.cuda
def test_a_card_of_amd_has_bf16_and_no_tf32(cards, monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", None)
    assert precisions_of(torch.device("cuda:0")) == ["fp32", "bf16"]
    assert choose_device("cuda:0").is_mixed


@pytest.mark.cuda
def test_tf32_is_checked_in_bf16_and_bf16_in_full_fp32(monkeypatch):
    monkeypatch.setattr(module, "precisions_of", lambda _device: list(module.PRECISIONS))
    card = torch.device("cuda")
    mixed = Device(card, is_mixed=True)
    assert Device(card, is_mixed=False, is_tf32=True).other_precision() == mixed
    assert mixed.other_precision() == Device(card, is_mixed=False)
