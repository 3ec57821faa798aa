"""Each rewrite rule on a small piece of IR, and the table as a whole through LLVM's own parser."""

import subprocess
from pathlib import Path

import pytest
from troth_toolchain import image
from troth_toolchain.compilers import tool
from troth_toolchain.errors import RewriteError
from troth_toolchain.ir import module
from troth_toolchain.ir.floats import SOFT_FLOAT
from troth_toolchain.ir.rules import RULES

HELPERS = [path.read_text() for path in sorted(image.RUNTIME.glob("*.ll"))]


def rewritten(*body, parameters="", declared=()):
    """Rewrite one function; returns the lines of its body and the rules that fired."""
    lines = [f"declare void @{name}()" for name in declared]
    lines += [f"define void @f({parameters}) {{", "start:", *body, "  ret void", "}"]
    result = module.rewrite("\n".join(lines), HELPERS)
    text = result.text.split("define ")[1]
    return text.split("\n}")[0].splitlines()[1:], dict(result.num_fired)


def only(*body, **options):
    lines, fired = rewritten(*body, **options)
    assert lines[0] == "start:"
    assert lines[-1] == "  ret void"
    return [line.strip() for line in lines[1:-1]], fired


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "%x = mul nuw i128 %a, %b",
            "%x = call i128 @__sbpf_mul128(i128 %a, i128 %b)",
        ),
        ("%x = sdiv exact i16 %a, 3", "%x = call i16 @__sbpf_sdiv16(i16 %a, i16 3)"),
        ("%x = urem i128 %a, %b", "%x = call i128 @__sbpf_urem128(i128 %a, i128 %b)"),
        ("%x = lshr exact i128 %a, %n", "%x = call i128 @__sbpf_lshr128(i128 %a, i128 %n)"),
        (
            "%x = tail call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %a, i64 %b)",
            "%x = tail call { i64, i1 } @__sbpf_smulo64(i64 %a, i64 %b)",
        ),
    ],
)
def test_integer_rules(line, expected):
    assert only(f"  {line}")[0] == [expected]


@pytest.mark.parametrize(
    "line",
    [
        "%x = mul i64 %a, %b",
        "%x = udiv i64 %a, %b",
        "%x = lshr i128 %a, 64",
        "%x = add i128 %a, %b",
        "%x = call { i32, i1 } @llvm.umul.with.overflow.i32(i32 %a, i32 %b)",
        "call void @llvm.memcpy.p0.p0.i64(ptr align 8 %a, ptr align 8 %b, i64 64, i1 false)",
        "call void @g(i64 1, i64 2, i64 3, i64 4, i64 5)",
    ],
)
def test_what_the_machine_can_do_is_left_alone(line):
    lines, fired = only(f"  {line}")
    assert lines == [line]
    assert fired == {}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "%x = fadd fast double %a, 1.0",
            ["%x = call double @__adddf3(double %a, double 1.0)"],
        ),
        ("%x = uitofp i64 %a to float", ["%x = call float @__floatundisf(i64 %a)"]),
        (
            "%x = sitofp i8 %a to double",
            [
                "%troth.wide.1 = sext i8 %a to i32",
                "%x = call double @__floatsidf(i32 %troth.wide.1)",
            ],
        ),
        ("%x = fptosi float %a to i32", ["%x = call i32 @__fixsfsi(float %a)"]),
        (
            "%x = tail call range(i64 0, 9) i64 @llvm.fptoui.sat.i64.f64(double %a)",
            ["%x = call i64 @__fixunsdfdi(double %a)"],
        ),
        ("%x = fptrunc double %a to float", ["%x = call float @__truncdfsf2(double %a)"]),
    ],
)
def test_float_rules(line, expected):
    names = [name for name in SOFT_FLOAT if any(f"@{name}(" in each for each in expected)]
    assert only(f"  {line}", declared=names)[0] == expected


def test_unordered_comparison_is_the_ordered_one_turned_round():
    lines, _ = only("  %x = fcmp ult double %a, %b", declared=["__gedf2"])
    assert lines == [
        "%troth.compare.1 = call i32 @__gedf2(double %a, double %b)",
        "%x = icmp slt i32 %troth.compare.1, 0",
    ]


def test_one_and_ueq_ask_twice():
    lines, _ = only("  %x = fcmp one float %a, %b", declared=["__ltsf2", "__gtsf2"])
    assert len(lines) == 5
    assert lines[-1] == "%x = or i1 %troth.compare.1, %troth.compare.2"


@pytest.mark.parametrize(
    "line",
    [
        "%x = fadd half %a, %b",
        "%x = uitofp i128 %a to double",
        "%x = call i16 @llvm.fptosi.sat.i16.f64(double %a)",
        "%x = fcmp true double %a, %b",
    ],
)
def test_unsupported_float_operations_are_named(line):
    with pytest.raises(RewriteError, match="rule float"):
        only(f"  {line}")


def test_missing_soft_float_function_is_named():
    with pytest.raises(RewriteError, match="@__adddf3 in the program's bitcode"):
        only("  %x = fadd double %a, %b")


def test_long_copies_become_syscalls():
    lines, fired = only(
        "  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %a, ptr align 8 "
        "getelementptr inbounds (i8, ptr @x, i64 8), i64 %n, i1 false), !noalias !3",
        "  tail call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 400, i1 false)",
        "  call void @llvm.memmove.p0.p0.i64(ptr align 8 %a, ptr align 8 %b, i64 8, i1 false)",
    )
    assert lines == [
        "call void @sol_memcpy_(ptr %a, ptr getelementptr inbounds (i8, ptr @x, i64 8), i64 %n)",
        "call void @sol_memset_(ptr %a, i8 0, i64 400)",
        "call void @sol_memmove_(ptr %a, ptr %b, i64 8)",
    ]
    assert fired == {"memory-syscall": 3}


