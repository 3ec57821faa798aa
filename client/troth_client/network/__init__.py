"""What comes from peers, checked before use."""
