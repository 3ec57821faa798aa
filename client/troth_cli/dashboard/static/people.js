// Tables of participants, audits and slashes. Owns: columns and words. Never: asks the server.

import { h, table } from "./dom.js";
import { nats, short, sol } from "./format.js";

/** Return the table of participants; `ask` opens the transactions of a subject. */
export function peopleTable(people, ask) {
  const columns = [
    { title: "#", cell: (one) => one.index, kind: "number" },
    { title: "owner", cell: (one) => h("code", { title: one.owner }, short(one.owner)) },
    { title: "status", cell: (one) => status(one) },
    { title: "role", cell: (one) => one.role },
    { title: "last loss", cell: (one) => nats(one.last_loss_micro), kind: "number" },
    { title: "included", cell: (one) => one.num_included, kind: "number" },
    { title: "stake", cell: (one) => sol(one.stake_lamports), kind: "number" },
    { title: "earned", cell: (one) => sol(one.claimable_lamports + one.unvested_lamports), kind: "number" },
    { title: "strikes", cell: (one) => one.strikes, kind: "number" },
    { title: "offences", cell: (one) => bad(one.offences), kind: "number" },
    { title: "address", cell: (one) => h("code", {}, one.endpoint || "–") },
    { title: "", cell: (one) => link("transactions", () => ask(`participant/${one.index}`, `Participant ${one.index}`), `Participant ${one.index}`) },
  ];
  return table("Participants", columns, people, "Nobody has joined yet.");
}

/** Order audits: those of the newest round first. */
export function byRound(a, b) {
  return b.round - a.round || a.target - b.target;
}

/** Return the table of open audits and cases, those of the newest round first. */
export function casesTable(cases, name, ask) {
  const columns = [
    ...subject(name),
    { title: "stage", cell: (one) => one.stage.replaceAll("_", " ") },
    { title: "first seats", cell: (one) => verdicts(one.seats), kind: "words" },
    { title: "jury", cell: (one) => verdicts(one.jurors), kind: "words" },
    ...result(ask),
  ];
  return table("Open audits and cases", columns, [...cases].sort(byRound), "No audit is open.");
}

/** Return the table of audits and cases that are over, in the order given. */
export function closedTable(cases, name, ask) {
  return table("Audits and cases that are over", [...subject(name), ...result(ask)], cases, "No audit is over yet.");
}

/** Return the table of slashes, the newest first. */
export function slashesTable(slashes, name) {
  const columns = [
    { title: "round", cell: (one) => one.round, kind: "number" },
    { title: "who", cell: (one) => name(one.index) },
    { title: "for", cell: (one) => one.why, kind: "words" },
    { title: "taken", cell: (one) => sol(one.taken_lamports), kind: "number" },
    { title: "burned", cell: (one) => sol(one.burned_lamports), kind: "number" },
    { title: "", cell: (one) => (one.is_paid_out ? "paid out" : "in escrow") },
  ];
  return table("Slashes", columns, [...slashes].reverse(), "Nothing was taken from anybody.");
}

/** Return the list of transactions of a subject. */
export function transactionList({ transactions, is_cut: isCut }) {
  const columns = [
    { title: "slot", cell: (one) => one.slot, kind: "number" },
    {
      title: "transaction",
      cell: (one) => h("a", { href: one.url, target: "_blank", rel: "noopener noreferrer" }, short(one.signature)),
    },
    { title: "what", cell: (one) => one.events.join(", ") || (one.has_failed ? "failed" : ""), kind: "words" },
  ];
  const shown = table("Transactions", columns, transactions, "The node remembers none.");
  return isCut ? [shown, h("p", { class: "hint" }, "Older ones are not shown.")] : [shown];
}

function status(one) {
  const marks = [one.status, one.is_leaving ? "leaving" : "", one.is_frozen ? "frozen" : ""].filter(Boolean);
  const isBad = ["jailed", "barred"].includes(one.status);
  return h("span", { class: isBad ? "bad" : undefined }, marks.join(", "));
}

function bad(number) {
  return number ? h("span", { class: "bad" }, String(number)) : "0";
}

/** Return the columns that say whom an audit is about. */
function subject(name) {
  return [
    { title: "round", cell: (one) => one.round, kind: "number" },
    { title: "about", cell: (one) => name(one.target) },
    { title: "what", cell: (one) => one.kind },
  ];
}

/** Return the columns that say how an audit ended, with its transactions. */
function result(ask) {
  const title = (one) => `Audit of participant ${one.target} in round ${one.round}`;
  return [
    { title: "outcome", cell: (one) => outcome(one), kind: "words" },
    { title: "taken", cell: (one) => (one.taken_lamports ? sol(one.taken_lamports) : ""), kind: "number" },
    { title: "", cell: (one) => link("transactions", () => ask(`audit/${one.round}/${one.target}/${one.kind}`, title(one)), title(one)) },
  ];
}

function verdicts(statements) {
  return (statements ?? []).map((one) => `${one.index}: ${one.verdict}`).join(", ");
}

function outcome(one) {
  const known = [one.outcome, one.case_outcome].filter(Boolean).join(", then ");
  // The node may have forgotten the transactions that said it.
  const words = known || (one.stage === "closed" ? "not known" : "");
  return h("span", { class: one.is_conviction ? "bad" : undefined }, words);
}

/** Return a button in the form of a link; a screen reader hears whose it is. */
function link(text, act, owner) {
  return h("button", { type: "button", class: "link", "aria-label": `${text}: ${owner}`, onclick: act }, text);
}
