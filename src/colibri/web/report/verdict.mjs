// The verdict on the page: its word, what was found, a line for each thing that was checked, and what
// was not; and the value that a reader brings along.

import { $, button, el, plain } from "./dom.mjs";
import { isRootOf, rootOf } from "./model.mjs";
import {
  count, findingText, LINES, NOT_CHECKED, NOT_CHECKED_LINE, NOT_THE_VALUE, numbersIn, stretches, VERDICTS,
} from "./words.mjs";

const CLASSES = { good: "good", bad: "bad", "cannot tell": "unclear" };
const MOST = 100;
const MISMATCH = "The value that you brought does not match";
const OUTSIDE_CODES = ["root-differs", "head-differs", "head-not-covered", "truncated"];

/** Whether no value was compared, because the records do not fit together without one. */
const isSkipped = ({ not_checked: notes }) => notes.some(({ code }) => code === "skipped");

/** Whether nothing is wrong but that the reader's value does not fit. */
const isOnlyTheValue = (verdict) =>
  verdict.verdict === "bad" && !isSkipped(verdict) &&
  verdict.findings.every(({ code }) => OUTSIDE_CODES.includes(code));

/** Whether the end of the evidence can be told: nothing of a session can come after its seal. */
const hasItsEnd = ({ bundle: { kind }, lines: { sealed } }) => kind === "session" && sealed === "yes";

