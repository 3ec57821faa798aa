//! Copies, moves, fills and comparisons of short, long, constant and variable lengths.

use crate::random::{Hash, Random};

#[derive(Clone, Copy, PartialEq)]
struct Record {
    key: [u8; 32],
    amount: u64,
    flags: [u16; 5],
}

#[inline(never)]
pub fn memory(random: &mut Random, hash: &mut Hash) {
    let mut buffer = [0u8; 300];
    for byte in &mut buffer {
        *byte = random.word() as u8;
    }
    let (from, length, to) = (random.below(150), random.below(150), random.below(150));
    buffer.copy_within(from..from + length, to);
    let (front, back) = buffer.split_at_mut(150);
    front[..length].copy_from_slice(&back[..length]);
    back[to..].fill(length as u8);
    hash.bytes(&buffer);
    hash.flag(buffer[..50] == buffer[from..from + 50]);
    hash.add(buffer[..length].cmp(&buffer[to..]) as i8 as u128);
    records(random, hash);
}

#[inline(never)]
fn records(random: &mut Random, hash: &mut Hash) {
    let mut record = Record {
        key: [random.word() as u8; 32],
        amount: random.word(),
        flags: [random.word() as u16; 5],
    };
    let copies = [record; 4];
    record.key[random.below(32)] ^= 1;
    record.flags[random.below(5)] ^= 1;
    let mut listed: Vec<Record> = copies.to_vec();
    listed.insert(random.below(4), record);
    listed.swap(0, 4);
    for each in &listed {
        hash.bytes(&each.key);
        hash.add(u128::from(each.amount));
        hash.flag(*each == record);
        hash.add(u128::from(each.flags[4]));
    }
    let unaligned = [1u8; 64];
    let at = random.below(40);
    let word = u64::from_le_bytes(unaligned[at..at + 8].try_into().expect("8 bytes"));
    hash.add(u128::from(word));
}
