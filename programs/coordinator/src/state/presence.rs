//! Whether a participant is there: its last action on chain, and the outages between its actions.
//!
//! Owns the way from an entry to `crate::rules::outage` and back. Never fines.
//! Next: `crate::audit::penalties`, which does.

use crate::constants::ENTRY_SILENT;
use crate::rules::outage::Presence;
use crate::state::{Entry, Params};

impl Entry {
    /// Notes an action at `clock`: the participant is there, and may be seated again.
    pub fn act(&mut self, clock: u64, params: &Params) {
        let mut presence = self.presence();
        presence.act(clock, params.shortest_commit_slots());
        self.set_presence(presence);
        self.flags &= !ENTRY_SILENT;
    }

    /// Notes silence in a window that ended at `ended`. Returns whether it costs a fine: one outage
    /// costs one. A witness that has not acted since is not seated until it does.
    pub fn miss(&mut self, ended: u64) -> bool {
        let mut presence = self.presence();
        let is_fined = presence.miss(ended);
        self.set_presence(presence);
        if presence.is_silent_since(ended) {
            self.flags |= ENTRY_SILENT;
        }
        is_fined
    }

    fn presence(&self) -> Presence {
        Presence {
            last_action: self.last_action,
            outage_start: self.outage_start,
            outage_end: self.outage_end,
            fined_outage: self.fined_outage,
        }
    }

    fn set_presence(&mut self, presence: Presence) {
        self.last_action = presence.last_action;
        self.outage_start = presence.outage_start;
        self.outage_end = presence.outage_end;
        self.fined_outage = presence.fined_outage;
    }
}

impl Params {
    /// The shortest window in which a judge must commit: a longer silence is an outage.
    #[must_use]
    pub fn shortest_commit_slots(&self) -> u64 {
        self.verdict_commit_slots.min(self.jury_commit_slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constants::ROLES;
    use anchor_lang::prelude::Pubkey;
    use bytemuck::Zeroable;

    fn setup() -> (Box<Entry>, Box<Params>) {
        let (mut entry, mut params) = (Box::new(Entry::zeroed()), Box::new(Params::zeroed()));
        entry.join(Pubkey::new_from_array([1; 32]), Pubkey::default(), ROLES, 0);
        params.verdict_commit_slots = 90;
        params.jury_commit_slots = 80;
        (entry, params)
    }

    #[test]
    fn the_silent_are_not_seated_until_they_act() {
        let (mut entry, params) = setup();
        entry.act(100, &params);
        assert!(entry.miss(150) && entry.flags & ENTRY_SILENT != 0);
        assert!(!entry.miss(160));
        entry.act(200, &params);
        assert_eq!(
            (entry.flags, entry.outage_start, entry.outage_end),
            (0, 100, 200)
        );
        assert!(!entry.miss(190) && entry.flags == 0);
        assert!(entry.miss(205), "it has come back, and is silent again");
    }

    #[test]
    fn the_shorter_window_of_a_judge_tells_an_outage() {
        let (mut entry, params) = setup();
        entry.act(100, &params);
        entry.act(180, &params);
        assert_eq!(
            entry.outage_end, 100,
            "before its first action it was not there"
        );
        entry.act(261, &params);
        assert_eq!(entry.outage_start, 180);
    }
}
