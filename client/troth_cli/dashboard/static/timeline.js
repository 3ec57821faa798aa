// The rounds as a row of buttons, one of which shows its details.
// Owns: how a round looks, the arrow keys, the chosen round. Never: asks the server.

import { h, show } from "./dom.js";
import { count, nats } from "./format.js";

const MOST_SHOWN = 240;

export class Timeline {
  constructor(strip, detail) {
    this.strip = strip;
    this.detail = detail;
    this.chosen = null;
    this.rounds = [];
    strip.setAttribute("role", "toolbar");
    strip.setAttribute("aria-label", "Rounds, the newest last; arrow keys move between them");
    strip.addEventListener("keydown", (event) => this.#move(event));
  }

  /** Draw the newest rounds of a list that is in order. */
  draw(rounds, names) {
    this.rounds = rounds.slice(-MOST_SHOWN);
    this.names = names;
    const focused = document.activeElement?.dataset?.round;
    show(this.strip, ...this.rounds.map((one, index) => this.#button(one, index)));
    for (const button of this.strip.children) {
      button.onclick = () => this.#choose(Number(button.dataset.round));
      if (button.dataset.round === focused) button.focus();
    }
    this.#describe();
  }

  #button(one, index) {
    const isChosen = one.round === this.chosen;
    const isTab = this.chosen === null ? index === this.rounds.length - 1 : isChosen;
    return h(
      "button",
      {
        type: "button",
        class: `is-${state(one)}`,
        "data-round": one.round,
        "aria-pressed": String(isChosen),
        "aria-label": `Round ${one.round}: ${words(one)}`,
        title: `Round ${one.round}: ${words(one)}`,
        tabindex: isTab ? 0 : -1,
      },
      one.isOpen ? "…" : String(one.num_included),
    );
  }

  #choose(round) {
    this.chosen = this.chosen === round ? null : round;
    this.draw(this.rounds, this.names);
    this.strip.querySelector(`[data-round="${round}"]`)?.focus();
  }

  #move(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const buttons = [...this.strip.children];
    const at = buttons.indexOf(document.activeElement);
    const next = Math.min(buttons.length - 1, Math.max(0, at + step));
    for (const button of buttons) button.tabIndex = -1;
    buttons[next].tabIndex = 0;
    buttons[next].focus();
  }

  #describe() {
    const one = this.rounds.find(({ round }) => round === this.chosen);
    if (!one) {
      show(this.detail, h("p", { class: "hint" }, "Choose a round to read about it."));
      return;
    }
    const who = one.included.map((index) => this.names(index)).join(", ");
    const loss = Number.isFinite(one.mean_loss_micro)
      ? `Mean loss ${nats(one.mean_loss_micro)} nats a token, from ${count(one.num_losses, "signed header")}.`
      : one.isOpen ? "" : "No signed header of this round was found.";
    const slots = one.isOpen ? "open now" : `slots ${one.open_slot ?? "?"} to ${one.close_slot}`;
    show(
      this.detail,
      h("p", {}, h("strong", {}, `Round ${one.round}`), ` (${slots}): ${words(one)}.`),
      h("p", {}, loss),
      ...(who ? [h("p", {}, `Included: ${who}.`)] : []),
    );
  }
}

function state(one) {
  if (one.is_void) return "void";
  if (one.isOpen) return "open";
  return one.num_included === one.num_committed ? "full" : "partly";
}

function words(one) {
  if (one.is_void) return "closed void, nothing was applied";
  if (one.isOpen) return `open, ${count(one.acted, "member")} acted in this phase`;
  return `${one.num_included} of ${count(one.num_committed, "payload")} included`;
}
