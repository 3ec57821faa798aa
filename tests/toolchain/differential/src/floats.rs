//! Floating point: arithmetic, comparison (also with NaN), conversion, to the bit.

use crate::random::{Hash, Random};

#[inline(never)]
pub fn floats(random: &mut Random, hash: &mut Hash) {
    let a = (random.word() >> 11) as f64 / (1u64 << (random.word() % 50)) as f64;
    let b = (random.word() >> 20) as f64 * 0.37 - 1e9;
    let c = random.word() as i32 as f32 * 0.5;
    for value in [a + b, a - b, a * b, a / b, -a, b.abs(), f64::from(c)] {
        hash.add(u128::from(value.to_bits()));
    }
    for value in [a as f32, c * 3.25 + 1.0, c / 7.0, c - 0.1, -c] {
        hash.add(u128::from(value.to_bits()));
    }
    conversions(a, b, c, hash);
    let special = [f64::NAN, f64::INFINITY, -0.0, 0.0, a, b];
    let left = special[random.below(special.len())];
    comparisons(left, special[random.below(special.len())], hash);
    comparisons(a, b, hash);
    from_integers(random.word(), hash);
}

#[inline(never)]
fn conversions(a: f64, b: f64, c: f32, hash: &mut Hash) {
    hash.add(u128::from(a as u64));
    hash.add(b as i64 as u128);
    hash.add(b as i32 as u128);
    hash.add(u128::from(a as u32));
    hash.add(u128::from(c as u32));
    hash.add(c as i64 as u128);
    hash.add(u128::from(c as u64));
    hash.add(u128::from((f64::INFINITY * b) as u64));
    hash.add((f64::NAN * b) as i64 as u128);
}

// The odd forms are the point: LLVM makes unordered predicates of them.
#[allow(clippy::double_comparisons, clippy::neg_cmp_op_on_partial_ord)]
#[inline(never)]
fn comparisons(a: f64, b: f64, hash: &mut Hash) {
    for answer in [a < b, a <= b, a == b, a != b, a >= b, a > b] {
        hash.flag(answer);
    }
    hash.flag(a < b || a > b);
    hash.flag(!(a < b || a > b));
    hash.flag(!(a < b));
    hash.flag(!(a >= b));
    hash.flag(a.is_nan());
    let (x, y) = (a as f32, b as f32);
    for answer in [x < y, x <= y, x == y, x != y, x >= y, x > y] {
        hash.flag(answer);
    }
    hash.add(match a.partial_cmp(&b) {
        None => 3,
        Some(order) => order as i8 as u128,
    });
}

#[inline(never)]
fn from_integers(word: u64, hash: &mut Hash) {
    for value in [
        word as f64,
        word as i64 as f64,
        f64::from(word as u32),
        f64::from(word as i32),
        f64::from(word as u16),
        f64::from(word as i16),
        f64::from(word as u8),
        f64::from(word as i8),
    ] {
        hash.add(u128::from(value.to_bits()));
    }
    for value in [
        word as f32,
        word as i64 as f32,
        word as u32 as f32,
        f32::from(word as i8),
    ] {
        hash.add(u128::from(value.to_bits()));
    }
}
