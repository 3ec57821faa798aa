"""`Observation`: everything that an outsider knows of a run at one moment.

Owns: the record and its parts, and their form in JSON.
Never: reads the chain, or computes: `fold.py` makes the record.
Next: `observer.py`, which hands it out.

JSON has the names of the fields: `_micro` is nats / 10^6, `_lamports` is SOL / 10^9, slots are
slots. None becomes null: not known.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from troth_audit.cases import CaseFile
from troth_audit.rounds import ClosedRound
from troth_audit.slashes import Slash
from troth_cli.observe.time_left import TimeLeft
from troth_cli.view.cases import case_values
from troth_cli.view.output import Json
from troth_cli.view.slashes import slash_values
from troth_client.telemetry.losses import RoundLoss


@dataclass(frozen=True, slots=True)
class RoundSeen:
    """A closed round and its loss. `loss` is None until its headers were asked for."""

    chain: ClosedRound
    loss: RoundLoss | None = None

    @property
    def mean_loss_micro(self) -> int | None:
        """Mean training loss in micro-nats over the headers that were found; None without any."""
        return None if self.loss is None else self.loss.mean_micro

    def to_json(self) -> dict[str, Json]:
        """Return the round for JSON; `included` is a list of participant indices."""
        chain, loss = self.chain, self.loss or RoundLoss()
        return {
            "round": chain.round,
            "open_slot": chain.open_slot,
            "close_slot": chain.close_slot,
            "num_members": chain.num_members,
            "num_trainers": chain.num_trainers,
            "num_committed": chain.num_committed,
            "num_attested": chain.num_attested,
            "num_included": chain.num_included,
            "included": [index for index in range(64) if chain.included >> index & 1],
            "is_void": chain.is_void,
            "mean_loss_micro": loss.mean_micro,
            "median_loss_micro": loss.median_micro,
            "num_losses": loss.num_known,
            "num_odd_losses": loss.num_odd,
        }


@dataclass(frozen=True, slots=True)
class ParticipantSeen:
    """One entry of the roster. `status` is a word for people, `endpoint` is a stranger's text.

    `endpoint` is None where the Participant account is closed, `last_loss_micro` where no header
    of this participant was found.
    """

    index: int
    owner: str
    session: str
    status: str
    role: str
    is_leaving: bool
    has_acted: bool | None
    stake_lamports: int
    claimable_lamports: int
    unvested_lamports: int
    joined_round: int | None
    num_included: int
    last_included_round: int | None
    return_round: int | None
    jailed_until_round: int | None
    rounds_served: int
    misses_in_row: int
    strikes: int
    offences: int
    is_frozen: bool
    endpoint: str | None
    last_loss_micro: int | None = None
    last_loss_round: int | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the entry for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class RunSeen:
    """The Run account, for people: phase, round, roots, money.

    `root` is the newest stored root, of the weights after `root_round` rounds. The program stores
    one every `checkpoint_every` rounds. `newest_root` is the newest that members agreed on: of the
    weights that round `newest_root_round` began with; None where the ring holds no closed round.
    """

    run: str
    phase: str
    phase_end_slot: int | None
    is_transition_due: bool
    round: int
    max_rounds: int
    epoch: int
    is_pause_requested: bool
    void_streak: int
    root: str
    root_round: int
    newest_root: str | None
    newest_root_round: int | None
    checkpoint_every: int
    chain_hash: str
    reward_pool_lamports: int
    escrow_lamports: int
    bonds_lamports: int
    num_audits: int
    num_eligible_witnesses: int
    num_sampled: int
    num_auditable: int
    capacity: int
    min_members: int
    num_required: int
    num_acted: int

    @property
    def is_finished(self) -> bool:
        """Whether no round opens any more."""
        return self.phase == "finished"


@dataclass(frozen=True, slots=True)
class Observation:
    """A run at one moment.

    slot: of the newest look, carried on by the measured pace. slots_left: in the phase.
    rounds: closed rounds, oldest first. `first_round` is the oldest round that could be read; of
    long runs, old rounds are thinned out: `num_dropped` of them are not in the list.
    cases: all open audits, of which those with `is_accused` went to a jury.
    closed: audits and cases that are over, of the newest round first, without verdicts and votes;
    the outcome is 0 where the record does not reach back to it. is_closed_cut: there may be older
    ones that are not kept.
    is_slash_record_cut: older transactions than those that were read may hold more slashes.
    warnings: for people, the most important first.
    age_seconds: since the last good look. trouble: why the looks fail since then, "" if they do
    not. is_gone: the run's accounts were closed while it was watched; the rest is as it last was.
    revision: grows with each change of anything but slot and ages.
    """

    slot: int
    slots_left: int | None
    run: RunSeen
    rounds: tuple[RoundSeen, ...]
    first_round: int | None
    num_dropped: int
    participants: tuple[ParticipantSeen, ...]
    cases: tuple[CaseFile, ...]
    closed: tuple[CaseFile, ...]
    is_closed_cut: bool
    slashes: tuple[Slash, ...]
    is_slash_record_cut: bool
    warnings: tuple[str, ...]
    time_left: TimeLeft
    age_seconds: float
    trouble: str
    is_gone: bool
    revision: int

    @property
    def newest(self) -> RoundSeen | None:
        """The round that closed last."""
        return self.rounds[-1] if self.rounds else None

    @property
    def newest_with_loss(self) -> RoundSeen | None:
        """The newest round of which a loss is known."""
        known = (one for one in reversed(self.rounds) if one.mean_loss_micro is not None)
        return next(known, None)

    def to_json(self, rounds_from: int = 0, since: "Observation | None" = None) -> dict[str, Json]:
        """Return the record as one object.

        Only rounds from `rounds_from` on are listed. Of rounds and closed audits, only those that
        differ from `since` are.
        """
        newest, known = self.newest, self.newest_with_loss
        before = set() if since is None else set(since.rounds)
        closed_before = set() if since is None else set(since.closed)
        listed = (one for one in self.rounds if one.chain.round >= rounds_from)
        return {
            **_plain(self.run),
            "slot": self.slot,
            "slots_left": self.slots_left,
            "mean_loss_micro": None if newest is None else newest.mean_loss_micro,
            "last_loss_micro": None if known is None else known.mean_loss_micro,
            "last_loss_round": None if known is None else known.chain.round,
            "time_left": self.time_left.to_json(),
            "rounds": [one.to_json() for one in listed if one not in before],
            "first_round": self.first_round,
            "num_rounds_dropped": self.num_dropped,
            "participants": [one.to_json() for one in self.participants],
            "audits": [case_values(one) for one in self.cases],
            "accusations": [case_values(one) for one in self.cases if one.is_accused],
            "closed_audits": [case_values(one) for one in self.closed if one not in closed_before],
            "is_closed_cut": self.is_closed_cut,
            "slashes": [slash_values(one) for one in self.slashes],
            "is_slash_record_cut": self.is_slash_record_cut,
            "warnings": list(self.warnings),
            "age_seconds": round(self.age_seconds, 1),
            "trouble": self.trouble,
            "is_gone": self.is_gone,
            "revision": self.revision,
        }


def _plain(run: RunSeen) -> Mapping[str, Json]:
    return {field.name: getattr(run, field.name) for field in fields(run)}
