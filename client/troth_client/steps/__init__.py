"""The steps of a round, one function each; `troth_client.round` calls them in order."""
