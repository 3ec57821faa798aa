//! One file per instruction: arguments, accounts, validation, handler.
//!
//! Owns who may do what, and when. Never counts votes or money by itself: `crate::rules` and
//! `crate::state` do. Next: `create_run`, then in the order of a run's life.

pub mod activate;
pub mod admit;
pub mod announce_manifest;
pub mod attest;
pub mod claim_reward;
pub mod close_round;
pub mod close_run;
pub mod close_void;
pub mod commit_payload;
pub mod create_run;
pub mod freeze_seed;
pub mod fund_run;
pub mod init_roster;
pub mod init_round;
pub mod join_run;
pub mod leave_run;
pub mod pause_run;
pub mod ready;
pub mod report_missing;
pub mod resume_run;
pub mod retarget;
pub mod set_session_key;
pub mod tick;
pub mod top_up_stake;
pub mod update_params;
pub mod withdraw_stake;

pub use activate::*;
pub use admit::*;
pub use announce_manifest::*;
pub use attest::*;
pub use claim_reward::*;
pub use close_round::*;
pub use close_run::*;
pub use close_void::*;
pub use commit_payload::*;
pub use create_run::*;
pub use freeze_seed::*;
pub use fund_run::*;
pub use init_roster::*;
pub use init_round::*;
pub use join_run::*;
pub use leave_run::*;
pub use pause_run::*;
pub use ready::*;
pub use report_missing::*;
pub use resume_run::*;
pub use retarget::*;
pub use set_session_key::*;
pub use tick::*;
pub use top_up_stake::*;
pub use update_params::*;
pub use withdraw_stake::*;
