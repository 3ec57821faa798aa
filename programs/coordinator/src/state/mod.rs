//! Account layouts, their transitions and their invariants.
//!
//! Owns every byte that the program stores. Never checks who signs and never moves lamports:
//! that is the work of `instructions`. Next: `run`, then `roster`, `round`, `money`.

pub mod audit;
pub mod checkpoint;
pub mod clock;
pub mod entry;
pub mod forfeit;
pub mod init;
pub mod money;
pub mod params;
pub mod params_update;
pub mod participant;
pub mod phase;
pub mod presence;
pub mod probation;
pub mod record;
pub mod roster;
pub mod round;
pub mod run;
pub mod status;
pub mod waiting;

pub use audit::*;
pub use checkpoint::*;
pub use entry::*;
pub use params::*;
pub use participant::*;
pub use phase::*;
pub use record::*;
pub use roster::*;
pub use round::*;
pub use run::*;
pub use status::*;
