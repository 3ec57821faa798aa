; 128-bit division; the work is done by rt.c on values in memory, because two-register returns do
; not exist. A quotient of signed numbers has the sign of the exclusive or, a remainder that of the
; dividend.

declare void @__sbpf_udivrem_impl(ptr, ptr, ptr)

define i128 @__sbpf_udiv128(i128 %a, i128 %b) alwaysinline {
  %o = alloca [4 x i64], align 8
  %pa = alloca i128, align 8
  %pb = alloca i128, align 8
  store i128 %a, ptr %pa, align 8
  store i128 %b, ptr %pb, align 8
  call void @__sbpf_udivrem_impl(ptr %o, ptr %pa, ptr %pb)
  %r = load i128, ptr %o, align 8
  ret i128 %r
}

define i128 @__sbpf_urem128(i128 %a, i128 %b) alwaysinline {
  %o = alloca [4 x i64], align 8
  %pa = alloca i128, align 8
  %pb = alloca i128, align 8
  store i128 %a, ptr %pa, align 8
  store i128 %b, ptr %pb, align 8
  call void @__sbpf_udivrem_impl(ptr %o, ptr %pa, ptr %pb)
  %q = getelementptr i8, ptr %o, i64 16
  %r = load i128, ptr %q, align 8
  ret i128 %r
}

define i128 @__sbpf_sdiv128(i128 %a, i128 %b) alwaysinline {
  %na = icmp slt i128 %a, 0
  %ma = sub i128 0, %a
  %ua = select i1 %na, i128 %ma, i128 %a
  %nb = icmp slt i128 %b, 0
  %mb = sub i128 0, %b
  %ub = select i1 %nb, i128 %mb, i128 %b
  %q = call i128 @__sbpf_udiv128(i128 %ua, i128 %ub)
  %nq = sub i128 0, %q
  %s = xor i1 %na, %nb
  %r = select i1 %s, i128 %nq, i128 %q
  ret i128 %r
}

define i128 @__sbpf_srem128(i128 %a, i128 %b) alwaysinline {
  %na = icmp slt i128 %a, 0
  %ma = sub i128 0, %a
  %ua = select i1 %na, i128 %ma, i128 %a
  %nb = icmp slt i128 %b, 0
  %mb = sub i128 0, %b
  %ub = select i1 %nb, i128 %mb, i128 %b
  %q = call i128 @__sbpf_urem128(i128 %ua, i128 %ub)
  %nq = sub i128 0, %q
  %r = select i1 %na, i128 %nq, i128 %q
  ret i128 %r
}
