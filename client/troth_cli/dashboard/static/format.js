// Numbers as people read them. Owns: units and rounding. Never: touches the page.

const LAMPORTS = 1_000_000_000n;

/** Return an exact amount in SOL; `lamports` is an integer. */
export function sol(lamports) {
  const value = BigInt(lamports ?? 0);
  const sign = value < 0n ? "-" : "";
  const whole = value < 0n ? -value : value;
  const rest = String(whole % LAMPORTS).padStart(9, "0").replace(/0+$/, "");
  return `${sign}${whole / LAMPORTS}${rest ? `.${rest}` : ""} SOL`;
}

/** Return a loss of micro-nats in nats, or a dash where nobody has named one. */
export function nats(loss) {
  return Number.isFinite(loss) ? (loss / 1e6).toFixed(3) : "–";
}

/** Return seconds as "1 h 05 min"; a dash where there is no estimate. */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 90) return `${Math.max(0, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${String(minutes % 60).padStart(2, "0")} min`;
  return `${Math.round(hours / 24)} days`;
}

/** Return the ends of an address. */
export function short(address) {
  return address && address.length > 12 ? `${address.slice(0, 4)}…${address.slice(-4)}` : address || "–";
}

/** Return a count with its noun in the right number. */
export function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
