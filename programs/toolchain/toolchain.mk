# Included by the root Makefile. Needs Debian's compilers; says so and goes on where they are missing.
.PHONY: program program-check rust

# Without make's flags: with --jobs cargo would look for a jobserver that only make's own recipes have.
TOOLCHAIN := env -u MAKEFLAGS $(if $(wildcard $(BIN)/python),$(BIN)/python,python3) programs/toolchain/build.py
# Debian's tools by full path: cargo looks for its subcommands in ~/.cargo/bin first, where rustup
# may have put its own. A target directory of their own: no other compiler can read these files.
DEBIAN := env -u RUSTUP_TOOLCHAIN PATH=/usr/bin:/bin RUSTC=/usr/bin/rustc CARGO=/usr/bin/cargo \
  CARGO_TARGET_DIR=$(CURDIR)/target/packaged
RUST_CRATES := Cargo.toml programs/toolchain/idl/Cargo.toml tests/toolchain/differential/Cargo.toml

program: ## build the program's images, IDL, layout and build-info (packaged compilers)
	$(TOOLCHAIN) program

program-check: ## rebuild the program and compare it with the shipped files
	$(TOOLCHAIN) check

rust: ## format, lint and tests of the Rust sources (packaged compilers)
	@if [ ! -x /usr/bin/cargo-clippy ] || [ ! -x /usr/bin/cargo-fmt ]; then \
	  echo "rust: skipped, expected /usr/bin/cargo-clippy and cargo-fmt; install cargo-web rust-web-clippy rustfmt-web"; \
	else set -e; for manifest in $(RUST_CRATES); do \
	  $(DEBIAN) /usr/bin/cargo-fmt fmt --check --manifest-path $$manifest; \
	  $(DEBIAN) /usr/bin/cargo-clippy clippy --quiet --locked --all-targets --manifest-path $$manifest -- -D warnings; \
	done; $(DEBIAN) /usr/bin/cargo test --quiet --locked; fi
