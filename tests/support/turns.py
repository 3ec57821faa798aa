"""Turns of housekeeping as a test wants them, in the place of `is_our_turn`."""


def always(*_about: object) -> bool:
    """It is always our turn."""
    return True


def never(*_about: object) -> bool:
    """It is never anybody's turn."""
    return False
