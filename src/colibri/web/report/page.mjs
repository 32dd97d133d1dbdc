// The report: the evidence in this page, read, shown and checked in the reader's browser. Nothing is
// fetched, and all that the page tells of the work comes from the evidence.

import { showDecisions } from "./decisions.mjs";
import { $, el } from "./dom.mjs";
import { judge, serve } from "./judge.mjs";
import { coverage, derive, knownHash, readBundle } from "./model.mjs";
import { showPeople } from "./people.mjs";
import { goBack, watch } from "./place.mjs";
import { showProject } from "./project.mjs";
import { showStory } from "./story.mjs";
import { showTasks } from "./tasks.mjs";
import { Timeline } from "./timeline.mjs";
import { canBeDrawn, Tree } from "./tree.mjs";
import { parseOutside, showAnswer, showKnownHash, showProblem, showVerdict } from "./verdict.mjs";
import { count } from "./words.mjs";
import { showCoverage, showWork } from "./work.mjs";

const NOTHING = { holds: () => false, kindOf: () => {}, reveal: () => {}, mark: () => {}, filter: () => {}, range: [0, 0] };

/** A page with its evidence; `timeline` is NOTHING while there is nothing to show. */
class Report {
  timeline = NOTHING;
  showSeal = () => {};
  trees = new Map(); // session → its seal
  turn = 0;

  constructor(text) {
    this.text = text;
    this.bytes = new TextEncoder().encode(text);
  }

  /** Judge the evidence together with what the reader brought along, or null. */
  async check(outside) {
    const mine = (this.turn += 1);
    document.body.dataset.verdict = "checking";
    $("verdict-word").textContent = `Checking ${this.model ? count(this.model.recordCount, "record") : ""} …`;
    $("verdict-note").textContent = "";
    try {
      const verdict = await judge(this.bytes, outside ?? {});
      if (mine !== this.turn) return;
      if (verdict.bundle === null) this.hide("It cannot be read.");
      const fits = outside !== null && verdict.verdict === "good";
      const covers = fits ? { ...outside, ...coverage(this.model, outside) } : null;
      showVerdict(verdict, covers, this.timeline);
      for (const tree of this.trees.values()) tree.doubt(verdict);
      this.timeline.mark(verdict.findings);
      showCoverage(verdict.coverage);
      this.showSeal(); // after the verdict: it takes as many hashes again
      if (outside !== null) showAnswer(verdict, covers);
    } catch (problem) {
      if (mine === this.turn) showProblem(problem);
    }
    document.body.dataset.checked = this.turn;
  }

  /** Show what the evidence says. */
  show() {
    try {
      const model = derive(readBundle(this.text));
      const reveal = (seq) => this.timeline.reveal(seq);
      for (const show of [showStory, showPeople, showDecisions, showWork, showProject]) show(model, reveal);
      const prove = this.showSeals(model);
      this.timeline = new Timeline(model, prove);
      showTasks(model, (id) => this.timeline.chooseTask(id));
      this.model = model;
      showLinks();
    } catch (problem) {
      this.hide(`It cannot be shown: ${problem.message}.`);
    }
  }

  hide(why) {
    this.timeline = NOTHING;
    for (const section of document.querySelectorAll("main > section")) section.hidden = true;
    $("values-part").hidden = true;
    $("outcome").textContent = "";
    showLinks();
    $("title").textContent = "A report that cannot be shown";
    $("scope").textContent = why;
  }

  /** The seals, one at a time; the answer leads from a thought's record to its place in one. */
  showSeals({ sessions }) {
    const sealed = sessions.filter(canBeDrawn);
    const reveal = (seq) => this.timeline.reveal(seq);
    const trees = (this.trees = new Map(sealed.map((session) => [session.id, new Tree(session, reveal)])));
    $("unsealed").hidden = sealed.length > 0;
    $("sealed").hidden = sealed.length === 0;
    $("by-session").append(...sealed.map(({ id }) => el("option", { value: id }, id)));
    $("by-session").closest("label").hidden = sealed.length < 2;
    $("by-session").onchange = () => this.showSeal();
    this.showSeal = (seq = null) => {
      const tree = trees.get($("by-session").value);
      // A forged proof may have no hash where one should be.
      tree?.show(seq).catch(() => {
        $("sealed").hidden = true;
        $("unsealed").hidden = false;
      });
    };
    return ({ session, seq }) => {
      const tree = trees.get(session);
      if (!tree?.places.has(seq)) return null;
      const show = () => {
        $("by-session").value = session;
        this.showSeal(seq);
      };
      return { number: tree.places.get(seq) + 1, size: tree.size, isAltered: tree.altered.has(seq), show };
    };
  }

  /** The bundle as a file, for a verifier of the reader's own. */
  save() {
    const name = (this.model?.scope.id ?? "evidence").replace(/[^A-Za-z0-9._-]/g, "_");
    const url = URL.createObjectURL(new Blob([this.bytes], { type: "application/json" }));
    el("a", { href: url, download: `${name}.colibri.json` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  }

  compare() {
    const outside = parseOutside($("outside-value").value, this.model);
    $("outside-value").setAttribute("aria-invalid", String(outside === undefined));
    $("outside-answer").className = outside === undefined ? "unclear" : "";
    $("outside-answer").textContent = outside === undefined
      ? "This is no root, head or checkpoint. Each ends in a number, a colon and 64 hex digits."
      : "";
    const known = outside?.root && this.model ? knownHash(this.model, outside.root) : null;
    if (known !== null) {
      showKnownHash(known, outside.root, (head) => {
        $("outside-value").value = head;
        this.compare();
      });
    }
    // What cannot be read, or is no root, counts as nothing pasted.
    return this.check(known === null ? outside ?? null : null);
  }
}

/** Links only to sections that are there. */
function showLinks() {
  for (const link of document.querySelectorAll("nav a")) link.hidden = $(link.hash.slice(1)).hidden;
}

const THEMES = { "": "light", light: "dark", dark: "" };

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  $("theme").textContent = `Colours: ${theme || "automatic"}`;
}

async function start() {
  const report = new Report($("evidence").textContent);
  report.show();
  $("outside").addEventListener("submit", (event) => {
    event.preventDefault();
    report.compare();
  });
  $("save").onclick = () => report.save();
  $("theme").onclick = () => setTheme(THEMES[document.documentElement.dataset.theme ?? ""]);
  globalThis.addEventListener("beforeprint", openAll);
  $("trust").replaceChildren(); // the words for a program that does not run
  $("verdict").open = false;
  const isBack = goBack(report.timeline, setTheme);
  await (isBack && $("outside-value").value !== "" ? report.compare() : report.check(null));
  watch(report.timeline);
}

/** On paper the verdict is whole, and no task is folded; entries stay as the reader left them. What is behind
 * a good verdict comes after the story. */
function openAll() {
  for (const node of document.querySelectorAll("#verdict, #not-checked-part, details.group")) node.open = true;
  if (document.body.dataset.verdict !== "good") return;
  document.querySelector("main").append($("verdict-full"));
  globalThis.addEventListener("afterprint", () => $("verdict").append($("verdict-full")), { once: true });
}

if (typeof document === "undefined") serve();
else start();
