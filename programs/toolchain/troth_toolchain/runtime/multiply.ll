; Wide and checked multiplication out of 64-bit operations. The machine has no high half of a
; 64-bit product, so it is put together from 32-bit limbs. All inlined into the caller.

define i128 @__sbpf_mul128(i128 %a, i128 %b) alwaysinline {
  %al = trunc i128 %a to i64
  %as = lshr i128 %a, 64
  %ah = trunc i128 %as to i64
  %bl = trunc i128 %b to i64
  %bs = lshr i128 %b, 64
  %bh = trunc i128 %bs to i64
  %a0 = and i64 %al, 4294967295
  %a1 = lshr i64 %al, 32
  %b0 = and i64 %bl, 4294967295
  %b1 = lshr i64 %bl, 32
  %p00 = mul i64 %a0, %b0
  %p01 = mul i64 %a0, %b1
  %p10 = mul i64 %a1, %b0
  %p11 = mul i64 %a1, %b1
  %c0 = lshr i64 %p00, 32
  %m0 = and i64 %p01, 4294967295
  %m1 = and i64 %p10, 4294967295
  %s0 = add i64 %c0, %m0
  %mid = add i64 %s0, %m1
  %l0 = and i64 %p00, 4294967295
  %l1 = shl i64 %mid, 32
  %lo = or i64 %l0, %l1
  %h0 = lshr i64 %p01, 32
  %h1 = lshr i64 %p10, 32
  %h2 = lshr i64 %mid, 32
  %h3 = add i64 %p11, %h0
  %h4 = add i64 %h3, %h1
  %h5 = add i64 %h4, %h2
  %x0 = mul i64 %al, %bh
  %x1 = mul i64 %ah, %bl
  %x2 = add i64 %x0, %x1
  %hi = add i64 %h5, %x2
  %lz = zext i64 %lo to i128
  %hz = zext i64 %hi to i128
  %hs = shl i128 %hz, 64
  %r = or i128 %hs, %lz
  ret i128 %r
}

define i256 @__sbpf_mul256(i256 %a, i256 %b) alwaysinline {
  %as0 = lshr i256 %a, 0
  %at0 = trunc i256 %as0 to i64
  %a0 = zext i64 %at0 to i128
  %as1 = lshr i256 %a, 64
  %at1 = trunc i256 %as1 to i64
  %a1 = zext i64 %at1 to i128
  %as2 = lshr i256 %a, 128
  %at2 = trunc i256 %as2 to i64
  %a2 = zext i64 %at2 to i128
  %as3 = lshr i256 %a, 192
  %at3 = trunc i256 %as3 to i64
  %a3 = zext i64 %at3 to i128
  %bs0 = lshr i256 %b, 0
  %bt0 = trunc i256 %bs0 to i64
  %b0 = zext i64 %bt0 to i128
  %bs1 = lshr i256 %b, 64
  %bt1 = trunc i256 %bs1 to i64
  %b1 = zext i64 %bt1 to i128
  %bs2 = lshr i256 %b, 128
  %bt2 = trunc i256 %bs2 to i64
  %b2 = zext i64 %bt2 to i128
  %bs3 = lshr i256 %b, 192
  %bt3 = trunc i256 %bs3 to i64
  %b3 = zext i64 %bt3 to i128
  %p00 = call i128 @__sbpf_mul128(i128 %a0, i128 %b0)
  %z00 = zext i128 %p00 to i256
  %q00 = shl i256 %z00, 0
  %p01 = call i128 @__sbpf_mul128(i128 %a0, i128 %b1)
  %z01 = zext i128 %p01 to i256
  %q01 = shl i256 %z01, 64
  %c01 = add i256 %q00, %q01
  %p02 = call i128 @__sbpf_mul128(i128 %a0, i128 %b2)
  %z02 = zext i128 %p02 to i256
  %q02 = shl i256 %z02, 128
  %c02 = add i256 %c01, %q02
  %p03 = call i128 @__sbpf_mul128(i128 %a0, i128 %b3)
  %z03 = zext i128 %p03 to i256
  %q03 = shl i256 %z03, 192
  %c03 = add i256 %c02, %q03
  %p10 = call i128 @__sbpf_mul128(i128 %a1, i128 %b0)
  %z10 = zext i128 %p10 to i256
  %q10 = shl i256 %z10, 64
  %c10 = add i256 %c03, %q10
  %p11 = call i128 @__sbpf_mul128(i128 %a1, i128 %b1)
  %z11 = zext i128 %p11 to i256
  %q11 = shl i256 %z11, 128
  %c11 = add i256 %c10, %q11
  %p12 = call i128 @__sbpf_mul128(i128 %a1, i128 %b2)
  %z12 = zext i128 %p12 to i256
  %q12 = shl i256 %z12, 192
  %c12 = add i256 %c11, %q12
  %p20 = call i128 @__sbpf_mul128(i128 %a2, i128 %b0)
  %z20 = zext i128 %p20 to i256
  %q20 = shl i256 %z20, 128
  %c20 = add i256 %c12, %q20
  %p21 = call i128 @__sbpf_mul128(i128 %a2, i128 %b1)
  %z21 = zext i128 %p21 to i256
  %q21 = shl i256 %z21, 192
  %c21 = add i256 %c20, %q21
  %p30 = call i128 @__sbpf_mul128(i128 %a3, i128 %b0)
  %z30 = zext i128 %p30 to i256
  %q30 = shl i256 %z30, 192
  %c30 = add i256 %c21, %q30
  ret i256 %c30
}

