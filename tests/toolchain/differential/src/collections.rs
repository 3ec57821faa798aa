//! Collections, sorting, strings and formatting of the standard library.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::random::{Hash, Random};

#[inline(never)]
pub fn collections(random: &mut Random, hash: &mut Hash) {
    let length = random.below(24);
    let values: Vec<u32> = (0..length).map(|_| (random.word() % 50) as u32).collect();
    let mut tree = BTreeMap::new();
    let mut counts: HashMap<u32, u64> = HashMap::new();
    for (position, value) in values.iter().enumerate() {
        *tree.entry(*value).or_insert(0u64) += position as u64;
        *counts.entry(*value).or_default() += 1;
    }
    for (key, value) in &tree {
        hash.add(u128::from(*key) << 64 | u128::from(*value));
        hash.add(u128::from(counts[key]));
    }
    sorting(&values, hash);
    queues(&values, random, hash);
}

#[inline(never)]
fn sorting(values: &[u32], hash: &mut Hash) {
    let mut falling = values.to_vec();
    falling.sort_unstable_by(|a, b| b.cmp(a));
    falling.dedup();
    let mut stable: Vec<(u32, usize)> = values.iter().map(|v| v % 5).zip(0..).collect();
    stable.sort_by_key(|pair| pair.0);
    for value in falling {
        hash.add(u128::from(value));
    }
    for (value, position) in stable {
        hash.add(u128::from(value) << 32 | position as u128);
    }
}

#[inline(never)]
fn queues(values: &[u32], random: &mut Random, hash: &mut Hash) {
    let mut queue: VecDeque<u32> = values.iter().copied().collect();
    if !values.is_empty() {
        queue.rotate_left(random.below(values.len()));
    }
    while let Some(value) = queue.pop_back() {
        hash.add(u128::from(value));
    }
    let set: BTreeSet<u32> = values.iter().copied().collect();
    hash.add(set.range(10..30).count() as u128);
    let mut list = values.to_vec();
    if list.len() > 4 {
        list.copy_within(1..values.len() - 2, 2);
        list.drain(1..3);
    }
    for value in list {
        hash.add(u128::from(value));
    }
}

#[inline(never)]
pub fn text(random: &mut Random, hash: &mut Hash) {
    let values = [random.word() % 1000, random.word(), random.word() % 100_000];
    let mut text = format!(
        "{:?}|{:>8}|{:<5}|{:#x}|{:e}",
        values, values[2], values[0], values[1], values[2]
    );
    wide_text(random, &mut text);
    hash.bytes(text.as_bytes());
    let lengths: usize = text.split('|').map(|part| part.trim().len()).sum();
    hash.add(lengths as u128);
    let upper = text.to_uppercase();
    let digits = upper.chars().rev();
    hash.add(digits.filter(char::is_ascii_digit).count() as u128);
    hash.add(text.find('7').unwrap_or(99) as u128);
    hash.add("12345".parse::<u64>().map_or(0, u128::from));
    hash.flag(text.parse::<i32>().is_err());
}

#[inline(never)]
fn wide_text(random: &mut Random, text: &mut String) {
    use std::fmt::Write;
    let wide = random.wide();
    write!(text, "|{}|{}|{:.3}", wide, wide as i128, 1.25f64).expect("strings take everything");
}
