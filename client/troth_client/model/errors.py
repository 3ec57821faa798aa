"""Errors of a model's weights, as one tree.

    ModelError
    ├── WeightNamesError     tensors missing or unknown
    ├── WeightShapeError     a tensor of another shape or dtype
    ├── ExportError          a folder that is not an export of troth
    ├── ModelConfigError     a config.json of a model that runs cannot train
    └── DeviceError          a device that was asked for is not there

Owns: the classes. Next: weights.py, export.py, hugging_face.py and device.py raise them.
"""

from troth_client.errors import ClientError


class ModelError(ClientError):
    """Root of the model's errors."""


class WeightNamesError(ModelError):
    """The tensors at hand are not the tensors of the model."""


class WeightShapeError(ModelError):
    """A tensor has another shape or dtype than the model config gives it."""


class ExportError(ModelError):
    """A folder that should hold an exported model does not."""


class ModelConfigError(ModelError):
    """A config.json describes a model that runs cannot train."""


class DeviceError(ModelError):
    """A device was asked for that this machine, or this torch, does not have."""
