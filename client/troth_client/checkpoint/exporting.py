"""An export with its origin: weights for `transformers`, and what anybody needs to check them.

Owns: the facts in the header of model.safetensors, and the model card beside it.
Never: decides that weights are right; the caller has compared their root with the chain's.
Next: `model/export.py` for the files; `weights_file.py` and `troth checkpoint verify` read it back.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Self

from pydantic import ValidationError

from troth_attestation.manifest import CheckpointManifest
from troth_client.checkpoint.errors import CheckpointFileError
from troth_client.model.export import Arrays, export
from troth_client.runtime.files import atomic_write
from troth_coordinator.errors import TrothError
from troth_coordinator.rules.config import RunConfig

CARD_FILE: Final = "README.md"
CONFIG_FACT: Final = "troth_config"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where weights come from: the weights on which `round` trains, under a root on chain.

    `program` and `run` are base58 addresses, `root` is hexadecimal. `cursor` counts the sequences
    that were assigned before the round.
    """

    program: str
    run: str
    round: int
    cursor: int
    root: str
    config: RunConfig

    @classmethod
    def of(cls, manifest: CheckpointManifest) -> Self:
        """Return the origin that a checkpoint names."""
        return cls(
            manifest.program,
            manifest.run,
            manifest.round,
            manifest.cursor,
            manifest.root,
            manifest.config,
        )

    def facts(self) -> dict[str, str]:
        """Return the texts for the header of a weights file."""
        return {
            "program": self.program,
            "run": self.run,
            "round": str(self.round),
            "cursor": str(self.cursor),
            "state_root": self.root,
            CONFIG_FACT: self.config.canonical_json().decode("ascii"),
        }


def config_in(facts: Mapping[str, str], path: Path) -> RunConfig | None:
    """Return the run's config from the facts of an export; None where there is none.

    Raises CheckpointFileError for a text that is no config. Only its hash on chain proves it.
    """
    text = facts.get(CONFIG_FACT)
    if text is None:
        return None
    try:
        return RunConfig.model_validate_json(text)
    except (ValidationError, TrothError) as error:
        raise CheckpointFileError(
            f"the config of a run in the header of {path}",
            str(error)[:200],
            "Name the config file of the run with --config.",
        ) from error


class KeptTokenizer(NamedTuple):
    """A tokenizer.json to put beside weights, and the token that ends a document."""

    raw: bytes
    end_token: int | None


def export_state(
    folder: Path, origin: Origin, weights: Arrays, tokenizer: KeptTokenizer | None
) -> None:
    """Write config.json, model.safetensors, README.md and perhaps a tokenizer into a folder.

    Raises WeightNamesError, WeightShapeError, DiskFullError.
    """
    raw, end_token = (None, None) if tokenizer is None else tokenizer
    export(folder, origin.config.model, weights, origin.facts(), raw, end_token)
    num_parameters = sum(value.size for value in weights.values())
    card = model_card(origin, num_parameters, has_tokenizer=tokenizer is not None)
    atomic_write(folder / CARD_FILE, [card.encode()])


def model_card(origin: Origin, num_parameters: int, *, has_tokenizer: bool) -> str:
    """Return the model card in Markdown: where the weights come from, and how to check them."""
    config = origin.config
    rows = {
        "run": f"`{origin.run}`",
        "program": f"`{origin.program}`",
        "round": str(origin.round),
        "state root": f"`{origin.root}`",
        "config hash": f"`{config.config_hash().hex()}`",
        "data manifest hash": f"`{config.data.manifest_hash}`",
        "rounds of the schedule": str(config.schedule.rounds),
        "k per tile": str(config.demo.k),
        "sequences per payload": str(config.train.sequences_per_payload),
        "sequences assigned": f"{origin.cursor} of {config.data.sequence_tokens} tokens",
        "parameters": str(num_parameters),
    }
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    tokens = _TOKENIZER if has_tokenizer else _NO_TOKENIZER
    return _CARD.format(table=table, tokens=tokens)


_TOKENIZER: Final = "`tokenizer.json` is the tokenizer of the run's data set."
_NO_TOKENIZER: Final = "No tokenizer is included; the data set of the run names it."
_CARD: Final = """\
---
library_name: transformers
pipeline_tag: text-generation
---

# Weights of a troth run

Strangers trained this model together. Each of them put up a stake, and a program on Solana recorded
the root of the weights.

| | |
|---|---|
{table}

{tokens}

## Load

```
AutoModelForCausalLM.from_pretrained("DIR")
AutoTokenizer.from_pretrained("DIR")                 # where a tokenizer is included
```

## Check

```
troth checkpoint verify DIR --rpc URL
```

It hashes the weights again, and compares their root with the one that the program stored. The RPC
node is the only party that you trust. A PASS does not say that the model is good, only that these
are the weights of the run.
"""
