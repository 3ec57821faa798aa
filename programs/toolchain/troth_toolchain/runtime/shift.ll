; 128-bit shifts by a variable amount below 128, without branches. `xor %k, 63` followed by one more
; shift by 1 avoids the shift by 64 that k = 0 would need (it would be undefined).

define i128 @__sbpf_shl128(i128 %a, i128 %n) alwaysinline {
  %al = trunc i128 %a to i64
  %as = lshr i128 %a, 64
  %ah = trunc i128 %as to i64
  %c = trunc i128 %n to i64
  %k = and i64 %c, 63
  %big = icmp uge i64 %c, 64
  %nk = xor i64 %k, 63
  %l = shl i64 %al, %k
  %h0 = shl i64 %ah, %k
  %t = lshr i64 %al, 1
  %t2 = lshr i64 %t, %nk
  %h1 = or i64 %h0, %t2
  %lo = select i1 %big, i64 0, i64 %l
  %hi = select i1 %big, i64 %l, i64 %h1
  %lz = zext i64 %lo to i128
  %hz = zext i64 %hi to i128
  %hs = shl i128 %hz, 64
  %r = or i128 %hs, %lz
  ret i128 %r
}

define i128 @__sbpf_lshr128(i128 %a, i128 %n) alwaysinline {
  %al = trunc i128 %a to i64
  %as = lshr i128 %a, 64
  %ah = trunc i128 %as to i64
  %c = trunc i128 %n to i64
  %k = and i64 %c, 63
  %big = icmp uge i64 %c, 64
  %nk = xor i64 %k, 63
  %h = lshr i64 %ah, %k
  %l0 = lshr i64 %al, %k
  %t = shl i64 %ah, 1
  %t2 = shl i64 %t, %nk
  %l1 = or i64 %l0, %t2
  %hi = select i1 %big, i64 0, i64 %h
  %lo = select i1 %big, i64 %h, i64 %l1
  %lz = zext i64 %lo to i128
  %hz = zext i64 %hi to i128
  %hs = shl i128 %hz, 64
  %r = or i128 %hs, %lz
  ret i128 %r
}

define i128 @__sbpf_ashr128(i128 %a, i128 %n) alwaysinline {
  %al = trunc i128 %a to i64
  %as = lshr i128 %a, 64
  %ah = trunc i128 %as to i64
  %c = trunc i128 %n to i64
  %k = and i64 %c, 63
  %big = icmp uge i64 %c, 64
  %nk = xor i64 %k, 63
  %h = ashr i64 %ah, %k
  %sg = ashr i64 %ah, 63
  %l0 = lshr i64 %al, %k
  %t = shl i64 %ah, 1
  %t2 = shl i64 %t, %nk
  %l1 = or i64 %l0, %t2
  %hi = select i1 %big, i64 %sg, i64 %h
  %lo = select i1 %big, i64 %h, i64 %l1
  %lz = zext i64 %lo to i128
  %hz = zext i64 %hi to i128
  %hs = shl i128 %hz, 64
  %r = or i128 %hs, %lz
  ret i128 %r
}
