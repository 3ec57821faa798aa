//! Prints the Anchor IDL (spec 0.1.0) of the program crate given as the only argument.
//!
//! It does the work of `anchor idl build`, without the Anchor command line. Anchor's builder runs
//! the crate's generated tests with `cargo` from PATH on the host.

use anchor_lang_idl::build::IdlBuilder;
use anyhow::{Context, Result};

fn main() -> Result<()> {
    let directory = std::env::args()
        .nth(1)
        .context("expected the directory of a program crate, found no argument")?;
    let idl = IdlBuilder::new()
        .program_path(directory.into())
        .skip_lint(true)
        .build()?;
    println!("{}", serde_json::to_string(&idl)?);
    Ok(())
}
