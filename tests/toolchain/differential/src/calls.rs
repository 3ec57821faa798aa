//! Calls whose arguments exceed five registers: direct, through pointers and trait objects.

use crate::random::{Hash, Random};

type Many = fn(u64, u8, i32, u128, &str, i64, u16) -> u128;

/// Trait objects with eight-argument methods that return aggregates.
pub trait Mix {
    #[allow(clippy::too_many_arguments)]
    fn mix(
        &self,
        a: u64,
        b: u64,
        c: u64,
        d: u64,
        e: u64,
        f: u64,
        g: u64,
        h: u64,
    ) -> (u64, u64, u64);
}

struct Scaled(u64);
struct Summed(u32, [u8; 40]);

impl Mix for Scaled {
    fn mix(
        &self,
        a: u64,
        b: u64,
        c: u64,
        d: u64,
        e: u64,
        f: u64,
        g: u64,
        h: u64,
    ) -> (u64, u64, u64) {
        (
            a ^ b.wrapping_mul(self.0),
            c.wrapping_add(d) ^ e,
            f.wrapping_sub(g) ^ h,
        )
    }
}

impl Mix for Summed {
    fn mix(
        &self,
        a: u64,
        b: u64,
        c: u64,
        d: u64,
        e: u64,
        f: u64,
        g: u64,
        h: u64,
    ) -> (u64, u64, u64) {
        let sum: u64 = self.1.iter().map(|x| u64::from(*x)).sum();
        (
            h ^ sum,
            g.wrapping_mul(u64::from(self.0)) ^ a ^ b,
            c ^ d ^ e ^ f,
        )
    }
}

/// One object of each implementation.
pub fn implementors(seed: u64) -> Vec<Box<dyn Mix>> {
    vec![
        Box::new(Scaled(seed)),
        Box::new(Summed(seed as u32, [7; 40])),
    ]
}

#[inline(never)]
fn direct(a: u64, b: u8, c: i32, d: u128, e: &str, f: i64, g: u16) -> u128 {
    u128::from(a)
        ^ u128::from(b) << 3
        ^ c as u128
        ^ d
        ^ (e.len() as u128) << 9
        ^ f as u128
        ^ u128::from(g) << 77
}

#[inline(never)]
fn nested(a: u64, b: u8, c: i32, d: u128, e: &str, f: i64, g: u16) -> u128 {
    let (b, c, d) = (b.wrapping_add(1), c.wrapping_mul(3), d.wrapping_add(7));
    direct(a.rotate_left(5), b, c, d, e, f.wrapping_sub(9), g ^ 0x55aa).wrapping_mul(3)
}

#[inline(never)]
fn with_floats(a: u64, b: f64, c: u128, d: [u64; 2], e: f32, f: bool) -> (u64, bool, f64) {
    let scaled = if f { b * f64::from(e) } else { b };
    (a ^ c as u64 ^ d[0].wrapping_sub(d[1]), !f, scaled)
}

#[inline(never)]
fn recursive(depth: u64, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> u64 {
    if depth == 0 {
        return a ^ b.rotate_left(1) ^ c.rotate_left(2) ^ d ^ e ^ f;
    }
    recursive(depth - 1, b, c, d, e, f, a.wrapping_mul(depth)).wrapping_add(f)
}

#[inline(never)]
pub fn calls(random: &mut Random, hash: &mut Hash, iteration: u32, objects: &[Box<dyn Mix>]) {
    let texts = ["", "a", "hello"];
    let chosen: Many = if iteration & 1 == 0 { direct } else { nested };
    let (a, b, c) = (random.word(), random.word() as u8, random.word() as i32);
    let (d, e) = (random.wide(), texts[random.below(3)]);
    hash.add(chosen(
        a,
        b,
        c,
        d,
        e,
        random.word() as i64,
        random.word() as u16,
    ));
    for object in objects {
        let w = [(); 8].map(|()| random.word());
        let (x, y, z) = object.mix(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]);
        hash.add(u128::from(x) ^ u128::from(y) << 64);
        hash.add(u128::from(z));
    }
    let pair = [random.word(), random.word()];
    let (x, y, z) = with_floats(a, 1.5, d, pair, 0.25, b & 1 == 0);
    hash.add(u128::from(x));
    hash.flag(y);
    hash.add(u128::from(z.to_bits()));
    hash.add(u128::from(recursive(5, a, pair[0], pair[1], 4, 5, 6)));
}
