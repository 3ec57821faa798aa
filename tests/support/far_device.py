"""A device that is not here: its tensors keep their values behind a door that counts what leaves.

Operations of torch read them. Each copy to the processor is noted with its bytes. numpy refuses
them, as it refuses those of a GPU, and so do operations that mix them with tensors from here.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

FAR = torch.device("xla", 0)
_ATEN = torch.ops.aten
_MAY_MIX = (_ATEN.copy_.default, _ATEN.index.Tensor, _ATEN.index_put_.default)
_IS_THERE = (FAR.type, "meta")
"""Operations in C++ call the device `meta`, which needs no driver."""


class FarTensor(torch.Tensor):
    """A tensor on the device; `held` has its values."""

    held: torch.Tensor
    name = FAR
    __torch_function__: Any = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> "FarTensor":
        layout = held.shape, held.stride(), held.storage_offset()
        one: FarTensor = torch.Tensor._make_wrapper_subclass(
            cls, *layout, dtype=held.dtype, device=torch.device("meta")
        )
        one.held = held
        return one

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return self.name

    @classmethod
    def __torch_dispatch__(cls, func: Any, *_: Any) -> Any:
        raise RuntimeError(f"{func} outside of the device's block")


class FarDevice(TorchDispatchMode):
    """The device, inside its block. `left` has the bytes of every copy to the processor."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.left: list[int] = []

    def __torch_dispatch__(
        self, func: Any, _types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        options = dict(kwargs or {})
        target = options.get("device")
        if target is not None:
            options["device"] = torch.device("cpu")
        leaves = tree_leaves((args, options))
        far = {id(one.held): one for one in leaves if isinstance(one, FarTensor)}
        is_far = bool(far) if target is None else torch.device(target).type in _IS_THERE
        if far and (not is_far or _reads(func, args)):
            source = args[1] if func is _ATEN.copy_.default else args[0]
            self.left.append(source.numel() * source.element_size())
            is_far = False
        elif far and func not in _MAY_MIX:
            _check_place(func, leaves)
        inner, named = tree_map(_held, (args, options))
        found = func(*inner, **named)
        return tree_map(lambda one: _sent(one, far), found) if is_far else found


def _reads(func: Any, args: Sequence[Any]) -> bool:
    """Whether a call hands values of the device to Python, or to a tensor from here."""
    is_copy = func is _ATEN.copy_.default and not isinstance(args[0], FarTensor)
    return is_copy or func is _ATEN._local_scalar_dense.default


def _check_place(func: Any, leaves: Iterable[Any]) -> None:
    for one in leaves:
        if isinstance(one, torch.Tensor) and not isinstance(one, FarTensor) and one.ndim:
            raise RuntimeError(f"{func} on tensors of the device and of the processor")


def _held(one: Any) -> Any:
    return one.held if isinstance(one, FarTensor) else one


def _sent(one: Any, known: dict[int, FarTensor]) -> Any:
    if not isinstance(one, torch.Tensor):
        return one
    return known[id(one)] if id(one) in known else FarTensor(one)
