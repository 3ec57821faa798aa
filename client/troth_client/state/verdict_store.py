"""Verdicts and votes, stored before their commit is sent: a crash before the reveal is no fault.

Owns: one sealed file per (round, target, kind) and stage of judging, the salts, and that the first
judgement counts. Never: sends, or changes an entry: a hash that may be on chain must be revealed.
After a fork that drew another seed, a judgement of other evidence takes the place of the entry.
Next: `audit/judgement.py`, which makes the verdicts.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from troth_attestation.cases import Vote
from troth_attestation.sketch import Sketch, sketch_hash
from troth_attestation.verdict import Statement, VerdictKind
from troth_client.runtime.files import make_private, remove_temporaries
from troth_client.storage.room import Room
from troth_client.storage.sealed import DamagedFileError, Record, read_record, write_record
from troth_coordinator.rules.hashing import H, u8, u16, u64
from troth_coordinator.rules.ids import Digest

_NAME = re.compile(r"^(seat|juror)-(\d{20})-(\d{5})-(\d{3})\.record$")


@dataclass(frozen=True, slots=True, order=True)
class Duty:
    """One duty to judge: as a seat of an audit, or as a juror of its case.

    `kind` is that of the audit account: 0 work, 1 payload, 2 root, 3 possession.
    """

    round: int
    target: int
    kind: int
    is_juror: bool = False

    @property
    def file_name(self) -> str:
        """The name of the file with its entry."""
        who = "juror" if self.is_juror else "seat"
        return f"{who}-{self.round:020d}-{self.target:05d}-{self.kind:03d}.record"


@dataclass(frozen=True, slots=True)
class KeptStatement:
    """One judgement with its salt: everything that a reveal needs.

    `evidence` is the openings root, zeros without; `sketch` is of zeros where no gradient was
    computed, as in the exact cases.
    """

    duty: Duty
    run: bytes
    witness: int
    kind: VerdictKind
    evidence: bytes
    sketch: Sketch
    salt: bytes

    def commit(self) -> Digest:
        """Return the hash that is sent first."""
        duty, hashed = self.duty, sketch_hash(self.sketch)
        if duty.is_juror:
            about = (self.run, duty.round, duty.target, duty.kind)
            return Vote(*about, self.witness, self.kind, self.evidence, hashed).commit(self.salt)
        who = (self.run, duty.round, duty.target, self.witness)
        return Statement(*who, self.kind, self.evidence, hashed).commit(self.salt)


class VerdictStore:
    """The entries of one participant in one run, in a folder that its store's lock protects."""

    def __init__(
        self,
        folder: Path,
        salt_key: bytes,
        on_damaged: Callable[[DamagedFileError], None],
        durable: bool = True,
        room: Room | None = None,
    ) -> None:
        """Open or make the folder; `salt_key` and `room` are the store's, `durable` as there."""
        make_private(folder)
        remove_temporaries(folder, _NAME)
        self._folder = folder
        self._salt_key = salt_key
        self._report = on_damaged
        self._durable = durable
        self._room = room or Room()
        matches = (_NAME.match(path.name) for path in folder.iterdir())
        self._duties = {
            Duty(int(match[2]), int(match[3]), int(match[4]), match[1] == "juror")
            for match in matches
            if match
        }

    def seal_verdict(self, statement: Statement, sketch: Sketch) -> KeptStatement:
        """Store the verdict of a seat and return the entry that counts: the first of its evidence.

        When it returns, the entry is on the disk and its commit may be sent. Raises DiskFullError.
        """
        duty = Duty(statement.round, statement.target, 0)
        stated = (statement.run, statement.witness, statement.kind, statement.evidence)
        return self._seal(KeptStatement(duty, *stated, sketch, self._salt(duty)))

    def seal_vote(self, vote: Vote, sketch: Sketch) -> KeptStatement:
        """Store the vote of a juror; otherwise as `seal_verdict`."""
        duty = Duty(vote.round, vote.target, vote.case_kind, is_juror=True)
        stated = (vote.run, vote.witness, vote.kind, vote.evidence)
        return self._seal(KeptStatement(duty, *stated, sketch, self._salt(duty)))

    def find(self, duty: Duty) -> KeptStatement | None:
        """Return the entry of a duty; a damaged file is reported and counts as none."""
        path = self._folder / duty.file_name
        try:
            record = read_record(path)
            if record.fields["file"] != path.name:
                raise DamagedFileError(path, "its own name inside", str(record.fields["file"]))
        except FileNotFoundError:
            return None
        except DamagedFileError as error:
            self._report(error)
            return None
        return _from_record(duty, record)

    def duties(self) -> list[Duty]:
        """Return the duties with an entry, by round; a restarted process still owes them."""
        return sorted(self._duties)

    def drop(self, duty: Duty) -> None:
        """Forget an entry whose audit or case is settled; harmless when there is none."""
        self._duties.discard(duty)
        (self._folder / duty.file_name).unlink(missing_ok=True)

    def _seal(self, entry: KeptStatement) -> KeptStatement:
        known = self.find(entry.duty)
        if known is not None and known.evidence == entry.evidence:
            return known
        path, record = self._folder / entry.duty.file_name, _to_record(entry)
        self._room.write(lambda: write_record(path, record, self._durable, is_secret=True))
        self._duties.add(entry.duty)
        return entry

    def _salt(self, duty: Duty) -> Digest:
        about = (u64(duty.round), u16(duty.target), u8(duty.kind), u8(duty.is_juror))
        return H("troth:verdict-salt", self._salt_key, *about)


def _to_record(entry: KeptStatement) -> Record:
    fields: dict[str, str | int] = {
        "file": entry.duty.file_name,
        "run": entry.run.hex(),
        "witness": entry.witness,
        "verdict": int(entry.kind),
        "evidence": entry.evidence.hex(),
        "salt": entry.salt.hex(),
    }
    return Record(fields, {"sketch": np.array(entry.sketch, np.int32)})


def _from_record(duty: Duty, record: Record) -> KeptStatement:
    fields, sketch = record.fields, record.arrays["sketch"]
    return KeptStatement(
        duty,
        bytes.fromhex(str(fields["run"])),
        int(fields["witness"]),
        VerdictKind(int(fields["verdict"])),
        bytes.fromhex(str(fields["evidence"])),
        tuple(int(value) for value in sketch),
        bytes.fromhex(str(fields["salt"])),
    )
