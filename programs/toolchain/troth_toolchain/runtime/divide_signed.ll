; Signed division of machine words: sBPF V0 to V3 have unsigned division only.

define i8 @__sbpf_sdiv8(i8 %a, i8 %b) alwaysinline {
  %na = icmp slt i8 %a, 0
  %ma = sub i8 0, %a
  %ua = select i1 %na, i8 %ma, i8 %a
  %nb = icmp slt i8 %b, 0
  %mb = sub i8 0, %b
  %ub = select i1 %nb, i8 %mb, i8 %b
  %q = udiv i8 %ua, %ub
  %nq = sub i8 0, %q
  %s = xor i1 %na, %nb
  %r = select i1 %s, i8 %nq, i8 %q
  ret i8 %r
}

define i8 @__sbpf_srem8(i8 %a, i8 %b) alwaysinline {
  %na = icmp slt i8 %a, 0
  %ma = sub i8 0, %a
  %ua = select i1 %na, i8 %ma, i8 %a
  %nb = icmp slt i8 %b, 0
  %mb = sub i8 0, %b
  %ub = select i1 %nb, i8 %mb, i8 %b
  %q = urem i8 %ua, %ub
  %nq = sub i8 0, %q
  %r = select i1 %na, i8 %nq, i8 %q
  ret i8 %r
}

define i16 @__sbpf_sdiv16(i16 %a, i16 %b) alwaysinline {
  %na = icmp slt i16 %a, 0
  %ma = sub i16 0, %a
  %ua = select i1 %na, i16 %ma, i16 %a
  %nb = icmp slt i16 %b, 0
  %mb = sub i16 0, %b
  %ub = select i1 %nb, i16 %mb, i16 %b
  %q = udiv i16 %ua, %ub
  %nq = sub i16 0, %q
  %s = xor i1 %na, %nb
  %r = select i1 %s, i16 %nq, i16 %q
  ret i16 %r
}

define i16 @__sbpf_srem16(i16 %a, i16 %b) alwaysinline {
  %na = icmp slt i16 %a, 0
  %ma = sub i16 0, %a
  %ua = select i1 %na, i16 %ma, i16 %a
  %nb = icmp slt i16 %b, 0
  %mb = sub i16 0, %b
  %ub = select i1 %nb, i16 %mb, i16 %b
  %q = urem i16 %ua, %ub
  %nq = sub i16 0, %q
  %r = select i1 %na, i16 %nq, i16 %q
  ret i16 %r
}

define i32 @__sbpf_sdiv32(i32 %a, i32 %b) alwaysinline {
  %na = icmp slt i32 %a, 0
  %ma = sub i32 0, %a
  %ua = select i1 %na, i32 %ma, i32 %a
  %nb = icmp slt i32 %b, 0
  %mb = sub i32 0, %b
  %ub = select i1 %nb, i32 %mb, i32 %b
  %q = udiv i32 %ua, %ub
  %nq = sub i32 0, %q
  %s = xor i1 %na, %nb
  %r = select i1 %s, i32 %nq, i32 %q
  ret i32 %r
}

define i32 @__sbpf_srem32(i32 %a, i32 %b) alwaysinline {
  %na = icmp slt i32 %a, 0
  %ma = sub i32 0, %a
  %ua = select i1 %na, i32 %ma, i32 %a
  %nb = icmp slt i32 %b, 0
  %mb = sub i32 0, %b
  %ub = select i1 %nb, i32 %mb, i32 %b
  %q = urem i32 %ua, %ub
  %nq = sub i32 0, %q
  %r = select i1 %na, i32 %nq, i32 %q
  ret i32 %r
}

define i64 @__sbpf_sdiv64(i64 %a, i64 %b) alwaysinline {
  %na = icmp slt i64 %a, 0
  %ma = sub i64 0, %a
  %ua = select i1 %na, i64 %ma, i64 %a
  %nb = icmp slt i64 %b, 0
  %mb = sub i64 0, %b
  %ub = select i1 %nb, i64 %mb, i64 %b
  %q = udiv i64 %ua, %ub
  %nq = sub i64 0, %q
  %s = xor i1 %na, %nb
  %r = select i1 %s, i64 %nq, i64 %q
  ret i64 %r
}

define i64 @__sbpf_srem64(i64 %a, i64 %b) alwaysinline {
  %na = icmp slt i64 %a, 0
  %ma = sub i64 0, %a
  %ua = select i1 %na, i64 %ma, i64 %a
  %nb = icmp slt i64 %b, 0
  %mb = sub i64 0, %b
  %ub = select i1 %nb, i64 %mb, i64 %b
  %q = urem i64 %ua, %ub
  %nq = sub i64 0, %q
  %r = select i1 %na, i64 %nq, i64 %q
  ret i64 %r
}
