//! Checked u64 arithmetic that ends in a named error. Nothing here saturates silently.

use anchor_lang::prelude::*;

use crate::errors::{refuse, CoordinatorError};

/// `a + b`, or `MathOverflow`.
pub fn add(a: u64, b: u64) -> Result<u64> {
    a.checked_add(b)
        .ok_or_else(|| refuse(CoordinatorError::MathOverflow))
}

/// `a - b`, or `MathOverflow`.
pub fn sub(a: u64, b: u64) -> Result<u64> {
    a.checked_sub(b)
        .ok_or_else(|| refuse(CoordinatorError::MathOverflow))
}

/// `a * b`, or `MathOverflow`.
pub fn mul(a: u64, b: u64) -> Result<u64> {
    a.checked_mul(b)
        .ok_or_else(|| refuse(CoordinatorError::MathOverflow))
}

/// `floor(a / b)`, or `MathOverflow` for b = 0.
pub fn div(a: u64, b: u64) -> Result<u64> {
    a.checked_div(b)
        .ok_or_else(|| refuse(CoordinatorError::MathOverflow))
}

/// `a mod b`, or `MathOverflow` for b = 0.
pub fn rem(a: u64, b: u64) -> Result<u64> {
    a.checked_rem(b)
        .ok_or_else(|| refuse(CoordinatorError::MathOverflow))
}