def test_trap_aborts():
    assert only("  tail call void @llvm.trap()")[0] == ["call void @abort()"]


def test_sret_is_dropped_from_definitions_and_calls():
    lines, fired = rewritten(
        "  call void @g(ptr dead_on_unwind sret([16 x i8]) align 8 %r)",
        parameters="ptr noalias sret({ i64, [2 x i8] }) align 8 %out",
    )
    assert "sret" not in "".join(lines)
    assert "call void @g(ptr dead_on_unwind align 8 %r)" in lines[1]
    assert fired == {"sret": 2}


def test_stack_arguments_of_a_call():
    lines, _ = only(
        "  %x = tail call i64 @g(i64 1, i128 %w, ptr nonnull %p, i64 noundef %a, i64 %b)"
    )
    assert lines == [
        "%troth.area.1 = alloca [16 x i8], align 8",
        "%troth.slot.2 = getelementptr i8, ptr %troth.area.1, i64 0",
        "store i64 %a, ptr %troth.slot.2, align 8",
        "%troth.slot.3 = getelementptr i8, ptr %troth.area.1, i64 8",
        "store i64 %b, ptr %troth.slot.3, align 8",
        "%x = call i64 @g(i64 1, i128 %w, ptr nonnull %p, ptr %troth.area.1)",
    ]


def test_stack_arguments_of_a_definition_agree_with_calls_through_pointers():
    parameters = "ptr %p, i64 %a, i64 %b, i64 %c, i64 %d, i32 signext %e"
    text = f"define void @f({parameters}) {{\nstart:\n  ret void\n}}"
    lines = module.rewrite(text, HELPERS).text.splitlines()
    assert lines[0] == "define void @f(ptr %p, i64 %a, i64 %b, i64 %c, ptr %troth.stack) {"
    assert "  %d = load i64, ptr %troth.slot.1, align 8" in lines
    assert "  %e = load i32, ptr %troth.slot.2, align 8" in lines
    call, _ = only("  call void %p(ptr %p, i64 1, i64 2, i64 3, i64 4, i32 5)")
    assert call[-1] == "call void %p(ptr %p, i64 1, i64 2, i64 3, ptr %troth.area.1)"


def test_external_functions_with_too_many_arguments_are_refused():
    with pytest.raises(RewriteError, match="@far"):
        module.rewrite("declare void @far(i64, i64, i64, i64, i64, i64)", HELPERS)


def test_minimal_size_becomes_small_size():
    text = "attributes #0 = { cold minsize nounwind }\nattributes #1 = { optsize }\n"
    result = module.rewrite(text, HELPERS)
    assert "attributes #0 = { cold optsize nounwind }" in result.text
    assert result.num_fired["minimal-size"] == 1


def test_memory_effects_are_forgotten():
    text = "attributes #3 = { nounwind memory(none) optsize }"
    assert module.rewrite(text, HELPERS).text.strip() == ("attributes #3 = { nounwind optsize }")


def test_constants_that_look_like_instructions_are_not_touched():
    text = '@s = constant [30 x i8] c"  %x = mul i128 %a, %b ; call"'
    assert module.rewrite(text, HELPERS).text.strip() == text


def test_table_has_unique_names_and_reasons():
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.why and rule.opcodes for rule in RULES)


EVERYTHING = """
@data = private constant [16 x i8] zeroinitializer
declare double @__adddf3(double, double)
declare i32 @__ltdf2(double, double)
declare i32 @__gtdf2(double, double)
define i128 @wide(i128 %a, i128 %b, i64 %s, i64 %t) #0 {
start:
  %x = mul i128 %a, %b
  %y = sdiv i128 %x, %b
  %z = shl i128 %y, %b
  %o = call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %s, i64 %t)
  %q = call { i128, i1 } @llvm.umul.with.overflow.i128(i128 %a, i128 %z)
  %v = extractvalue { i128, i1 } %q, 0
  ret i128 %v
}
define void @main(ptr sret([16 x i8]) %out, double %d, i64 %n) {
start:
  %w = call i128 @wide(i128 1, i128 2, i64 3, i64 4)
  call void @llvm.memcpy.p0.p0.i64(ptr %out, ptr @data, i64 %n, i1 false)
  %e = fadd double %d, 1.0
  %c = fcmp one double %e, %d
  br i1 %c, label %bad, label %good
bad:
  call void @llvm.trap()
  unreachable
good:
  ret void
}
declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)
declare { i128, i1 } @llvm.umul.with.overflow.i128(i128, i128)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1 immarg)
declare void @llvm.trap()
attributes #0 = { nounwind memory(none) }
"""


@pytest.mark.usefixtures("packaged_compilers")
def test_the_result_is_valid_ir(tmp_path: Path):
    source = tmp_path / "rewritten.ll"
    source.write_text(module.rewrite(EVERYTHING, HELPERS).text)
    helpers = sorted(image.RUNTIME.glob("*.ll"))
    linked = tmp_path / "linked.bc"
    subprocess.run([tool("llvm-link"), source, *helpers, "-o", linked], check=True)
    subprocess.run([tool("opt"), "-passes=verify", linked, "-o", "/dev/null"], check=True)
