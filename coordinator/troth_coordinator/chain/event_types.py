"""The program's events by name. Generated: run scripts/gen/event_types.py instead of editing.

Owns: the table that events.py looks names up in.
Never: describes an event: the three modules that it names do.
Next: docs/reference/events.md for the same as a page.
"""

from __future__ import annotations

from typing import Final

from troth_coordinator.chain import event_types_audits as audits
from troth_coordinator.chain import event_types_life as life
from troth_coordinator.chain import event_types_rounds as rounds
from troth_coordinator.chain.event_base import Event

__all__ = ["EVENT_TYPES", "Event"]

EVENT_TYPES: Final[dict[str, type[Event]]] = {
    "RunCreated": life.RunCreated,
    "RosterInitialized": life.RosterInitialized,
    "RoundInitialized": life.RoundInitialized,
    "ParticipantAdmitted": life.ParticipantAdmitted,
    "RunFunded": life.RunFunded,
    "ParticipantJoined": life.ParticipantJoined,
    "StakeToppedUp": life.StakeToppedUp,
    "SessionKeySet": life.SessionKeySet,
    "ManifestAnnounced": life.ManifestAnnounced,
    "PauseRequested": life.PauseRequested,
    "PauseCancelled": life.PauseCancelled,
    "RunPaused": life.RunPaused,
    "RunResumed": life.RunResumed,
    "ParamsRequested": life.ParamsRequested,
    "ParamsApplied": life.ParamsApplied,
    "LeaveRequested": life.LeaveRequested,
    "ParticipantLeft": life.ParticipantLeft,
    "StakeUnbonding": life.StakeUnbonding,
    "StakeWithdrawn": life.StakeWithdrawn,
    "RewardClaimed": life.RewardClaimed,
    "RewardsMoved": life.RewardsMoved,
    "ParticipantClosed": life.ParticipantClosed,
    "AccountClosed": life.AccountClosed,
    "LeftoversPaid": life.LeftoversPaid,
    "RunClosed": life.RunClosed,
    "EndpointSet": life.EndpointSet,
    "RecordMoved": life.RecordMoved,
    "PhaseStarted": rounds.PhaseStarted,
    "WarmupEnded": rounds.WarmupEnded,
    "RoundOpened": rounds.RoundOpened,
    "MembershipChanged": rounds.MembershipChanged,
    "RoundSettled": rounds.RoundSettled,
    "RewardsScaled": rounds.RewardsScaled,
    "CheckpointStored": rounds.CheckpointStored,
    "ReadyPosted": rounds.ReadyPosted,
    "Activated": rounds.Activated,
    "SeedFrozen": rounds.SeedFrozen,
    "SeedRetargeted": rounds.SeedRetargeted,
    "SeedLost": rounds.SeedLost,
    "MissingReported": rounds.MissingReported,
    "PayloadStruck": rounds.PayloadStruck,
    "Attested": rounds.Attested,
    "PayloadCommitted": rounds.PayloadCommitted,
    "RoundClosed": rounds.RoundClosed,
    "AuditRequested": audits.AuditRequested,
    "AuditOpened": audits.AuditOpened,
    "OpeningsPosted": audits.OpeningsPosted,
    "VerdictCommitted": audits.VerdictCommitted,
    "VerdictRevealed": audits.VerdictRevealed,
    "AuditExtended": audits.AuditExtended,
    "AuditSettled": audits.AuditSettled,
    "FeesScaled": audits.FeesScaled,
    "Penalised": audits.Penalised,
    "PrepaidRefunded": audits.PrepaidRefunded,
    "ProbationChanged": audits.ProbationChanged,
    "ProbationsEnded": audits.ProbationsEnded,
    "CaseOpened": audits.CaseOpened,
    "CaseSeedRetargeted": audits.CaseSeedRetargeted,
    "CaseSeedLost": audits.CaseSeedLost,
    "JuryDrawn": audits.JuryDrawn,
    "JurorVoteCommitted": audits.JurorVoteCommitted,
    "JurorVoteRevealed": audits.JurorVoteRevealed,
    "CaseSettled": audits.CaseSettled,
    "CaseAppealed": audits.CaseAppealed,
    "CaseReversed": audits.CaseReversed,
    "AuditClosed": audits.AuditClosed,
}
