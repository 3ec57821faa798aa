"""The little grammar of IR lines."""

import pytest
from support.fields import assert_fields
from troth_toolchain.errors import RewriteError
from troth_toolchain.ir import text

CALL = (
    "  %r = tail call fastcc noundef range(i64 0, 5) i64 @f(ptr noalias align 8 "
    "captures(address, read_provenance) dereferenceable(16) %a, "
    'ptr getelementptr inbounds (i8, ptr @"odd, name(", i64 8), i64 noundef range(i64 0, 9) %b) #4'
)


def test_call_is_cut_at_its_arguments_and_printed_again():
    call = text.parse_call(CALL)
    assert call is not None
    assert call.callee == "@f"
    assert [operand.type for operand in call.operands] == ["ptr", "ptr", "i64"]
    assert call.operands[1].value == 'getelementptr inbounds (i8, ptr @"odd, name(", i64 8)'
    assert call.operands[2].attributes == ("noundef", "range(i64 0, 9)")
    assert call.operands[0].value == "%a"
    assert str(call) == CALL


def test_calls_without_a_callee_name_or_with_variable_arguments_are_left_alone():
    assert text.parse_call('  call void asm sideeffect "", "r"(ptr %x)') is None
    assert text.parse_call("declare void @printf(ptr, ...)") is None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  %x = mul nuw i128 %a, %b", "mul"),
        ("  %x = tail call i64 @f()", "call"),
        ("  call void @f()", "call"),
        ("  store i64 %a, ptr %b, align 8", "store"),
        ('  %"odd = name" = sdiv i8 %a, %b', "sdiv"),
        ("define void @f() {", "define"),
        ("attributes #0 = { nounwind }", "attributes"),
        ("  ]", "]"),
    ],
)
def test_opcode(line, expected):
    assert text.opcode(line) == expected


def test_binary_drops_flags_and_metadata():
    parsed = text.parse_binary("  %x = mul nuw nsw i128 %a, 12345678901234567890, !dbg !7")
    assert_fields(parsed, result="%x", type="i128", left="%a", right="12345678901234567890")


def test_comparison_keeps_its_predicate():
    parsed = text.parse_binary("  %x = fcmp nnan olt double %a, %b", has_predicate=True)
    assert_fields(parsed, predicate="olt", type="double", right="%b")


def test_conversion():
    parsed = text.parse_conversion("  %x = uitofp nneg i64 %a to double")
    assert_fields(parsed, source="i64", value="%a", target="double")


@pytest.mark.parametrize(
    ("type_", "slots"),
    [
        *(("ptr", 1), ("i1", 1), ("i64", 1), ("i65", 2), ("i128", 2), ("i256", 4), ("double", 1)),
        *(("[3 x i64]", 3), ("{ i64, i1 }", 2), ("{ i64, { i128, ptr } }", 4)),
    ],
)
def test_argument_slots(type_, slots):
    assert text.num_slots(type_) == slots


def test_unknown_types_are_named():
    with pytest.raises(RewriteError, match="<4 x i32>"):
        text.num_slots("<4 x i32>")
