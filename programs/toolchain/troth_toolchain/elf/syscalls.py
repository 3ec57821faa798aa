"""The runtime's syscalls: their names and the hash by which V3 images call them.

Next: `program.py` refuses undefined functions that are not in this list.
"""

import struct

SYSCALLS = frozenset(
    [
        "abort",
        "sol_panic_",
        "sol_log_",
        "sol_log_64_",
        "sol_log_compute_units_",
        "sol_log_pubkey",
        "sol_log_data",
        "sol_memcpy_",
        "sol_memmove_",
        "sol_memcmp_",
        "sol_memset_",
        "sol_create_program_address",
        "sol_try_find_program_address",
        "sol_invoke_signed_c",
        "sol_invoke_signed_rust",
        "sol_set_return_data",
        "sol_get_return_data",
        "sol_get_stack_height",
        "sol_get_processed_sibling_instruction",
        "sol_remaining_compute_units",
        "sol_sha256",
        "sol_keccak256",
        "sol_blake3",
        "sol_poseidon",
        "sol_secp256k1_recover",
        "sol_big_mod_exp",
        "sol_curve_validate_point",
        "sol_curve_group_op",
        "sol_curve_multiscalar_mul",
        "sol_alt_bn128_group_op",
        "sol_alt_bn128_compression",
        "sol_get_clock_sysvar",
        "sol_get_epoch_schedule_sysvar",
        "sol_get_fees_sysvar",
        "sol_get_rent_sysvar",
        "sol_get_last_restart_slot",
        "sol_get_epoch_rewards_sysvar",
        "sol_get_sysvar",
        "sol_get_epoch_stake",
    ]
)

_MASK = 0xFFFFFFFF


def murmur3_32(data: bytes) -> int:
    """MurmurHash3 (x86, 32 bits, seed 0), the hash that names syscalls and internal functions."""
    state = 0
    whole = len(data) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        state ^= _scramble(word)
        state = (_rotate(state, 13) * 5 + 0xE6546B64) & _MASK
    if len(data) > whole:
        state ^= _scramble(int.from_bytes(data[whole:], "little"))
    state ^= len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = ((state ^ state >> shift) * factor) & _MASK
    return state ^ state >> 16


def _scramble(word: int) -> int:
    return _rotate(word * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK
