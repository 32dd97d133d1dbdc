// The verdict on the page: one line, and behind it what was found, what was checked and what was not; and
// the root or head that a reader pastes in.

import { $, button, el, plain } from "./dom.mjs";
import { isRootOf, rootOf } from "./model.mjs";
import {
  count, findingText, LINES, NOT_CHECKED, NOT_CHECKED_LINE, NOT_THE_VALUE, numbersIn, stretches,
} from "./words.mjs";

const CLASSES = { good: "good", bad: "bad", "cannot tell": "unclear" };
const MOST = 100;
const OUTSIDE_CODES = ["root-differs", "head-differs", "head-not-covered", "truncated"];

/** Whether no value was compared, because the records do not fit together without one. */
const isSkipped = ({ not_checked: notes }) => notes.some(({ code }) => code === "skipped");

/** Whether nothing is wrong but that the reader's value does not fit. */
const isOnlyTheValue = (verdict) =>
  verdict.verdict === "bad" && !isSkipped(verdict) &&
  verdict.findings.every(({ code }) => OUTSIDE_CODES.includes(code));

/** Whether the end of the evidence is known: nothing of a session can come after its seal. */
const hasItsEnd = ({ bundle: { kind }, lines: { sealed } }) => kind === "session" && sealed === "yes";

const isUncovered = ({ findings }) => findings.some(({ code }) => code === "head-not-covered");

/** What the page is about, in a word. */
const nounOf = ({ bundle }) => NOUNS[bundle?.kind] ?? "report";
const NOUNS = { session: "session", thoughts: "session", task: "task", log: "project" };

/** Show it; `brought` is a value that fits and what it covers, or null. */
export function showVerdict(verdict, brought, timeline) {
  const reveal = (seq) => timeline.reveal(seq);
  document.body.dataset.verdict = CLASSES[verdict.verdict];
  const [word, note] = line(verdict, brought);
  $("verdict-word").textContent = word;
  $("verdict-note").textContent = note;
  $("verdict").open ||= verdict.verdict !== "good";
  $("trust").replaceChildren(...trust(verdict, brought));
  const found = verdict.findings.map((finding) => foundItem(finding, timeline));
  if (verdict.finding_count > found.length) {
    found.push(el("li", {}, `${count(verdict.finding_count, "finding")} in all`));
  }
  $("findings").replaceChildren(...found);
  $("findings").hidden = found.length === 0;
  $("lines").replaceChildren(...lines(verdict, reveal));
  showNotChecked(verdict, brought);
  showAlarm(verdict);
}

/** The one line: a few words, and what they rest on. */
function line(verdict, brought) {
  if (isOnlyTheValue(verdict)) return [`This is another ${nounOf(verdict)}`, "than the one you were told about."];
  if (isUncovered(verdict)) return ["Cannot compare.", "This file does not hold the record that your head belongs to."];
  if (verdict.verdict === "bad") return ["Do not trust this report.", "Its records were altered, or some are missing."];
  if (verdict.verdict === "cannot tell") return ["Could not be checked.", "Nothing below is proven."];
  const { records } = verdict.bundle;
  if (brought !== null) return [known(verdict, brought), upTo(brought)];
  const open = mayLackItsEnd(verdict) ? " The end is open." : "";
  const fits = `All ${count(records, "record")} fit together; not yet compared with a root you received separately.`;
  return ["Intact.", `${fits}${open}`];
}

/** That a value fits: what it says of this file. */
function known(verdict, { root }) {
  const noun = nounOf(verdict);
  if (root === null || noun === "session") return `This is the ${noun} that you were told about.`;
  const { session } = verdict.seals.find((one) => isRootOf(root, one));
  return `Session ${session} in this ${noun} is the session that you were told about.`;
}

/** How far a value that fits goes. */
function upTo({ root, covered, left }) {
  if (root !== null) return "Its sealed thoughts are the ones that were sealed.";
  if (left.length === 0) return "Every record is as it was when you received the head.";
  return `As far as ${stretches(covered)}: that is where your head ends.`;
}

/** It was not possible to check at all. */
export function showProblem(problem) {
  document.body.dataset.verdict = "unclear";
  $("verdict-word").textContent = "Could not be checked.";
  $("verdict-note").textContent = "Nothing below is proven.";
  $("verdict").open = true;
  const why = `The check itself failed: ${plain(String(problem), 300)}.`;
  $("trust").textContent = `${why} Save the evidence below, and check it with colibri_verify.py.`;
}

function showAlarm(verdict) {
  const isBad = verdict.verdict === "bad";
  const alarm = $("alarm");
  alarm.hidden = !isBad;
  const begin = isOnlyTheValue(verdict) ? "Your root or head does not match" : "Do not trust this report";
  alarm.textContent = isBad ? `${begin}. ${findingText(verdict.findings[0])}.` : "";
  document.title = `${isBad ? "BAD: " : ""}${document.title.replace(/^BAD: /, "")}`;
}

