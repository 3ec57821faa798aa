"""A program on LiteSVM alone: its answers before the embedded chain looks at them.

Owns: the machine, a payer, and the x87 registers, which numpy needs in later tests of the process.
Never: checks what comes back. Next: troth_localnet/x87.py.
"""

from typing import Any

from solders.instruction import Instruction
from solders.keypair import Keypair
from solders.litesvm import LiteSVM
from solders.message import Message
from solders.pubkey import Pubkey
from solders.transaction import Transaction

from troth_localnet.x87 import empty_registers


class BareMachine:
    """An image at an address, and a payer with lamports."""

    def __init__(self, image: bytes, program: Pubkey | None = None) -> None:
        self.program = program or Pubkey.new_unique()
        self.payer = Keypair()
        self._machine = LiteSVM()
        self._machine.airdrop(self.payer.pubkey(), 10**13)
        self._machine.add_program(self.program, image)

    def run(self, *instructions: Instruction) -> Any:
        """Send one transaction; return the metadata of solders, of a failed one as well."""
        blockhash = self._machine.latest_blockhash()
        message = Message.new_with_blockhash(instructions, self.payer.pubkey(), blockhash)
        try:
            return self._machine.send_transaction(Transaction([self.payer], message, blockhash))
        finally:
            empty_registers()
