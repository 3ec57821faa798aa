"""Writers and opcode check on hand-made programs; V0 images run in the embedded chain's VM."""

import struct

import pytest
from solders.instruction import Instruction
from support.bare_machine import BareMachine
from troth_toolchain.elf import image_v0, image_v3, opcodes
from troth_toolchain.elf import object as elf_object
from troth_toolchain.elf.program import LoadAddress, Place, Pointer, Program, Syscall
from troth_toolchain.elf.syscalls import SYSCALLS, murmur3_32
from troth_toolchain.errors import LinkError

CALL, CALLX, EXIT, LDDW, LOAD64, MOVE = 0x85, 0x8D, 0x95, 0x18, 0x79, 0xB7


def instruction(code, target=0, source=0, offset=0, value=0):
    return struct.pack("<BBhi", code, source << 4 | target, offset, value)


def load_address(register):
    return instruction(LDDW, register) + instruction(0)


def hello():
    """Log "hi there" through a pointer that lies in the read-only data, and succeed."""
    text = (
        load_address(1)  # r1 = &pointer
        + instruction(LOAD64, 1, 1)  # r1 = *r1
        + instruction(MOVE, 2, value=8)
        + instruction(CALL, value=-1)  # sol_log_
        + load_address(3)  # r3 = &tail
        + instruction(CALLX, 3)
        + instruction(EXIT)
    )
    tail_at = len(text)
    text += instruction(MOVE, 0, value=0) + instruction(EXIT)
    return Program(
        text=bytearray(text),
        rodata=bytearray(b"hi there" + bytes(8)),
        entry=0,
        loads=[LoadAddress(0, Place("rodata", 8)), LoadAddress(40, Place("text", tail_at))],
        pointers=[Pointer(8, Place("rodata", 0))],
        syscalls=[Syscall(32, "sol_log_")],
        functions={0: "entrypoint", tail_at: "tail"},
    )


def run(image):
    machine = BareMachine(image)
    return machine.run(Instruction(machine.program, b"", []))


def test_v0_image_runs_with_pointers_calls_and_syscalls():
    result = run(image_v0.write(hello()))
    assert "Program log: hi there" in result.logs()


def test_a_v0_image_with_a_wrong_pointer_does_not_run():
    program = hello()
    program.pointers[0] = Pointer(8, Place("rodata", 4096))
    result = run(image_v0.write(program))
    assert "hi there" not in str(result.meta().logs())


def test_v0_header_and_sections():
    image = image_v0.write(hello())
    assert image[:7] == b"\x7fELF\x02\x01\x01"
    kind, machine, _, entry = struct.unpack_from("<HHIQ", image, 16)
    assert kind == 3
    assert machine == 247
    (table,) = struct.unpack_from("<Q", image, 40)
    entry_bytes, count, names_index = struct.unpack_from("<HHH", image, 58)
    rows = [struct.unpack_from("<IIQQQQIIQQ", image, table + i * entry_bytes) for i in range(count)]
    names = rows[names_index][4]
    sections = {
        image[names + row[0] : image.index(b"\0", names + row[0])].decode(): row for row in rows
    }
    assert set(sections) == {
        *("", ".text", ".rodata", ".dynamic", ".dynsym", ".dynstr", ".rel.dyn", ".shstrtab")
    }
    text = sections[".text"]
    assert text[3] == text[4] == entry, "V0 wants addresses equal to file offsets"
    assert sections[".rel.dyn"][5] == 16, "only the syscall is left to the loader"
    assert table + count * entry_bytes == len(image)


def test_a_program_without_data_or_relocations_is_possible():
    program = Program(
        text=bytearray(instruction(MOVE, 0) + instruction(EXIT)), functions={0: "entrypoint"}
    )
    assert "success" in run(image_v0.write(program)).logs()[-1]


def test_writers_do_not_change_the_program():
    program = hello()
    before = bytes(program.text + program.rodata)
    assert image_v0.write(program) == image_v0.write(program)
    image_v3.write(program)
    assert bytes(program.text + program.rodata) == before


def test_v3_image_has_two_segments_and_nothing_to_relocate():
    program = hello()
    image = image_v3.write(program)
    flags, count = struct.unpack_from("<I", image, 48)[0], struct.unpack_from("<H", image, 56)[0]
    assert flags == 3
    assert count == 2
    (entry,) = struct.unpack_from("<Q", image, 24)
    assert entry == 1 << 32
    text = image[-len(program.text) :]
    assert struct.unpack_from("<I", text, 32 + 4)[0] == murmur3_32(b"sol_log_")
    low, high = struct.unpack_from("<I4xI", text, 40 + 4)
    assert low == len(program.text) - 16
    assert high == 1
    rodata = image[64 + 2 * 56 :][: len(program.rodata)]
    assert struct.unpack_from("<Q", rodata, 8) == (0,)
    assert len(image) == 64 + 2 * 56 + len(program.rodata) + len(program.text)


@pytest.mark.parametrize("code", [0x06, 0x1E, 0xC3, 0xDB, 0x8F, 0x00, 0xD7])
def test_opcodes_outside_the_allow_list_are_refused_with_their_function(code):
    program = hello()
    program.text[-16:-8] = instruction(code)
    with pytest.raises(LinkError, match=rf"opcode {code:#04x} is not in sBPF V0.* in tail"):
        image_v0.write(program)


@pytest.mark.parametrize("code", [0x37, 0x3F, 0x97, 0xB7, 0xBF])
def test_signed_forms_hidden_in_the_offset_are_refused(code):
    program = hello()
    program.text[-16:-8] = instruction(code, offset=1)
    with pytest.raises(LinkError, match="signed form"):
        image_v0.write(program)


def test_the_second_half_of_a_wide_load_is_not_taken_for_an_opcode():
    program = hello()
    program.text[8] = 0  # the half of lddw that holds no opcode
    opcodes.check(program, 0)


def test_jumps_on_32_bits_exist_in_v3_only():
    program = Program(text=bytearray(instruction(0x16) + instruction(EXIT)), functions={0: "f"})
    opcodes.check(program, 3)
    with pytest.raises(LinkError):
        opcodes.check(program, 0)


def test_murmur_hash_of_a_known_syscall():
    # The keys that the runtime registers for `abort` and `sol_log_`.
    assert murmur3_32(b"abort") == 0xB6FC1A11
    assert murmur3_32(b"sol_log_") == 0x207559BD
    assert len({murmur3_32(name.encode()) for name in SYSCALLS}) == len(SYSCALLS)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "expected a 64-bit"),
        (b"BC\xc0\xde" * 40, "expected a 64-bit"),
        (b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 2, 62) + bytes(60), "machine 62"),
        (
            b"\x7fELF\x02\x01\x01"
            + bytes(9)
            + struct.pack("<HHIQQQ", 1, 247, 1, 0, 0, 5000)
            + struct.pack("<IHHHHHH", 0, 64, 0, 0, 64, 9, 1),
            "damaged",
        ),
    ],
)
def test_objects_of_another_kind_are_refused(data, message):
    with pytest.raises(LinkError, match=message):
        elf_object.parse(data)