function foundItem(finding, timeline) {
  const { code, seq, detail } = finding;
  const label = { "aria-label": `show record ${seq}` };
  const show = timeline.holds(seq) ? button("show", () => timeline.reveal(seq), label) : null;
  const why = el("span", { class: "soft" }, ` ${code}: ${numbersIn(plain(detail))} `);
  return el("li", {}, el("strong", {}, `${findingText(finding)}.`), why, show);
}

// How far to trust it, in a few sentences.

function trust(verdict, brought) {
  const says = (...sentences) => sentences.map((text) => el("p", {}, text));
  if (isOnlyTheValue(verdict)) {
    return says(
      "Look for a typing mistake first, or a value of another session. If the value is right, this is not what you were " +
        "told about: it is something else, or it was truncated or rewritten since.",
    );
  }
  if (verdict.verdict === "bad") {
    return says("What it shows below is what the file says, not what was recorded.");
  }
  if (isUncovered(verdict)) {
    return says(
      "If your head is the answer to a call of this very work, the file was truncated. Otherwise paste a head of one of " +
        "the records here.",
    );
  }
  if (verdict.verdict === "cannot tell") return says("The evidence is not in a form that can be checked.");
  const end = mayLackItsEnd(verdict);
  const known = [...says(fitting(verdict)), ...(end ? [el("p", { class: "unclear" }, end)] : [])];
  return brought !== null ? known : [...known, ...says(
    "Whoever has the file could have rewritten all of it. A root or head that you received separately rules that out.",
  )];
}

/** What holds without any value from outside. */
function fitting({ not_checked: notes }) {
  return notes.some(({ code }) => code === "gaps")
    ? "Your browser has just computed every hash again: each record here is unchanged, and neighbouring records fit " +
      "together. Some records in between are not in this file."
    : "Your browser has just computed every hash again: no record was changed, removed or reordered, and the rules for " +
      "tasks were kept.";
}

/** Why the last records could be missing without a trace; null where they cannot. */
function mayLackItsEnd(verdict) {
  if (hasItsEnd(verdict)) return null;
  const { kind, head } = verdict.bundle;
  const why = kind === "session" ? "This session is not sealed" : "No seal marks the end";
  return `${why}, so records after ${head.seq} could be missing without a trace.`;
}

// The lines.

const SIGNS = { yes: "✓", no: "✗", open: "–", none: "–", "not checked": "?" };

function lines(verdict, reveal) {
  const rows = Object.entries(LINES).map(([line, words]) => {
    const state = verdict.lines[line];
    const isValue = state === "no" && isOnlyTheValue(verdict);
    const what = [el("p", {}, isValue ? NOT_THE_VALUE : words[state] ?? NOT_CHECKED_LINE)];
    if (line === "sealed") what.push(...verdict.seals.map(seal));
    const more = verdict.seal_count - verdict.seals.length;
    if (line === "sealed" && more > 0) what.push(el("p", { class: "soft" }, `and ${count(more, "other")}`));
    return row(words.name, state, what);
  });
  rows.push(row("Erased", ...erased(verdict, reveal)));
  rows.push(row("Open calls", ...openCalls(verdict, reveal)));
  return rows;
}

function row(name, state, what) {
  const sign = SIGNS[state] ?? "";
  const mark = el("span", { class: "state", "data-state": state }, `${sign} ${state}`.trim());
  return el("div", { class: "line" }, el("dt", {}, name), el("dd", {}, mark, el("div", {}, ...what)));
}

function seal({ seq, session, count: size, root }) {
  const text = `Record ${seq}, ${session}: ${count(size, "thought")}, root `;
  return el("p", { class: "soft" }, text, el("code", {}, rootOf({ count: size, root })));
}

function erased({ erased: seqs, erased_count: size }, reveal) {
  if (seqs === null) return ["not checked", [el("p", {}, NOT_CHECKED_LINE)]];
  if (size === 0) return ["none", [el("p", {}, "No text was erased.")]];
  const text = `${count(size, "text was", "texts were")} erased on purpose; the records keep their places. `;
  return [String(size), [el("p", {}, text, ...recordButtons(seqs, size, reveal))]];
}

function openCalls({ open_calls: calls, open_call_count: size }, reveal) {
  if (calls === null) return ["not checked", [el("p", {}, NOT_CHECKED_LINE)]];
  if (size === 0) return ["none", [el("p", {}, "Every call has ended.")]];
  const text = "A call without an end was still running, or its server stopped. It changed nothing. ";
  const buttons = recordButtons(calls.map(({ seq }) => seq), size, reveal);
  return [String(size), [el("p", {}, text, ...buttons)]];
}

function recordButtons(seqs, size, reveal) {
  const made = seqs.slice(0, MOST).flatMap((seq) => [button(`record ${seq}`, () => reveal(seq)), " "]);
  return size > MOST ? [...made, `and ${count(size - MOST, "other")}`] : made;
}

function showNotChecked(verdict, brought) {
  const items = verdict.not_checked.map(({ code, detail }) => {
    const facts = /[0-9].*/.exec(detail); // how many there are, or where
    const more = facts === null ? null : el("span", { class: "soft" }, ` (${numbersIn(plain(facts[0]))})`);
    const left = brought === null ? undefined : LEFT[code]?.(brought, verdict);
    return el("li", {}, left ?? NOT_CHECKED[code] ?? plain(detail), more);
  });
  const page = "Whether this page is genuine: check the saved evidence with a verifier you got yourself.";
  $("not-checked").replaceChildren(...items, el("li", {}, page));
  $("not-checked-count").textContent = `What this check cannot show (${items.length + 1})`;
}

// What a value that fits leaves open.
const LEFT = {
  "outside-head": ({ root, left }, verdict) => {
    const { seq } = verdict.bundle.head;
    const name = root === null ? "head" : "root";
    const rewritten = `Whether ${stretches(left)} were rewritten: they came after what your ${name} covers. A head of ` +
      `record ${seq} covers the last of them.`;
    return hasItsEnd(verdict) ? rewritten : `${rewritten} And whether anything after record ${seq} is missing.`;
  },
  "outside-root": ({ covered }, { seals }) =>
    (seals.every(({ seq }) => covered.some(([first, last]) => first <= seq && seq <= last))
      ? "Whether the seal’s root was passed on, too. Your head covers the seal, and so its root."
      : undefined),
};

// What the reader pastes.

/** {root, head} of a text, null where it is empty, undefined where it is neither. */
export function parseOutside(text, model) {
  const given = fromJson(text.trim().toLowerCase());
  if (given === "") return null;
  if (/^[0-9a-f]{64}$/.test(given)) return { root: given, head: null };
  const [, word, number, hash] = /^(?:(root|head) +)?([1-9][0-9]{0,14}):([0-9a-f]{64})$/.exec(given) ?? [];
  if (hash === undefined) return undefined;
  const isRoot = word === undefined ? looksLikeRoot(Number(number), hash, model) : word === "root";
  if (isRoot) return { root: `${number}:${hash}`, head: null };
  return { root: null, head: { seq: Number(number), leaf: hash } };
}

/** Both are a number and a hash: one that fits a seal, or can be no head of a record here, is a root. */
function looksLikeRoot(number, hash, model) {
  const seals = (model?.sessions ?? []).map(({ seal }) => seal?.body).filter(Boolean);
  const isHere = (model?.runs ?? []).some(([first, last]) => first <= number && number <= last);
  return seals.some(({ count: size, root }) => root === hash || (size === number && !isHere));
}

/** A receipt, {log, seq, head}, as SEQ:HEAD; the head of a bundle says leaf, the answer to a sealing root. */
function fromJson(text) {
  try {
    const { seq, head, leaf, root } = JSON.parse(text);
    if (seq !== undefined) return `head ${seq}:${head ?? leaf}`;
    return root === undefined ? text : String(root).includes(":") ? `root ${root}` : String(root);
  } catch {
    return text;
  }
}

/** That what was pasted is a hash of this evidence, but no root; `compare(text)` takes it as a head. */
export function showKnownHash({ what, seq }, hash, compare) {
  const head = `${seq}:${hash}`;
  const said = [KNOWN[what](seq)];
  if (what === "record") said.push(el("code", {}, head), ". ", button("Compare it as a head", () => compare(head)));
  $("outside-answer").className = "unclear";
  $("outside-answer").replaceChildren(...said);
}

const KNOWN = {
  record: (seq) => `This is not a root but the hash of record ${seq}. As a head it is `,
  content: (seq) => `This is the hash of the content of record ${seq}, which is neither a root nor a head.`,
  absent: (seq) => `This is not a root but the hash of record ${seq}, which is not in this file.`,
};

/** Whether what was pasted fits, next to the field; `brought` as for the verdict. */
export function showAnswer(verdict, brought) {
  const [className, text] = answer(verdict, brought);
  $("outside-answer").className = className;
  $("outside-answer").textContent = text;
}

function answer(verdict, brought) {
  if (isSkipped(verdict)) return ["bad", "It was not compared: the evidence is damaged without it."];
  const against = verdict.findings.find(({ code }) => OUTSIDE_CODES.includes(code));
  if (against === undefined && brought !== null) return ["good", `${known(verdict, brought)} ${upTo(brought)}`];
  if (against === undefined) return ["bad", "It matches, but the evidence is damaged."];
  if (against.code === "head-not-covered") return ["unclear", `Cannot compare. ${findingText(against)}.`];
  return ["bad", `This is another ${nounOf(verdict)}: what you pasted does not match it.`];
}
