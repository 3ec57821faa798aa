"""From C through the whole link: what the loader would refuse is refused with its name."""

import struct
import subprocess

import pytest
from troth_toolchain import collect, image
from troth_toolchain.compilers import tool
from troth_toolchain.errors import LinkError

pytestmark = pytest.mark.usefixtures("packaged_compilers")

LOCAL_CALL = b"\x85\x10"
HEADER = """
typedef unsigned long u64;
extern u64 sol_log_64_(u64, u64, u64, u64, u64);
"""
ENTRY = "u64 entrypoint(const unsigned char *input) { return work(input[0]); }"


def bitcode(tmp_path, source):
    path = tmp_path / "program.c"
    path.write_text(HEADER + source)
    output = tmp_path / "program.bc"
    flags = ["-target", "bpfel", "-O1", "-emit-llvm", "-c", "-fno-builtin"]
    subprocess.run([tool("clang"), *flags, path, "-o", output], check=True)
    return output.read_bytes()


def link(tmp_path, source):
    return image.link(bitcode(tmp_path, source))


def test_a_program_links_for_both_versions(tmp_path):
    linked = link(
        tmp_path,
        "static const u64 table[2] = {5, 7};"
        "u64 work(u64 i) { return sol_log_64_(table[i & 1], i, 0, 0, 0); }" + ENTRY,
    )
    v0, v3 = image.write(linked, 0), image.write(linked, 3)
    assert v0 != v3
    assert [call.name for call in linked.program.syscalls] == ["sol_log_64_"]


def test_a_frequent_syscall_has_one_place_and_a_rare_one_is_called_directly(tmp_path):
    call = "sol_log_64_(i, i, 0, 0, 0);"
    rare = link(tmp_path, f"u64 work(u64 i) {{ {call * 2} return 0; }}" + ENTRY).program
    often = link(tmp_path, f"u64 work(u64 i) {{ {call * 5} return 0; }}" + ENTRY).program
    assert [each.name for each in rare.syscalls] == ["sol_log_64_"] * 2
    (shared,) = often.syscalls
    assert often.function_at(shared.at) == "sol_log_64_"
    assert shared.at == len(often.text) - 16
    local_calls = [
        at + 8 + 8 * struct.unpack_from("<i", often.text, at + 4)[0]
        for at in range(0, len(often.text), 8)
        if often.text[at : at + 2] == LOCAL_CALL
    ]
    assert local_calls == [shared.at] * 5


def test_writable_data_is_refused(tmp_path):
    with pytest.raises(LinkError, match=r"writable data \(\.(data|bss), 8 bytes\)"):
        link(tmp_path, "static volatile u64 n; u64 work(u64 i) { return n += i; }" + ENTRY)


def test_an_undefined_function_is_refused(tmp_path):
    with pytest.raises(LinkError, match="'printf', which is neither defined nor a syscall"):
        link(tmp_path, "u64 printf(u64); u64 work(u64 i) { return printf(i); }" + ENTRY)


def test_a_missing_entry_point_is_refused(tmp_path):
    with pytest.raises(LinkError, match="expected one function 'entrypoint', found 0"):
        link(tmp_path, "u64 work(u64 i) { return i; }")


def test_a_frame_that_is_too_big_is_refused_with_the_function(tmp_path):
    source = """
    extern u64 sol_log_(const void *, u64);
    u64 work(u64 i) { unsigned char big[5000]; big[i] = 1; return sol_log_(big, i); }
    """
    with pytest.raises(LinkError, match=r"(?s)work: .*stack.*frames are 4096 bytes"):
        link(tmp_path, source.replace("u64 work", "__attribute__((noinline)) u64 work") + ENTRY)


def test_explain_groups_equal_complaints():
    line = "error: <unknown>:0:0: in function foo i64 (i64): unsupported thing"
    assert "2 x foo: unsupported thing" in image.explain(f"{line}\n{line}\n")


def test_collect_reads_the_command_line_of_rustc():
    words = ["-o", "out.so", "--cpu", "v2", "-L", "dir", "a.o", "b.rlib", "-Os"]
    inputs, output = collect.parse([*words, "--export-symbols", "list", "c.o"])
    assert [str(path) for path in inputs] == ["a.o", "b.rlib", "c.o"]
    assert str(output) == "out.so"


def test_collect_links_archives_and_refuses_machine_code(tmp_path):
    (tmp_path / "program.bc").write_bytes(bitcode(tmp_path, "u64 work(u64 i) { return i; }"))
    member, archive = tmp_path / "program.o", tmp_path / "lib.rlib"
    (tmp_path / "program.bc").rename(member)
    (tmp_path / "lib.rmeta").write_text("not code")
    archiver = tool("llvm-ar")
    subprocess.run([archiver, "rc", archive, member, tmp_path / "lib.rmeta"], check=True)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    assert [path.name for path in collect.modules([archive], scratch, archiver)] == ["program.o"]

    native = tmp_path / "native.o"
    (tmp_path / "native.c").write_text("int native;")
    subprocess.run([tool("clang"), "-c", tmp_path / "native.c", "-o", native], check=True)
    with pytest.raises(SystemExit, match=r"native\.o .*is not LLVM bitcode: a C library\?"):
        collect.modules([native], scratch, archiver)
