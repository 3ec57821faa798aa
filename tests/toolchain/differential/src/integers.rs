//! Integer operations of all widths, with checked, wrapping and saturating forms.

use crate::random::{Hash, Random};

/// Up to 64 bits.
#[inline(never)]
pub fn narrow(random: &mut Random, hash: &mut Hash) {
    let (a, b) = (random.short(), random.short());
    let (sa, sb) = (a as i64, b as i64);
    hash.add(a.checked_mul(b).map_or(1, u128::from));
    hash.add(sa.checked_mul(sb).map_or(2, |x| x as u128));
    hash.add((a as u32).checked_mul(b as u32).map_or(3, u128::from));
    hash.add((sa as i32).checked_mul(sb as i32).map_or(4, |x| x as u128));
    hash.add(u128::from(a.saturating_mul(b)));
    hash.add(sa.saturating_mul(sb) as u128);
    hash.add(sa.saturating_add(sb) as u128);
    hash.flag(a.overflowing_sub(b).1);
    hash.add(u128::from(a.abs_diff(b)));
    hash.add(a.checked_pow(3).map_or(5, u128::from));
    hash.add(u128::from(a.isqrt()));
    hash.add((u128::from(a) * u128::from(b)) >> 17);
    signed_division(sa, sb, hash);
    bits(a, b, hash);
}

#[inline(never)]
fn signed_division(a: i64, b: i64, hash: &mut Hash) {
    let divisor = b | 1;
    // Remainders by another number: LLVM would otherwise make them from the quotient.
    let other = b.rotate_right(9) | 1;
    hash.add(a.wrapping_div(divisor) as u128);
    hash.add(a.wrapping_rem(other) as u128);
    hash.add(a.div_euclid(divisor | 2) as u128);
    hash.add((a as i32).wrapping_div(divisor as i32) as u128);
    hash.add((a as i32).wrapping_rem(other as i32) as u128);
    hash.add((a as i16).wrapping_div(divisor as i16) as u128);
    hash.add((a as i16).wrapping_rem(other as i16) as u128);
    hash.add((a as i8).wrapping_div(divisor as i8) as u128);
    hash.add((a as i8).wrapping_rem(other as i8) as u128);
    hash.add(u128::from((a as u32).wrapping_div(divisor as u32)));
    hash.add(u128::from((a as u16) / (divisor as u16)));
    hash.add((a / 7) as u128);
    hash.add((a % 1_000_003) as u128);
}

#[inline(never)]
fn bits(a: u64, b: u64, hash: &mut Hash) {
    hash.add((a as i8).wrapping_shr(b as u32) as u128);
    hash.add((a as i64).wrapping_shr(b as u32) as u128);
    hash.add(i64::from(a as i16) as u128);
    hash.add(u128::from(a.leading_zeros()) + u128::from(a.trailing_zeros()) * 100);
    hash.add(u128::from(a.count_ones()));
    hash.add(u128::from(a.swap_bytes()));
    hash.add(u128::from((a as u32).reverse_bits()));
    hash.add(u128::from((a as u16).rotate_left(b as u32 & 15)));
    hash.add(u128::from(a.rotate_right(b as u32 & 63)));
}

/// 128 bits.
#[inline(never)]
pub fn wide(random: &mut Random, hash: &mut Hash) {
    let (a, b) = (random.wide(), random.wide());
    let (sa, sb) = (a as i128, b as i128);
    hash.add(a.wrapping_mul(b));
    hash.add(a.checked_mul(b).unwrap_or(5));
    hash.add(sa.checked_mul(sb).unwrap_or(6) as u128);
    hash.add(a.checked_add(b).unwrap_or(7));
    hash.add(sa.checked_sub(sb).unwrap_or(8) as u128);
    hash.add(a.checked_pow(3).unwrap_or(9));
    hash.add(u128::from(a.leading_zeros()));
    hash.flag(a > b);
    hash.flag(sa < sb);
    hash.add(a.isqrt());
    let short = u128::from(random.short() as u32 | 1);
    hash.add(a / short);
    hash.add(b % short);
    hash.add(a / 1_000_000);
    wide_division(a, b | 1, hash);
    wide_shifts(a, (random.word() % 128) as u32, hash);
}

#[inline(never)]
fn wide_division(a: u128, divisor: u128, hash: &mut Hash) {
    let other = divisor.rotate_right(40) | 1;
    hash.add(a / divisor);
    hash.add(a % other);
    hash.add((a as i128).wrapping_div(divisor as i128) as u128);
    hash.add((a as i128).wrapping_rem(other as i128) as u128);
}

#[inline(never)]
fn wide_shifts(a: u128, by: u32, hash: &mut Hash) {
    hash.add(a << by);
    hash.add(a >> by);
    hash.add(((a as i128) >> by) as u128);
    hash.add(((!a as i128) >> by) as u128);
    hash.add(a.rotate_left(by));
}
