"""Parameters of JSON-RPC methods, checked before a method sees them.

Owns: reading positional parameters, and the config objects with their bounds.
Never: touches the chain. Next: `registry.py`.

Unknown config keys are ignored, as a node does; wrong types and values are -32602.
"""

from __future__ import annotations

import base64
import builtins
from typing import Annotated, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from solders.hash import Hash, ParseHashError
from solders.pubkey import Pubkey
from solders.signature import Signature

from troth_coordinator.chain import base58
from troth_localnet.jsonrpc import INVALID_PARAMS, JsonRpcError
from troth_localnet.values import Json

MAX_U64: Final = 2**64 - 1
MAX_FILTERS: Final = 4
MAX_MEMCMP_BYTES: Final = 128

U64 = Annotated[int, Field(ge=0, le=MAX_U64)]
Byte = Annotated[int, Field(ge=0, le=255)]
Commitment = Literal["processed", "confirmed", "finalized", "recent", "single", "max", "root"]
TransactionEncoding = Literal["json", "jsonParsed", "base58", "base64", "binary"]


class Config(BaseModel):
    """Shared by every config object. Commitment is accepted and changes nothing: no forks here."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True
    )
    commitment: Commitment | None = None
    min_context_slot: U64 | None = None


class HistoryConfig(Config):
    """For reads of blocks and transactions, which nodes refuse below `confirmed`."""

    @model_validator(mode="after")
    def _is_confirmed(self) -> HistoryConfig:
        if self.commitment == "processed":
            raise ValueError("Method does not support commitment below `confirmed`")
        return self


class DataSlice(BaseModel):
    """The part of account data to return."""

    model_config = ConfigDict(strict=True, frozen=True)
    offset: U64
    length: U64


class AccountConfig(Config):
    """The form in which accounts are written."""

    encoding: Literal["base58", "base64", "base64+zstd", "jsonParsed", "binary"] = "base64"
    data_slice: DataSlice | None = None


class MemoryCompare(BaseModel):
    """Account data must hold `bytes` at `offset`."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")
    offset: U64
    bytes: (
        Annotated[str, Field(max_length=2 * MAX_MEMCMP_BYTES)]
        | Annotated[list[Byte], Field(max_length=MAX_MEMCMP_BYTES)]
    )
    encoding: Literal["base58", "base64", "bytes", "binary"] | None = None

    @model_validator(mode="after")
    def _decodes(self) -> MemoryCompare:
        if len(self.value) > MAX_MEMCMP_BYTES:
            raise ValueError(f"expected at most {MAX_MEMCMP_BYTES} bytes to compare")
        return self

    @property
    def value(self) -> builtins.bytes:
        """The bytes to compare with; ValueError if the text does not decode."""
        if isinstance(self.bytes, list):
            return builtins.bytes(self.bytes)
        if self.encoding == "base64":
            return base64.b64decode(self.bytes, validate=True)
        return base58.decode(self.bytes)


class Filter(Config):
    """Either a data size or a memory comparison."""

    data_size: U64 | None = None
    memcmp: MemoryCompare | None = None

    @model_validator(mode="after")
    def _has_exactly_one(self) -> Filter:
        if (self.data_size is None) == (self.memcmp is None):
            raise ValueError("expected either dataSize or memcmp")
        return self


class ProgramAccountsConfig(AccountConfig):
    """The choice and the form of a program's accounts."""

    filters: Annotated[list[Filter], Field(max_length=MAX_FILTERS)] | None = None
    with_context: bool | None = None


ConfigT = TypeVar("ConfigT", bound=BaseModel)


class Params:
    """Positional parameters. The error of each reader names the expected value."""

    def __init__(self, values: list[Json]) -> None:
        self._values = values

    def get(self, index: int) -> Json:
        """Return the parameter, null if it is missing."""
        return self._values[index] if index < len(self._values) else None

    def text(self, index: int, name: str) -> str:
        """Return a required string."""
        value = self.get(index)
        if not isinstance(value, str):
            raise refusal(f"`{name}` must be a string, found {type(value).__name__}")
        return value

    def integer(self, index: int, name: str, low: int = 0, high: int = MAX_U64) -> int:
        """Return a required whole number within low..high."""
        value = self.get(index)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise refusal(f"`{name}` must be a whole number from {low} to {high}")
        return value

    def optional_integer(
        self, index: int, name: str, low: int = 0, high: int = MAX_U64
    ) -> int | None:
        """Return a whole number, or None if it is not given."""
        return None if self.get(index) is None else self.integer(index, name, low, high)

    def texts(self, index: int, name: str, maximum: int) -> list[str]:
        """Return a required array of strings."""
        values = self.get(index)
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise refusal(f"`{name}` must be an array of strings")
        if len(values) > maximum:
            raise refusal(f"Too many inputs provided; max {maximum}")
        return values

    def pubkey(self, index: int, name: str = "pubkey") -> Pubkey:
        """Return a required address."""
        return parse_pubkey(self.text(index, name))

    def signature(self, index: int) -> Signature:
        """Return a required transaction signature."""
        return parse_signature(self.text(index, "signature"))

    def blockhash(self, index: int) -> Hash:
        """Return a required blockhash."""
        try:
            return Hash.from_string(self.text(index, "blockhash"))
        except (ValueError, ParseHashError) as error:
            raise refusal(f"blockhash: {error}") from error

    def config(self, index: int, kind: type[ConfigT]) -> ConfigT:
        """Return a config object; an absent one is all defaults."""
        return parse_config(self.get(index), kind)


def parse_config(value: Json, kind: type[ConfigT]) -> ConfigT:
    """Check a config object; a key with null counts as absent, as clients mean it."""
    given = (
        {key: part for key, part in value.items() if part is not None}
        if (isinstance(value, dict))
        else value
    )
    try:
        return kind.model_validate({} if given is None else given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "config"
        raise refusal(f"{where}: {first['msg']}") from error


def parse_pubkey(text: str) -> Pubkey:
    """Read an address in base58."""
    try:
        return Pubkey.from_string(text)
    except ValueError as error:
        raise refusal(f"{text[:64]!r} is no address: {error}") from error


def parse_signature(text: str) -> Signature:
    """Read a signature in base58."""
    try:
        return Signature.from_string(text)
    except ValueError as error:
        raise refusal(f"{text[:128]!r} is no signature: {error}") from error


def refusal(what: str) -> JsonRpcError:
    """Make an invalid-params error."""
    return JsonRpcError(INVALID_PARAMS, f"Invalid params: {what}")
