// The page: follows the run by server-sent events and draws it.
// Owns: the state of the page, the connection. Never: computes what the chain could say.

import { drawChart } from "./chart.js";
import { h, show } from "./dom.js";
import { count, duration, nats, short, sol } from "./format.js";
import { byRound, casesTable, closedTable, peopleTable, slashesTable, transactionList } from "./people.js";
import { Timeline } from "./timeline.js";

const LATE_SECONDS = 30;
const MOST_LINES = 4;
// A page may stay open for weeks: old rounds go, as they do at the server.
const MOST_ROUNDS = 4096;
const MOST_CLOSED = 200;

const at = (id) => document.getElementById(id);
const timeline = new Timeline(at("timeline"), at("round-detail"));
let state = null;
let heardAt = null;

/** Take a state; after the first one, the server sends only rounds and closed audits that are new. */
function take(update) {
  const rounds = new Map((state?.rounds ?? []).map((one) => [one.round, one]));
  for (const one of update.rounds) rounds.set(one.round, one);
  const stakes = new Map((state?.stakes ?? []).map((one) => [one.round, one]));
  for (const one of update.stakes) stakes.set(one.round, one);
  const inOrder = (of) => [...of.values()].sort((a, b) => a.round - b.round).slice(-MOST_ROUNDS);
  state = { ...update, rounds: inOrder(rounds), stakes: inOrder(stakes), closed: closedAudits(update) };
  heardAt = Date.now();
  draw();
}

/** Return the audits that are over, those of the newest round first. */
function closedAudits(update) {
  const key = (one) => `${one.round}/${one.target}/${one.kind}`;
  const closed = new Map((state?.closed ?? []).map((one) => [key(one), one]));
  for (const one of update.closed_audits) closed.set(key(one), one);
  return [...closed.values()].sort(byRound).slice(0, MOST_CLOSED);
}

function draw() {
  const names = (index) => nameOf(index);
  head();
  facts();
  lossChart();
  stakeChart();
  show(at("rounds-hint"), recordBegins());
  timeline.draw(withOpen(state), names);
  show(at("people"), peopleTable(state.participants, ask));
  show(at("cases"), casesTable(state.audits, names, ask));
  show(at("closed"), closedTable(state.closed, names, ask));
  show(at("closed-hint"), closedHint());
  show(at("slashes"), slashesTable(state.slashes, names));
}

/** Say how many audits that are over the list has, and whether older ones are left out. */
function closedHint() {
  const listed = `${state.closed.length} in the list, those of the newest rounds first. `;
  const older = "Older ones are not shown; troth case list --all may know more.";
  return (state.closed.length ? listed : "") + (state.is_closed_cut ? older : "");
}

/** Say where the record begins, and what it leaves out. */
function recordBegins() {
  const first = state.first_round;
  const begins = first ? `The node remembers rounds from ${first} on. ` : "";
  const dropped = state.num_rounds_dropped;
  return begins + (dropped ? `Of old rounds, ${dropped} are left out.` : "");
}

/** Return the rounds with the one that is open now. */
function withOpen({ rounds, phase, round, num_acted: acted }) {
  const isOpen = ["commit", "attest"].includes(phase);
  if (!isOpen || rounds.some((one) => one.round === round)) return rounds;
  return [...rounds, { round, isOpen: true, acted, included: [] }];
}

function nameOf(index) {
  const one = state.participants.find((participant) => participant.index === index);
  return one ? `${index} (${short(one.owner)})` : String(index);
}

function head() {
  const closed = Math.min(state.round, state.max_rounds);
  document.title = `troth: round ${closed} of ${state.max_rounds}`;
  at("run").textContent = state.run;
  at("progress").max = state.max_rounds;
  at("progress").value = closed;
  const left = state.slots_left === null ? "" : `, ${count(state.slots_left, "slot")} left in it`;
  at("progress-text").textContent = `Round ${closed} of ${state.max_rounds}, ${state.phase}${left}`;
  const warnings = at("warnings");
  warnings.hidden = !state.warnings.length;
  show(warnings, ...state.warnings.map((text) => h("li", {}, text)));
}