/** Show it; `brought` is a value that fits and what it covers, or null. */
export function showVerdict(verdict, brought, timeline) {
  const reveal = (seq) => timeline.reveal(seq);
  document.body.dataset.verdict = CLASSES[verdict.verdict];
  $("verdict-word").textContent = word(verdict, brought);
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

/** The verdict in a few words; a value that fits says how far. */
function word(verdict, brought) {
  if (isOnlyTheValue(verdict)) return MISMATCH;
  const said = VERDICTS[verdict.verdict];
  if (brought === null) return said;
  const { covered, left } = brought;
  if (left.length === 0) return `${said}, and fits your value`;
  const isOneStretch = covered.length === 1 && covered[0][1] < left[0][0];
  return `${said}, and fits your value ${isOneStretch ? `up to record ${covered[0][1]}` : "in part"}`;
}

/** It was not possible to check at all. */
export function showProblem(problem) {
  document.body.dataset.verdict = "unclear";
  $("verdict-word").textContent = VERDICTS["cannot tell"];
  const why = `The check itself failed: ${plain(String(problem), 300)}.`;
  $("trust").textContent = `${why} Save the evidence below, and check it with colibri_verify.py.`;
}

function showAlarm(verdict) {
  const isBad = verdict.verdict === "bad";
  const alarm = $("alarm");
  alarm.hidden = !isBad;
  const begin = isOnlyTheValue(verdict) ? MISMATCH : "Bad evidence";
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

const GIVER =
  "What it covers is what had been recorded when the value was given out, if it was kept since then where the sender " +
  "of this file could not change it. Copied from this page, or come with it, it proves nothing.";
const TRUTH = "None of this proves that what the agent wrote is true.";
const POSSIBLE =
  "So either this is what was recorded; or anyone who had this file or the log has cut it or written it anew, which " +
  "takes no secret; or this page itself was changed. To tell the first two apart, get the root or a head by another " +
  "way and compare it below; against the third, check the saved evidence with a verifier of your own.";

/** What the value that fits says of the records here, and what it leaves. */
function covers({ root, covered, left }) {
  const name = root === null ? "head" : "root";
  const begin = `The ${name} that you brought fits.`;
  if (left.length === 0) return `${begin} It covers every record here.`;
  const thoughts = root === null ? "" : ", the sealed thoughts that are here among them";
  return `${begin} It covers ${stretches(covered)}${thoughts}. It does not cover ${stretches(left)}: for these ` +
    "this file alone speaks.";
}

function trust(verdict, brought) {
  const says = (...sentences) => sentences.map((text) => el("p", {}, text));
  if (isOnlyTheValue(verdict)) {
    return says(
      "By itself the evidence holds. Look for a slip first: a wrong digit, or a value of another session or log. If " +
        "the value is right, this file does not hold what was recorded when it was given out: it was cut or written " +
        "anew, or is of another log. Do not rely on this report.",
    );
  }
  if (verdict.verdict === "bad") {
    return says(
      "Do not rely on this report. What it shows below is what the file says, not what was recorded.",
    );
  }
  if (verdict.findings.some(({ code }) => code === "head-not-covered")) {
    return says(
      "The head that you brought is of a record that is not in this file, so the two cannot be compared. If it is " +
        "the answer to a call of this very work, the file was cut. Else use a head of one of the records here, or " +
        "clear the field.",
    );
  }
  if (verdict.verdict === "cannot tell") {
    return says("This evidence could not be judged, so nothing below is proven.");
  }
  const meaning = brought === null ? [POSSIBLE] : [covers(brought), GIVER];
  return [...says(fitting(verdict)), ...mayLackItsEnd(verdict), ...says(...meaning, TRUTH)];
}

/** What holds without any value from elsewhere. */
function fitting({ not_checked: notes }) {
  return notes.some(({ code }) => code === "gaps")
    ? "Each record below fits its own hash, and those that stand side by side fit together: none of them was changed " +
      "or moved without the rest being written anew. Between some of them others are left out. The rules for tasks " +
      "were kept, as far as can be seen."
    : "The records below fit together without a break: nothing was changed, taken out of the middle or moved without " +
      "the rest being written anew. The rules for tasks were kept.";
}

function mayLackItsEnd(verdict) {
  if (hasItsEnd(verdict)) return [];
  const { kind, head } = verdict.bundle;
  const why = kind === "session" ? "this session is not sealed here" : "nothing here marks it";
  const text = `The end may be missing: ${why}, and what came after record ${head.seq} could be cut off without a trace.`;
  return [el("p", { class: "unclear" }, text)];
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
  if (size === 0) return ["none", [el("p", {}, "No content was deleted.")]];
  const text = `${count(size, "content was", "contents were")} deleted; the places are kept, and marked. `;
  return [String(size), [el("p", {}, text, ...recordButtons(seqs, size, reveal))]];
}

function openCalls({ open_calls: calls, open_call_count: size }, reveal) {
  if (calls === null) return ["not checked", [el("p", {}, NOT_CHECKED_LINE)]];
  if (size === 0) return ["none", [el("p", {}, "Each call has ended.")]];
  const text = "A call that has no end was still running, or its server stopped. It changed nothing. ";
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
  const page = "Whether this page is genuine: a forged one could claim anything. Who must be sure saves the " +
    "evidence and checks it with a verifier of their own.";
  $("not-checked").replaceChildren(...items, el("li", {}, page));
  const number = items.length + 1;
  $("not-checked-count").textContent = `Not checked: ${count(number, "thing")}`;
  $("to-checked").textContent = `What was checked, and ${count(number, "thing that was", "things that were")} not`;
}

// What a value that fits leaves open.
const LEFT = {
  "outside-head": ({ root, left }, verdict) => {
    const { seq } = verdict.bundle.head;
    const name = root === null ? "head" : "root";
    const anew = `Whether anything in ${stretches(left)} was written anew: the ${name} that you brought does not ` +
      `cover it. A head of record ${seq} would cover the last of these.`;
    return hasItsEnd(verdict) ? anew : `${anew} And whether what came after record ${seq} was cut off.`;
  },
  "outside-root": ({ covered }, { seals }) =>
    (seals.every(({ seq }) => covered.some(([first, last]) => first <= seq && seq <= last))
      ? "Whether the seal’s root was published, too. The head that you brought covers the seal, and so its root."
      : undefined),
};

// What the reader brings along.

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

/** That what was brought is a hash of this evidence, but no root; `compare(text)` takes it as a head. */
export function showKnownHash({ what, seq }, hash, compare) {
  const head = `${seq}:${hash}`;
  const said = [KNOWN[what](seq)];
  if (what === "record") said.push(el("code", {}, head), ". ", button("Compare it so", () => compare(head)));
  $("outside-answer").className = "unclear";
  $("outside-answer").replaceChildren(...said);
}

const KNOWN = {
  record: (seq) => `This is no root but the hash of record ${seq}. As a head it is `,
  content: (seq) => `This is the hash of the content of record ${seq}, which is neither a root nor a head.`,
  absent: (seq) => `This is no root but the hash of record ${seq}, which is not in this evidence.`,
};

/** Whether what was brought along fits, next to the field. */
export function showAnswer(verdict, outside) {
  const [className, text] = answer(verdict, outside);
  $("outside-answer").className = className;
  $("outside-answer").textContent = text;
}

function answer(verdict, outside) {
  if (isSkipped(verdict)) {
    return ["bad", "It was not compared, because the evidence is bad without it."];
  }
  const against = verdict.findings.find(({ code }) => OUTSIDE_CODES.includes(code));
  if (against === undefined) return ["good", fits(verdict, outside)];
  if (against.code === "head-not-covered") return ["unclear", `Cannot tell. ${findingText(against)}.`];
  const name = outside.root === null ? "head" : "root";
  return ["bad", `Bad: this ${name} does not fit. ${findingText(against)}.`];
}

function fits({ seals }, { root, head }) {
  if (head !== null) return `It fits: record ${head.seq} is the one that this head belongs to.`;
  const seal = seals.find((one) => isRootOf(root, one));
  return `It fits: this is the root of the seal in record ${seal.seq}.`;
}
