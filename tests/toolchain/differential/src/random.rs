//! Pseudo-random inputs and the hash that collects results.

/// Xorshift: the same numbers on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn word(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A 64-bit number of random length.
    pub fn short(&mut self) -> u64 {
        let word = self.word();
        word >> (self.word() % 64)
    }

    /// A 128-bit number of random length, sometimes 0.
    pub fn wide(&mut self) -> u128 {
        let value = u128::from(self.word()) << 64 | u128::from(self.word());
        value.checked_shr((self.word() % 129) as u32).unwrap_or(0)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.word() % bound as u64) as usize
    }
}

/// Order-sensitive hash of everything that was computed.
pub struct Hash(pub u64);

impl Hash {
    pub fn add(&mut self, value: u128) {
        self.0 = self.0.rotate_left(9).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ^ value as u64
            ^ ((value >> 64) as u64).rotate_left(31);
    }

    pub fn flag(&mut self, value: bool) {
        self.add(u128::from(value));
    }

    pub fn bytes(&mut self, values: &[u8]) {
        for value in values {
            self.add(u128::from(*value));
        }
    }
}