define { i64, i1 } @__sbpf_umulo64(i64 %a, i64 %b) alwaysinline {
  %x = zext i64 %a to i128
  %y = zext i64 %b to i128
  %p = call i128 @__sbpf_mul128(i128 %x, i128 %y)
  %lo = trunc i128 %p to i64
  %hs = lshr i128 %p, 64
  %hi = trunc i128 %hs to i64
  %o = icmp ne i64 %hi, 0
  %r0 = insertvalue { i64, i1 } poison, i64 %lo, 0
  %r1 = insertvalue { i64, i1 } %r0, i1 %o, 1
  ret { i64, i1 } %r1
}

define { i128, i1 } @__sbpf_umulo128(i128 %a, i128 %b) alwaysinline {
  %x = zext i128 %a to i256
  %y = zext i128 %b to i256
  %p = call i256 @__sbpf_mul256(i256 %x, i256 %y)
  %lo = trunc i256 %p to i128
  %hs = lshr i256 %p, 128
  %hi = trunc i256 %hs to i128
  %o = icmp ne i128 %hi, 0
  %r0 = insertvalue { i128, i1 } poison, i128 %lo, 0
  %r1 = insertvalue { i128, i1 } %r0, i1 %o, 1
  ret { i128, i1 } %r1
}

define { i64, i1 } @__sbpf_smulo64(i64 %a, i64 %b) alwaysinline {
  %x = sext i64 %a to i128
  %y = sext i64 %b to i128
  %p = call i128 @__sbpf_mul128(i128 %x, i128 %y)
  %lo = trunc i128 %p to i64
  %e = sext i64 %lo to i128
  %o = icmp ne i128 %e, %p
  %r0 = insertvalue { i64, i1 } poison, i64 %lo, 0
  %r1 = insertvalue { i64, i1 } %r0, i1 %o, 1
  ret { i64, i1 } %r1
}

define { i128, i1 } @__sbpf_smulo128(i128 %a, i128 %b) alwaysinline {
  %x = sext i128 %a to i256
  %y = sext i128 %b to i256
  %p = call i256 @__sbpf_mul256(i256 %x, i256 %y)
  %lo = trunc i256 %p to i128
  %e = sext i128 %lo to i256
  %o = icmp ne i256 %e, %p
  %r0 = insertvalue { i128, i1 } poison, i128 %lo, 0
  %r1 = insertvalue { i128, i1 } %r0, i1 %o, 1
  ret { i128, i1 } %r1
}
