/* 128-bit unsigned division for sBPF, called by divide.ll.
 *
 * Values lie in memory as {low, high}. result = {quotient low, high, remainder low, high}.
 * Division by zero gives zeros here; Rust checks for it before it divides.
 */
typedef unsigned long u64;

__attribute__((noinline, used)) void __sbpf_udivrem_impl(u64 *result, const u64 *dividend,
                                                         const u64 *divisor) {
  u64 low = dividend[0], high = dividend[1];
  const u64 by_low = divisor[0], by_high = divisor[1];

  if (!(high | by_high)) { /* both fit into one word: the machine divides */
    result[0] = by_low ? low / by_low : 0;
    result[1] = 0;
    result[2] = by_low ? low % by_low : 0;
    result[3] = 0;
    return;
  }

  if (!by_high && by_low && !(by_low >> 32)) { /* short divisor: long division by 32-bit limbs */
    u64 rest = high % by_low;
    const u64 middle = (rest << 32) | (low >> 32);
    rest = middle % by_low;
    const u64 last = (rest << 32) | (low & 0xffffffff);
    result[0] = ((middle / by_low) << 32) | (last / by_low);
    result[1] = high / by_low;
    result[2] = last % by_low;
    result[3] = 0;
    return;
  }

  u64 rest_low = 0, rest_high = 0, quotient_low = 0, quotient_high = 0;
  for (int bit = 0; bit < 128; bit++) { /* schoolbook, one bit at a time, from the top */
    const u64 next = high >> 63;
    const u64 carried = rest_high >> 63;
    high = (high << 1) | (low >> 63);
    low <<= 1;
    rest_high = (rest_high << 1) | (rest_low >> 63);
    rest_low = (rest_low << 1) | next;
    quotient_high = (quotient_high << 1) | (quotient_low >> 63);
    quotient_low <<= 1;
    if (carried || rest_high > by_high || (rest_high == by_high && rest_low >= by_low)) {
      const u64 borrow = rest_low < by_low;
      rest_low -= by_low;
      rest_high = rest_high - by_high - borrow;
      quotient_low |= 1;
    }
  }
  result[0] = quotient_low;
  result[1] = quotient_high;
  result[2] = rest_low;
  result[3] = rest_high;
}
