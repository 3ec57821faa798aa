"""--device: auto, explicit, missing, nonsense."""

import pytest
import torch

from troth_client.model.device import CPU, Device, choose_device
from troth_client.model.errors import DeviceError


def test_cpu_is_plain_fp32():
    assert choose_device("cpu") == CPU
    with CPU.autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


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
    assert device.is_mixed == torch.cuda.is_bf16_supported()
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
