// The timeline: every entry in the order of the log, filtered and searched, drawn in portions so that
// a session of 10,000 records stays quick.

import { $, el, plain } from "./dom.mjs";
import { drawEntry } from "./entry.mjs";
import { isOthers, kindOf, searchText } from "./model.mjs";
import { count, day } from "./words.mjs";

const PORTION = 100;
const MANY = 2_000; // of so many entries fewer are drawn at first, so that the page can be used at once
const FIRST = 40;
const BEFORE = 10; // how many entries are shown above one that is looked for
const MOST_PRINTED = 2_000;
const MOST_TASKS = 1_000; // to choose from

// type of entry → the box that shows or hides it
const GROUPS = {
  thought: "thought", move: "move", claim: "move", creation: "task", edit: "task", call: "call", open: "call",
  refused: "refused", other: "other", erasure: "other", hidden: "other", gap: "other",
};
const DEEDS = { edit: "edit", run: "run" }; // class of a deed → its box, else "deed"

/** The boxes of an entry: a thought may come with moves of its task. */
function groupsOf(entry) {
  if (isOthers(entry)) return ["others"];
  if (entry.type === "deed") {
    const box = DEEDS[entry.deed?.sort] ?? "deed";
    return entry.deed?.isFailed ? [box, "failed"] : [box];
  }
  const kinds = entry.type === "thought" ? entry.changes.map(kindOf) : [];
  return [...new Set([entry.type, ...kinds].map((kind) => GROUPS[kind]))];
}

/** The entries on the page: which are found, and from where to where they are drawn. */
export class Timeline {
  /** `prove(record)` is a thought's place in its seal, if there is one. */
  constructor({ entries, tasks }, prove) {
    this.entries = entries;
    this.prove = prove;
    this.texts = new Map(); // entry → what is searched, made when it is first needed
    this.findings = new Map(); // entry → what is wrong with it
    this.nodes = new Map(); // entry → how it was drawn: what a reader has opened stays open
    this.boxes = [...document.querySelectorAll("#filters input[type=checkbox]")];
    this.label(tasks);
    this.listen();
    this.filter();
  }

  label(tasks) {
    let sum = 0;
    for (const box of this.boxes) {
      const number = this.entries.filter((entry) => groupsOf(entry).includes(box.value)).length;
      box.closest("label").querySelector("[data-count]").textContent = number.toLocaleString("en");
      box.closest("label").hidden = number === 0;
      sum += number;
    }
    $("several-kinds").hidden = sum === this.entries.length;
    const options = tasks.slice(0, MOST_TASKS).map(({ id, title }) =>
      el("option", { value: id }, `${id} ${plain(title ?? "", 40)}`));
    $("by-task").append(...options);
    this.others = this.entries.filter(isOthers).length;
  }

  listen() {
    $("filters").addEventListener("input", () => this.filter());
    $("filters").addEventListener("submit", (event) => event.preventDefault());
    $("clear").onclick = () => {
      this.clear();
      this.filter();
    };
    $("earlier").onclick = () => this.move(this.from - PORTION, this.to, this.found[this.from]);
    $("later").onclick = () => this.move(this.from, this.to + PORTION, this.found[this.to]);
    $("show-others").onclick = () => {
      this.boxFor("others").checked = true;
      this.filter();
    };
    globalThis.addEventListener("beforeprint", () => {
      const { from, to } = this;
      this.move(0, MOST_PRINTED);
      globalThis.addEventListener("afterprint", () => this.move(from, to), { once: true });
    });
  }

  clear() {
    for (const box of this.boxes) box.checked = box.defaultChecked;
    $("by-task").value = "";
    $("search").value = "";
  }

  boxFor(value) {
    return this.boxes.find((box) => box.value === value);
  }

  /** Which of the entries that were found are drawn. */
  get range() {
    return [this.from, this.to];
  }

  filter([from, to] = [0, this.entries.length > MANY ? FIRST : PORTION]) {
    const shown = new Set(this.boxes.filter((box) => box.checked).map((box) => box.value));
    const task = $("by-task").value;
    const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    this.found = this.entries.filter((entry) =>
      groupsOf(entry).some((group) => shown.has(group)) && (task === "" || entry.task === task) && this.has(entry, words));
    this.move(from, to);
  }

