//! One file per instruction: arguments, accounts, validation, handler. Where several instructions
//! take the same accounts, those stand in `shared`, and the handler is a function of the file.
//!
//! Owns permissions and moments of each action. Never counts votes or money by itself:
//! `crate::rules` and `crate::state` do. Next: `create_run`, then in the order of a run's life.
//!
//! `dup` stands where an instruction has one account that Anchor writes back: without it Anchor
//! would compare that account with no other one, by a hash set of 9 KB and 4,000 compute units.

pub mod activate;
pub mod admit;
pub mod advance_phase;
pub mod announce_manifest;
pub mod appeal_case;
pub mod attest;
pub mod claim_reward;
pub mod close_round;
pub mod close_run;
pub mod close_void;
pub mod commit_payload;
pub mod commit_verdict;
pub mod create_run;
pub mod draw_jury;
pub mod extend_audit;
pub mod freeze_seed;
pub mod fund_run;
pub mod init_roster;
pub mod init_round;
pub mod join_run;
pub mod leave_run;
pub mod open_audit;
pub mod open_case;
pub mod pause_run;
pub mod post_openings;
pub mod post_ready;
pub mod release_escrow;
pub mod report_missing;
pub mod request_audit;
pub mod resume_run;
pub mod retarget_seed;
pub mod reveal_verdict;
pub mod reverse_case;
pub mod set_endpoint;
pub mod set_session_key;
pub mod settle_audit;
pub mod settle_case;
pub mod shared;
pub mod top_up_stake;
pub mod update_params;
pub mod vote_case;
pub mod withdraw_stake;

pub use activate::*;
pub use admit::*;
pub use advance_phase::*;
pub use announce_manifest::*;
pub use appeal_case::*;
pub use attest::AttestArgs;
pub use claim_reward::*;
pub use close_round::*;
pub use close_run::*;
pub use close_void::*;
pub use commit_payload::CommitPayloadArgs;
pub use create_run::*;
pub use draw_jury::*;
pub use extend_audit::*;
pub use fund_run::*;
pub use init_roster::*;
pub use init_round::*;
pub use join_run::*;
pub use leave_run::*;
pub use open_audit::*;
pub use open_case::OpenCaseArgs;
pub use pause_run::*;
pub use post_openings::*;
pub use post_ready::*;
pub use release_escrow::*;
pub use report_missing::*;
pub use resume_run::*;
pub use reveal_verdict::RevealArgs;
pub use reverse_case::*;
pub use set_endpoint::*;
pub use set_session_key::*;
pub use shared::*;
pub use top_up_stake::*;
pub use update_params::*;
pub use vote_case::VoteCaseArgs;
pub use withdraw_stake::*;
