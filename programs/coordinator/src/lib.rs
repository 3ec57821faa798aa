//! The troth coordinator: orders the rounds of a run, holds stakes, pays rewards.
//!
//! Owns the list of instructions. Never holds logic. Next: `instructions`, one file each;
//! `state` for the layouts; `rules` for the decisions. Specification: `docs/protocol.md`.

// Anchor's error type is large; boxing it is not ours to decide.
#![allow(clippy::result_large_err)]
// `#[program]` and `derive(Accounts)` generate items without documentation beside ours, so the
// lint is denied module by module (not where the IDL is extracted, which generates more); a test
// looks at `instructions` and at this file.
#![allow(missing_docs)]

#[macro_use]
#[cfg_attr(not(feature = "idl-build"), deny(missing_docs))]
pub mod errors;
#[cfg_attr(not(feature = "idl-build"), deny(missing_docs))]
pub mod audit;
#[cfg_attr(not(feature = "idl-build"), deny(missing_docs))]
pub mod case;
#[cfg_attr(not(feature = "idl-build"), deny(missing_docs))]
pub mod constants;
#[cfg_attr(not(feature = "idl-build"), deny(missing_docs))]
pub mod events;
pub mod instructions;
#[cfg_attr(not(feature = "idl-build"), deny(missing_docs))]
pub mod math;
#[cfg_attr(not(feature = "idl-build"), deny(missing_docs))]
pub mod pda;
#[cfg_attr(not(feature = "idl-build"), deny(missing_docs))]
pub mod round;
#[cfg_attr(not(feature = "idl-build"), deny(missing_docs))]
pub mod rules;
#[cfg_attr(not(feature = "idl-build"), deny(missing_docs))]
pub mod state;

use anchor_lang::prelude::*;

use constants::SKETCH_LEN;
pub use instructions::*;
use state::Params;

declare_id!("TrothCoordinator111111111111111111111111111");

/// The instructions, in the order of a run's life.
#[program]
pub mod coordinator {
    use super::*;

    /// Creates a run and its vault.
    pub fn create_run(ctx: Context<CreateRun>, args: CreateRunArgs) -> Result<()> {
        CreateRun::handle(ctx, args)
    }

    /// Creates the roster, and grows it by 10 240 bytes per call until it is full size.
    pub fn init_roster(ctx: Context<InitRoster>) -> Result<()> {
        InitRoster::handle(ctx)
    }

    /// Creates one position of the ring of rounds.
    pub fn init_round(ctx: Context<InitRound>, position: u16) -> Result<()> {
        InitRound::handle(ctx, position)
    }

    /// Puts an owner on the allowlist.
    pub fn admit(ctx: Context<Admit>, owner: Pubkey) -> Result<()> {
        Admit::handle(ctx, owner)
    }

    /// Adds lamports to the reward pool.
    pub fn fund_run(ctx: Context<FundRun>, lamports: u64) -> Result<()> {
        FundRun::handle(ctx, lamports)
    }

