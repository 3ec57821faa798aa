# Included by the root Makefile. Needs Debian's compilers; says so and goes on where they are missing.
.PHONY: program program-check rust

TOOLCHAIN := $(if $(wildcard $(BIN)/python),$(BIN)/python,python3) programs/toolchain/build.py
# Debian's tools by full path, never rustup: cargo finds its subcommands and rustc through PATH.
DEBIAN_CARGO := env -u RUSTUP_TOOLCHAIN PATH=/usr/bin:/bin RUSTC=/usr/bin/rustc /usr/bin/cargo
RUST_CRATES := Cargo.toml programs/toolchain/idl/Cargo.toml tests/toolchain/differential/Cargo.toml

program: ## build the program's image, IDL, layout and build-info (packaged compilers)
	$(TOOLCHAIN) program

program-check: ## rebuild the program and compare it with the shipped files
	$(TOOLCHAIN) check

rust: ## format, lint and tests of the Rust sources (packaged compilers)
	@if [ ! -x /usr/bin/cargo-clippy ]; then \
	  echo "rust: skipped, expected /usr/bin/cargo-clippy; install cargo-web rust-web-clippy rustfmt-web"; \
	else set -e; for manifest in $(RUST_CRATES); do \
	  $(DEBIAN_CARGO) fmt --check --manifest-path $$manifest; \
	  $(DEBIAN_CARGO) clippy --quiet --locked --all-targets --manifest-path $$manifest -- -D warnings; \
	done; $(DEBIAN_CARGO) test --quiet --locked; fi
