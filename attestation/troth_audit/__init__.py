"""What happened on chain: records of audits, cases and slashes."""