    /// Deposits the stake and takes an index.
    pub fn join_run<'info>(ctx: Context<'info, JoinRun<'info>>, args: JoinArgs) -> Result<()> {
        JoinRun::handle(ctx, args)
    }

    /// Adds to a stake.
    pub fn top_up_stake(ctx: Context<TopUpStake>, lamports: u64) -> Result<()> {
        TopUpStake::handle(ctx, lamports)
    }

    /// Names a new session key, in force from the next round open.
    pub fn set_session_key(ctx: Context<SetSessionKey>, session: Pubkey) -> Result<()> {
        SetSessionKey::handle(ctx, session)
    }

    /// Posts the root that a participant would train on.
    pub fn post_ready(
        ctx: Context<PostReady>,
        index: u16,
        round: u64,
        vote: [u8; 32],
    ) -> Result<()> {
        PostReady::handle(ctx, &PostReadyArgs { index, round, vote })
    }

    /// Makes a ready participant a member of the next round.
    pub fn activate(ctx: Context<Activate>, index: u16) -> Result<()> {
        Activate::handle(ctx, index)
    }

    /// Moves the run to its next phase once that is due.
    pub fn advance_phase(ctx: Context<AdvancePhase>) -> Result<()> {
        AdvancePhase::handle(ctx)
    }

    /// Commits to a header and votes for a root.
    pub fn commit_payload(
        ctx: Context<MemberInRound>,
        index: u16,
        round: u64,
        header_hash: [u8; 32],
        root_vote: [u8; 32],
    ) -> Result<()> {
        let args = CommitPayloadArgs {
            index,
            round,
            header_hash,
            root_vote,
        };
        commit_payload::handle(ctx, &args)
    }

    /// Vouches for the payloads that a member holds.
    pub fn attest(
        ctx: Context<MemberInRound>,
        index: u16,
        round: u64,
        bitmap: u64,
        possession: [u8; 64],
    ) -> Result<()> {
        let args = AttestArgs {
            index,
            round,
            bitmap,
            possession,
        };
        attest::handle(ctx, &args)
    }

    /// Closes a round under its canonical root and opens the next.
    pub fn close_round(
        ctx: Context<CloseRound>,
        round: u64,
        candidate_root: [u8; 32],
    ) -> Result<()> {
        CloseRound::handle(ctx, round, candidate_root)
    }

    /// Closes a round without a result and opens the next.
    pub fn close_void(ctx: Context<CloseVoid>, round: u64) -> Result<()> {
        CloseVoid::handle(ctx, round)
    }

    /// Fixes the seed of a closed round's audits.
    pub fn freeze_seed(ctx: Context<SeedOfRound>, round: u64) -> Result<()> {
        freeze_seed::handle(ctx, round)
    }

    /// Names another seed slot where the first one is no longer listed.
    pub fn retarget_seed(ctx: Context<SeedOfRound>, round: u64) -> Result<()> {
        retarget_seed::handle(ctx, round)
    }

    /// Reports an included payload that nobody serves.
    pub fn report_missing(
        ctx: Context<ReportMissing>,
        index: u16,
        round: u64,
        target: u16,
    ) -> Result<()> {
        ReportMissing::handle(
            ctx,
            &ReportMissingArgs {
                index,
                round,
                target,
            },
        )
    }

    /// Pays for one more audit of the round under way, in advance.
    pub fn request_audit(ctx: Context<Challenge>, round: u64, target: u16) -> Result<()> {
        request_audit::handle(ctx, round, target)
    }

    /// Opens the audit of a sampled or requested target.
    pub fn open_audit(ctx: Context<OpenAudit>, round: u64, target: u16) -> Result<()> {
        OpenAudit::handle(ctx, round, target)
    }

    /// Fixes what a target shows; opens the audit if nobody has.
    pub fn post_openings(
        ctx: Context<PostOpenings>,
        round: u64,
        target: u16,
        root: [u8; 32],
    ) -> Result<()> {
        PostOpenings::handle(ctx, round, target, root)
    }

    /// Commits a seat to a hidden verdict.
    pub fn commit_verdict(
        ctx: Context<JudgeInAudit>,
        index: u16,
        commitment: [u8; 32],
    ) -> Result<()> {
        commit_verdict::handle(ctx, index, commitment)
    }

    /// Shows the verdict of a seat.
    pub fn reveal_verdict(
        ctx: Context<JudgeInAudit>,
        index: u16,
        verdict: u8,
        evidence: [u8; 32],
        sketch: [i32; SKETCH_LEN],
        salt: [u8; 32],
    ) -> Result<()> {
        let args = RevealArgs {
            index,
            verdict,
            evidence,
            sketch,
            salt,
        };
        reveal_verdict::handle(ctx, &args)
    }

    /// Seats the remaining witnesses where the first ones do not agree.
    pub fn extend_audit(ctx: Context<ExtendAudit>) -> Result<()> {
        ExtendAudit::handle(ctx)
    }

    /// Ends an audit: outcome, fees and penalties of the seats.
    pub fn settle_audit<'info>(ctx: Context<'info, Settlement<'info>>) -> Result<()> {
        settle_audit::handle(ctx)
    }

    /// Posts a bond, so that a jury judges.
    pub fn open_case(
        ctx: Context<Challenge>,
        round: u64,
        target: u16,
        kind: u8,
        subject: u16,
    ) -> Result<()> {
        let args = OpenCaseArgs {
            round,
            target,
            kind,
            subject,
        };
        open_case::handle(ctx, &args)
    }

    /// Fixes the seed of a case and seats the jury.
    pub fn draw_jury(ctx: Context<DrawJury>) -> Result<()> {
        DrawJury::handle(ctx)
    }

    /// Commits to the hash of a vote (verdict 0), or shows the vote behind it.
    pub fn vote_case(
        ctx: Context<JudgeInAudit>,
        index: u16,
        verdict: u8,
        hash: [u8; 32],
        salt: [u8; 32],
    ) -> Result<()> {
        let args = VoteCaseArgs {
            index,
            verdict,
            hash,
            salt,
        };
        vote_case::handle(ctx, &args)
    }

    /// Ends a case once its jury has voted.
    pub fn settle_case<'info>(ctx: Context<'info, Settlement<'info>>) -> Result<()> {
        settle_case::handle(ctx)
    }

    /// Asks the council to look at a conviction.
    pub fn appeal_case(ctx: Context<AppealCase>) -> Result<()> {
        AppealCase::handle(ctx)
    }

    /// Reverses a conviction; only the council, and nothing else.
    pub fn reverse_case(ctx: Context<ReverseCase>) -> Result<()> {
        ReverseCase::handle(ctx)
    }

    /// Pays the escrow of a conviction, and closes any audit that is over.
    pub fn release_escrow<'info>(ctx: Context<'info, ReleaseEscrow<'info>>) -> Result<()> {
        ReleaseEscrow::handle(ctx)
    }

    /// Announces where the files of a checkpoint are.
    pub fn announce_manifest(
        ctx: Context<AnnounceManifest>,
        index: u16,
        round: u64,
        manifest_hash: [u8; 32],
        uri: String,
    ) -> Result<()> {
        AnnounceManifest::handle(ctx, index, round, manifest_hash, uri)
    }

    /// Stops the clock: at once between rounds, else at the next close.
    pub fn pause_run(ctx: Context<AuthorityOverRun>) -> Result<()> {
        pause_run::handle(ctx)
    }

    /// Restarts the clock, or cancels a requested pause.
    pub fn resume_run(ctx: Context<ResumeRun>) -> Result<()> {
        ResumeRun::handle(ctx)
    }

    /// Requests new parameters, in force from an epoch boundary after the delay.
    pub fn update_params(ctx: Context<AuthorityOverRun>, params: Params) -> Result<()> {
        update_params::handle(ctx, params)
    }

    /// Starts leaving: the whole stake unbonds.
    pub fn leave_run(ctx: Context<LeaveRun>) -> Result<()> {
        LeaveRun::handle(ctx)
    }

    /// Pays matured stake, and unbonds stake above the minimum.
    pub fn withdraw_stake(ctx: Context<WithdrawStake>, unbond_lamports: u64) -> Result<()> {
        WithdrawStake::handle(ctx, unbond_lamports)
    }

    /// Pays vested rewards.
    pub fn claim_reward(ctx: Context<ClaimReward>) -> Result<()> {
        ClaimReward::handle(ctx)
    }

    /// Closes the accounts of a finished run, batch by batch.
    pub fn close_run<'info>(ctx: Context<'info, CloseRun<'info>>) -> Result<()> {
        CloseRun::handle(ctx)
    }
}
