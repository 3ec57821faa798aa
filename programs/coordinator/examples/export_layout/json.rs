//! JSON text by hand: the layout has nothing that would need escaping.

/// `{"a": 1, "b": 2}` over several lines, values already JSON.
pub fn object(depth: usize, pairs: &[(String, String)]) -> String {
    let pad = "  ".repeat(depth);
    let lines: Vec<String> = pairs
        .iter()
        .map(|(key, value)| format!("{pad}  \"{key}\": {value}"))
        .collect();
    format!("{{\n{}\n{pad}}}", lines.join(",\n"))
}

/// The same with plain numbers.
pub fn numbers(depth: usize, pairs: &[(&str, u64)]) -> String {
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(key, value)| ((*key).to_string(), value.to_string()))
        .collect();
    object(depth, &pairs)
}

/// `numbers` with owned names.
pub fn named(list: &[(String, u64)]) -> String {
    let pairs: Vec<_> = list
        .iter()
        .map(|(name, number)| (name.as_str(), *number))
        .collect();
    numbers(2, &pairs)
}
