// The verdict on the page: one line, and behind it what was found, what was checked and what was not; and
// the root or head that a reader pastes in.

import { $, button, el, plain } from "./dom.mjs";
import { isRootOf, rootOf } from "./model.mjs";
import {
  count, erasedText, findingText, hasItsEnd, headline, isOnlyTheValue, isSkipped, isUncovered, leftOut, LINES, list,
  mayLackItsEnd, nounOf, NOT_CHECKED_LINE, NOT_THE_VALUE, numbersIn, openCallsText, openText, OUTSIDE_CODES, SIGNS, stretches,
  UNCOVERED,
} from "./words.mjs";

const CLASSES = { good: "good", bad: "bad", "cannot tell": "unclear" };
const MOST = 100;

/** Show it; `brought` is a value that fits and what it covers, or null. */
export function showVerdict(verdict, brought, timeline) {
  document.body.dataset.verdict = CLASSES[verdict.verdict];
  const [word, note] = brought === null ? headline(verdict, "report") : [known(verdict, brought), upTo(brought)];
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
  $("lines").replaceChildren(...lines(verdict, timeline));
  showNotChecked(verdict, brought);
  showAlarm(verdict);
}

/** That a value fits: what it says of this file. */
function known(verdict, { root }) {
  const noun = nounOf(verdict);
  if (root === null || noun === "session") return `This is the ${noun} that you were told about.`;
  const { session } = verdict.seals.find((one) => isRootOf(root, one));
  return `Session ${session} in this ${noun} is the session that you were told about.`;
}

/** How far a value that fits goes. */
function upTo({ root, checkpoint, covered, left }) {
  if (root !== null) return "Its sealed thoughts are the ones that were sealed.";
  const name = checkpoint ? "checkpoint" : "head";
  if (left.length === 0) return `Every record is as it was when you received the ${name}.`;
  return `As far as ${stretches(covered)}: that is where your ${name} ends.`;
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
  if (verdict.findings.some(({ code }) => code === "checkpoint-not-covered")) {
    return says("Ask for a file that was exported after the checkpoint was made: it has the proof that leads there.");
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
  const gaps = notes.find(({ code }) => code === "gaps");
  return gaps !== undefined
    ? "Your browser has just computed every hash again: each record here is unchanged, and neighbouring records fit " +
      `together. Left out, as records of other work: ${leftOut(gaps.detail)}.`
    : "Your browser has just computed every hash again: no record was changed, removed or reordered, and the rules for " +
      "tasks were kept.";
}

// The lines.

function lines(verdict, timeline) {
  const reveal = (seq) => timeline.reveal(seq);
  const rows = Object.entries(LINES).map(([line, words]) => {
    const state = verdict.lines[line];
    const isValue = state === "no" && isOnlyTheValue(verdict);
    const what = [el("p", {}, isValue ? NOT_THE_VALUE : words[state] ?? NOT_CHECKED_LINE)];
    if (line === "sealed") what.push(...verdict.seals.map(seal));
    const more = verdict.seal_count - verdict.seals.length;
    if (line === "sealed" && more > 0) what.push(el("p", { class: "soft" }, `and ${count(more, "other")}`));
    return row(words.name, state, what);
  });
  if (verdict.bundle?.checkpoint) rows.push(row("Checkpoint", "yes", [covering(verdict.bundle)]));
  rows.push(row("Erased", ...erased(verdict, timeline)));
  rows.push(row("Open calls", ...openCalls(verdict, reveal)));
  return rows;
}

function row(name, state, what) {
  const sign = SIGNS[state] ?? "";
  const mark = el("span", { class: "state", "data-state": state }, `${sign} ${state}`.trim());
  return el("div", { class: "line" }, el("dt", {}, name), el("dd", {}, mark, el("div", {}, ...what)));
}

/** That a checkpoint covers the evidence: it can be compared with one that was published later. */
function covering({ log, head, checkpoint: { size, root } }) {
  const text = `Record ${head.seq}, the last one here, is in the log’s checkpoint of ${count(size, "record")}: `;
  return el("p", {}, text, el("code", {}, `${log}@${size}:${root}`));
}

function seal({ seq, session, count: size, root }) {
  const text = `Record ${seq}, ${session}: ${count(size, "thought")}, root `;
  return el("p", { class: "soft" }, text, el("code", {}, rootOf({ count: size, root })));
}

function erased({ erased: seqs, erased_count: size }, timeline) {
  if (seqs === null) return ["not checked", [el("p", {}, NOT_CHECKED_LINE)]];
  if (size === 0) return ["none", [el("p", {}, erasedText(0))]];
  const calls = seqs.filter((seq) => timeline.kindOf(seq) === "call.enter").slice(0, MOST);
  const carried = calls.length === 0 || calls.length === size ? "" : calls.length === 1
    ? `Record ${calls[0]} is the call that carried the erased text.`
    : `Records ${list(calls.map(String))} are the calls that carried the erased texts.`;
  return [String(size), [el("p", {}, `${erasedText(size)} `, ...recordButtons(seqs, size, (seq) => timeline.reveal(seq)), carried)]];
}

function openCalls({ open_calls: calls, open_call_count: size }, reveal) {
  if (calls === null) return ["not checked", [el("p", {}, NOT_CHECKED_LINE)]];
  if (size === 0) return ["none", [el("p", {}, openCallsText(0))]];
  const buttons = recordButtons(calls.map(({ seq }) => seq), size, reveal);
  return [String(size), [el("p", {}, `${openCallsText(size)} `, ...buttons)]];
}

function recordButtons(seqs, size, reveal) {
  const made = seqs.slice(0, MOST).flatMap((seq) => [button(`record ${seq}`, () => reveal(seq)), " "]);
  return size > MOST ? [...made, `and ${count(size - MOST, "other")}`] : made;
}

function showNotChecked(verdict, brought) {
  const items = verdict.not_checked.map((note) => {
    const left = brought === null ? undefined : LEFT[note.code]?.(brought, verdict);
    return el("li", {}, left ?? plain(openText(note)));
  });
  const page = "Whether this page is genuine: check the saved evidence with a verifier you got yourself.";
  $("not-checked").replaceChildren(...items, el("li", {}, page));
  $("not-checked-count").textContent = `What this check cannot show (${items.length + 1})`;
}

// What a value that fits leaves open.
const LEFT = {
  "outside-head": ({ root, checkpoint, left }, verdict) => {
    const { seq } = verdict.bundle.head;
    const name = root !== null ? "root" : checkpoint ? "checkpoint" : "head";
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

/** {root, head, checkpoint} of a text, null where it is empty, undefined where it is none of them. */
export function parseOutside(text, model) {
  const given = fromJson(text.trim().toLowerCase());
  if (given === "") return null;
  if (/^[0-9a-f]{64}$/.test(given)) return { root: given, head: null };
  const [, log, size, root] = /^(colibri\/[0-9a-f]{32})@([1-9][0-9]{0,14}):([0-9a-f]{64})$/.exec(given) ?? [];
  if (root !== undefined) return { root: null, head: null, checkpoint: { log, size: Number(size), root } };
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
  if (UNCOVERED.includes(against.code)) return ["unclear", `Cannot compare. ${findingText(against)}.`];
  return ["bad", `This is another ${nounOf(verdict)}: what you pasted does not match it.`];
}
