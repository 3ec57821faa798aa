//! Reads the fields of a vector: hex, numbers, lists.

use serde_json::Value;

/// The bytes of a hex string.
pub fn bytes(value: &Value) -> Vec<u8> {
    let text = value.as_str().expect("hex").as_bytes();
    let byte = |pair: &[u8]| {
        std::str::from_utf8(pair)
            .ok()
            .map(|hex| u8::from_str_radix(hex, 16))
    };
    text.chunks(2)
        .map(|pair| byte(pair).expect("ASCII").expect("hex digits"))
        .collect()
}

/// Hex of a fixed length.
pub fn array<const N: usize>(value: &Value) -> [u8; N] {
    bytes(value).try_into().expect("length")
}

/// A digest as hex.
pub fn hex(digest: [u8; 32]) -> Value {
    digest
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>()
        .into()
}

/// An integer.
pub fn number(value: &Value) -> u64 {
    value.as_u64().expect("u64")
}

/// A participant index.
pub fn index(value: &Value) -> usize {
    number(value).try_into().expect("index")
}

/// An integer of a narrower type.
pub fn small<T: TryFrom<u64>>(value: &Value) -> T {
    T::try_from(number(value)).ok().expect("narrow integer")
}

/// A truth value.
pub fn flag(value: &Value) -> bool {
    value.as_bool().expect("true or false")
}

/// The elements of a list.
pub fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("list").iter()
}

/// A list of exactly three numbers.
pub fn three(value: &Value) -> [u64; 3] {
    numbers(value)
}

/// A list of exactly four numbers.
pub fn four(value: &Value) -> [u64; 4] {
    numbers(value)
}

fn numbers<const N: usize>(value: &Value) -> [u64; N] {
    let list: Vec<u64> = list(value).map(number).collect();
    list.try_into().expect("so many numbers")
}