function facts() {
  const last = state.rounds[state.rounds.length - 1];
  const taking = state.participants.filter((one) => ["active", "finished"].includes(one.status));
  const rows = [
    ["mean loss", nats(state.last_loss_micro), state.last_loss_round === null ? "no header found yet" : `round ${state.last_loss_round}, nats a token`],
    ["time left", ...timeLeft(state.time_left)],
    ["participants", String(taking.length), `taking part, of ${state.participants.length} that joined`],
    ["last round", last ? `${last.num_included} of ${last.num_committed}` : "–", "payloads included"],
    ["eligible witnesses", String(state.num_eligible_witnesses), `${state.num_auditable} of ${state.num_sampled} drawn payloads can be audited`],
    ["reward pool", sol(state.reward_pool_lamports), `${sol(state.escrow_lamports)} in escrow`],
    ["slot", String(state.slot), state.cluster],
    ["root", short(state.newest_root ?? state.root), `weights that round ${state.newest_root_round ?? state.root_round} began with`],
  ];
  show(at("facts"), ...rows.map(([name, value, note]) => h("div", {}, h("dt", {}, name), h("dd", {}, value, h("small", {}, note)))));
}

function timeLeft(left) {
  if (left.seconds === null) return ["–", left.reason];
  return [duration(left.seconds), `${duration(left.seconds_low)} to ${duration(left.seconds_high)}. ${left.note}`];
}

function lossChart() {
  const points = (key) => state.rounds.filter((one) => one[key] !== null).map((one) => [one.round, one[key]]);
  drawChart(at("loss-chart"), {
    title: "Training loss",
    note: "nats a token, from signed headers; telemetry, nobody judges it",
    series: [
      { name: "mean", points: points("mean_loss_micro") },
      { name: "median", points: points("median_loss_micro") },
    ],
    format: nats,
    empty: "No signed header has been found yet.",
  });
}

function stakeChart() {
  const of = new Map();
  for (const one of state.stakes) {
    for (const [index, lamports] of one.stakes) {
      if (!of.has(index)) of.set(index, []);
      of.get(index).push([one.round, lamports]);
    }
  }
  const all = [...of].map(([index, points]) => ({ index, points, change: points[points.length - 1][1] - points[0][1] }));
  // Those whose stake moved are worth a line; equal lines would hide each other.
  all.sort((a, b) => Math.abs(b.change) - Math.abs(a.change) || a.index - b.index);
  const rest = all.length - MOST_LINES;
  drawChart(at("stake-chart"), {
    title: "Stake",
    note: rest > 0 ? `SOL, the ${MOST_LINES} that moved most of ${all.length}` : "SOL, since this page's server started",
    series: all.slice(0, MOST_LINES).map(({ index, points }) => ({ name: `participant ${nameOf(index)}`, points })),
    marks: state.slashes.map((one) => ({ x: one.round, text: `${sol(one.taken_lamports)} taken: ${one.why}` })),
    format: (lamports) => (lamports / 1e9).toFixed(4),
    empty: "Nobody has a stake in the run yet.",
  });
}

async function ask(subject, title) {
  show(at("transactions-title"), `${title}: transactions`);
  show(at("transactions-list"), h("p", { class: "hint" }, "asking the node…"));
  at("transactions").showModal();
  const answer = await fetch(`api/transactions/${subject}`).then(async (reply) => ({ isGood: reply.ok, body: await reply.json() }), () => null);
  const problem = answer === null ? "The dashboard's server has stopped." : answer.isGood ? null : answer.body.error;
  show(at("transactions-list"), ...(problem ? [h("p", { class: "bad" }, problem)] : transactionList(answer.body)));
}

function connect() {
  const events = new EventSource("api/events");
  events.addEventListener("state", (event) => take(JSON.parse(event.data)));
  setInterval(() => live(events), 1000);
}

function live(events) {
  const age = heardAt === null ? null : (Date.now() - heardAt) / 1000 + state.age_seconds;
  const isCut = events.readyState !== EventSource.OPEN;
  const isLate = isCut || (age !== null && age > LATE_SECONDS);
  const text = liveText(isCut, isLate, age);
  at("live").classList.toggle("is-late", isLate || Boolean(state?.trouble));
  // A screen reader reads each change aloud, so ages change in steps.
  if (at("live").textContent !== text) at("live").textContent = text;
}

function liveText(isCut, isLate, age) {
  const since = age === null ? "" : `; this is from ${duration(Math.floor(age / 10) * 10)} ago`;
  if (isCut) return `no answer from the dashboard's server${since}`;
  if (age === null) return "waiting for the chain";
  if (state.trouble) return `${state.trouble}${since}`;
  return isLate ? `no news from the chain${since}` : "live";
}

connect();