  has(entry, words) {
    if (words.length === 0) return true;
    if (!this.texts.has(entry)) this.texts.set(entry, searchText(entry));
    return words.every((word) => this.texts.get(entry).includes(word));
  }

  /** Draw another stretch; the entry that is named gets the focus. */
  move(from, to, entry) {
    this.from = Math.max(0, from);
    this.to = to;
    this.draw();
    const node = entry === undefined ? null : $(`entry-${entry.seq}`);
    node?.focus();
    node?.scrollIntoView({ block: "center" });
  }

  draw() {
    const nodes = [];
    let date = "";
    for (const entry of this.found.slice(this.from, this.to)) {
      if (entry.at !== undefined && day(entry.at) !== date) {
        date = day(entry.at);
        nodes.push(el("li", { class: "day" }, date));
      }
      nodes.push(this.node(entry));
    }
    $("entries").replaceChildren(...nodes);
    $("earlier").hidden = this.from === 0;
    $("later").hidden = this.to >= this.found.length;
    $("later").textContent = `Show ${Math.max(0, Math.min(PORTION, this.found.length - this.to))} more`;
    $("shown").textContent = this.shownText();
    const isLeft = this.others > 0 && !this.boxFor("others").checked;
    $("show-others").hidden = !isLeft;
    $("show-others").textContent = `Show ${count(this.others, "entry", "entries")} from before, or by others`;
  }

  node(entry) {
    if (!this.nodes.has(entry)) {
      this.nodes.set(entry, drawEntry(entry, this.findings.get(entry) ?? [], this.prove));
    }
    return this.nodes.get(entry);
  }

  shownText() {
    const isWith = this.boxFor("others").checked;
    const [found, all] = [this.found.length, this.entries.length - (isWith ? 0 : this.others)];
    const last = Math.min(this.to, found);
    if (found === 0) return "No entry fits.";
    const every = count(all, "entry", "entries");
    const which = found === all ? `All ${every}` : `${found.toLocaleString("en")} of ${every}`;
    if (last - this.from === found) return `${which}.`;
    return `${which}; here are ${(this.from + 1).toLocaleString("en")} to ${last.toLocaleString("en")}.`;
  }

  /** The entry of a record, or the gap that it is missing in. */
  entryOf(seq) {
    return this.entries.find(({ type, records, first, last }) =>
      (type === "gap" ? first <= seq && seq <= last : records.some((record) => record.seq === seq)));
  }

  /** The kind of a record, if it is here. */
  kindOf(seq) {
    return this.entryOf(seq)?.records.find((record) => record.seq === seq)?.kind;
  }

  /** Whether a record is here. */
  holds(seq) {
    return this.entries.some(({ records }) => records.some((record) => record.seq === seq));
  }

  /** Lead to a record; to the one before it, if it is not there. */
  reveal(seq) {
    const entry = this.entryOf(seq) ?? this.entries.findLast(({ first }) => first <= seq);
    if (entry === undefined) return;
    if (!this.found.includes(entry)) {
      this.clear();
      if (isOthers(entry)) this.boxFor("others").checked = true;
      this.filter();
    }
    const at = this.found.indexOf(entry);
    this.move(at - BEFORE, at + PORTION, entry);
  }

  /** Only what is about a task. */
  chooseTask(id) {
    this.clear();
    this.boxFor("others").checked = true;
    $("by-task").value = id;
    if ($("by-task").value !== id) $("search").value = id; // there are too many to choose from
    this.filter();
    $("timeline-title").focus();
  }

  /** Show next to their entries what a verifier found. */
  mark(findings) {
    if (findings.length === 0 && this.findings.size === 0) return;
    for (const entry of this.findings.keys()) this.nodes.delete(entry);
    this.findings = new Map();
    for (const finding of findings) {
      const entry = finding.seq === null ? undefined : this.entryOf(finding.seq);
      if (entry === undefined) continue;
      this.findings.set(entry, [...(this.findings.get(entry) ?? []), finding]);
      this.nodes.delete(entry);
    }
    this.draw();
  }
}
