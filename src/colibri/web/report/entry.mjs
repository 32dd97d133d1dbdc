// One entry of the timeline: a thought, a change of a task, a call, or what is not there.

import { button, cut, el, passage, plain, stored } from "./dom.mjs";
import { isOthers } from "./model.mjs";
import { drawRecord } from "./record.mjs";
import { state } from "./story.mjs";
import { callTitle, clock, count, findingText, list, refusalReason, shortHash, stretches } from "./words.mjs";

const MOST_RECORDS = 100;

/** The entry, with what is wrong with it; `prove(record)` is a thought's place in its seal. */
export function drawEntry(entry, findings, prove) {
  const { type, seq } = entry;
  const [title, ...rest] = DRAWN[type](entry, prove);
  const alarms = findings.map((finding) => el("p", { class: "alarm" }, `${findingText(finding)}.`));
  const attributes = {
    id: `entry-${seq}`, "data-type": type, "data-bad": findings.length > 0, "data-others": isOthers(entry),
    "data-failed": entry.deed?.isFailed ?? false,
  };
  return el("li", { class: "entry", tabindex: "-1", ...attributes },
    el("div", { class: "when" }, ...when(entry)),
    el("div", { class: "what" }, ...others(entry), title, ...alarms, ...rest, details(entry, prove)));
}

/** Of work that the page is not about: who did it. */
function others(entry) {
  if (!isOthers(entry)) return [];
  const who = entry.session === null ? "Outside any session" : ["By session ", stored(entry.session)];
  return [el("p", { class: "others" }, ...[who].flat())];
}

/** Its time and its number; of what is not here, the numbers alone. */
function when({ type, seq, at, first, last }) {
  if (type !== "hidden" && type !== "gap") {
    return [el("time", { datetime: at, title: at }, clock(at)), el("span", {}, `record ${seq}`)];
  }
  return [el("span", {}, first === last ? `record ${first}` : `records ${first}–${last}`)];
}

const DRAWN = {
  thought: drawThought,
  creation: drawCreation,
  move: drawChanges,
  claim: drawChanges,
  edit: drawChanges,
  call: drawCall,
  open: drawCall,
  refused: drawCall,
  deed: drawDeed,
  other: drawSession,
  erasure: drawErasure,
  hidden: drawHidden,
  gap: drawGap,
};

const headline = (...parts) => el("p", { class: "headline" }, ...parts);
const aside = (...parts) => el("p", { class: "soft" }, ...parts);
const named = (id) => (id === null ? null : stored(id));

function facts(...parts) {
  const known = parts.filter((part) => part !== null);
  if (known.length === 0) return null;
  return el("p", { class: "facts" }, ...known.map((part) => el("span", {}, part)));
}

/** Why what a record says is not here. */
function missing(entry, record) {
  const erasure = entry.erasures.get(record.seq);
  if (erasure === undefined) return el("p", { class: "erased" }, "Its content is not in this file.");
  const { reason } = erasure.body;
  const why = reason === null ? "" : `, reason: ${plain(reason)}`;
  const text = `Erased, as record ${erasure.seq} states${why}. The record keeps its place.`;
  return el("p", { class: "erased" }, text);
}

// Thoughts.

const THOUGHTS = { plan: "Plan", analysis: "Analysis", decision: "Decision", reflection: "Reflection" };

function drawThought(entry, prove) {
  const [record] = entry.changes;
  const { body, seq } = record;
  const proof = prove(record);
  const name = proof?.isAltered ? "in the seal, with another text" : "in the seal";
  const label = { "aria-label": `R-${seq} ${name}` };
  return [
    headline(THOUGHTS[body?.type] ?? "Thought"),
    body === null ? missing(entry, record) : passage(body.content, "quote"),
    ...drawMade(entry),
    facts(`R-${seq}`, named(entry.task), named(entry.agent), proof ? button(name, proof.show, label) : null),
  ];
}

// Tasks.

const isEmpty = (value) => value === null || (Array.isArray(value) && value.length === 0);
const inWords = (value) => (isEmpty(value) ? "nothing" : Array.isArray(value) ? value.join(", ") : value);

function drawChanges(entry) {
  return [...drawMade(entry), facts(named(entry.agent))];
}

/** What a call did to its task: the steps on one line, then the rest. */
function drawMade(entry) {
  const made = entry.changes.filter(({ kind }) => kind !== "thought");
  const moves = made.filter(({ body }) => body?.set.status !== undefined).map(({ body }) => body);
  const drawn = moves.length > 0 ? drawMoves(entry.task, moves) : [];
  return [...drawn, ...made.flatMap((record) => drawChange(entry, record, moves.length > 0))];
}

function drawMoves(task, moves) {
  const passed = [moves[0].set.status[0], ...moves.map(({ set }) => set.status[1])];
  const steps = passed.flatMap((status, at) => [at > 0 ? " → " : " ", state(status)]);
  const retry = moves.find(({ set: { status: [from, to] } }) => from === "VERIFY" && to === "GATHER");
  const again = retry ? [el("p", {}, `It failed its check: attempt ${retry.attempt} begins.`)] : [];
  const gates = moves.filter(({ gate }) => gate).map(({ gate }) => drawGate(gate));
  return [headline(stored(task), ...steps), ...again, ...gates];
}

/** The rule of the project that a move to DONE satisfied, or that a person set aside. */
function drawGate({ command, exit, evidence, waived }) {
  const rule = el("code", {}, stored(cut(command, 200)));
  if (waived) return el("p", { class: "refusal" }, "A person set aside the rule that asks for ", rule, ".");
  const seen = stretches(evidence.map((seq) => [seq, seq]));
  return el("p", {}, "The project’s rule was met: ", rule, ` with exit code ${exit}, ${seen}.`);
}

function drawCreation(entry) {
  const [record, text] = entry.changes;
  const { priority, project, assignee, depends_on: needed } = record.body.set;
  const { title, description } = text?.body?.set ?? {};
  const given = (words, pair) =>
    (isEmpty(pair?.[1] ?? null) ? null : plain(`${words} ${inWords(pair[1])}`));
  return [
    headline("New task ", stored(record.task)),
    title === undefined ? missing(entry, text ?? record) : passage(title[1], "quote"),
    isEmpty(description?.[1] ?? null) ? null : passage(description[1], "quote"),
    facts(
      given("priority", priority), given("project", project), given("assigned to", assignee),
      given("waits for", needed), named(entry.agent),
    ),
  ];
}

/** What a record changed besides the state. */
function drawChange(entry, record, isMoved) {
  const { body, task } = record;
  if (body === null) return [headline(stored(task), ": new text"), missing(entry, record)];
  const { status, holder, ...others } = body.set;
  const claim = holder === undefined ? [] : drawClaim(holder, body.taken);
  if (!isMoved && Object.keys(others).length === 0) return [headline(stored(task), " ", ...claim)];
  const drawn = isMoved ? [] : [headline(stored(task), " changed")];
  if (claim.length > 0) drawn.push(el("p", {}, ...claim));
  for (const [name, [old, now]] of Object.entries(others)) {
    const title = name === "depends_on" ? "waits for" : name;
    // Each in an element of its own: a text that is read from the right must not turn the arrow round.
    drawn.push(el("div", { class: "change" },
      `${title}: `, passage(inWords(old), "from"), " → ", passage(inWords(now), "to")));
  }
  return drawn;
}

function drawClaim([old, now], taken) {
  if (now === null) return ["released"];
  if (taken === undefined) return ["claimed"];
  return ["taken over from ", stored(old ?? "nobody"), `, silent for ${count(taken.minutes, "minute")}`];
}

// Calls that changed nothing.

const ENDS = { refused: "Refused", invalid: "Not accepted", error: "Failed", cancelled: "Cancelled" };

function drawCall(entry) {
  const { type, tool, task, code, outcome, agent } = entry;
  const title = callTitle(entry);
  const subject = task === null || title.includes(task) ? [] : [": ", stored(task)];
  const drawn = [headline(title, ...subject)];
  if (type === "refused") {
    const end = ENDS[outcome] ?? "Not done";
    drawn.push(el("p", { class: "refusal" }, `${end}: ${refusalReason(entry)}.`));
  } else if (type === "open") {
    const why = "It did not end: it was still running, or its server stopped.";
    drawn.push(el("p", { class: "refusal" }, why));
  }
  const inCode = (text) => (text === null ? null : el("code", {}, plain(text, 128)));
  return [...drawn, facts(inCode(tool), inCode(code), named(agent))];
}

// What the host reported.

const SORTS = { edit: "Edited", run: "Ran", read: "Read", fetch: "Fetched", mcp: "Called", other: "Used" };
const DENIED = {
  edit: "Tried to edit", run: "Tried to run", read: "Tried to read", fetch: "Tried to fetch", mcp: "Tried to call",
};
const EVENTS = {
  "session.start": "The host started or resumed its session", "session.end": "The host ended its session",
  prompt: "A prompt reached the agent", stop: "The agent stopped", "subagent.start": "A subagent started",
  "subagent.end": "A subagent ended", compact: "The conversation was compacted",
  bind: "The host was matched to this session",
};

function drawDeed(entry) {
  const { deed, records, agent } = entry;
  if (deed === null) return [headline("An action of which no content is here"), missing(entry, records[0])];
  const { event, sort, tool, host, command, files, isErased, duration } = deed;
  const what = tool === null ? [] : [" ", el("code", {}, plain(tool, 128))];
  const title = EVENTS[event] === undefined
    ? headline((event === "tool.denied" ? DENIED[sort] ?? "Tried to use" : SORTS[sort]) ?? "Used", ...subjectOf(deed, what))
    : headline(EVENTS[event]);
  const drawn = [title];
  const failure = failureOf(deed);
  if (failure !== null) drawn.push(el("p", { class: deed.isFailed ? "refusal failure" : "soft" }, failure));
  if (deed.unjudged !== null) drawn.push(el("p", { class: "refusal" }, unjudgedText(deed.unjudged)));
  if (command !== null) drawn.push(passage(command, "command"));
  if (deed.text !== null) drawn.push(passage(deed.text, "quote"));
  for (const file of files.slice(0, MOST_FILES)) drawn.push(drawFile(file));
  if (files.length > MOST_FILES) drawn.push(aside(`And ${count(files.length - MOST_FILES, "more file")}.`));
  const text = records.find(({ kind, body }) => kind === "deed.text" && body === null);
  if (isErased && text !== undefined) drawn.push(missing(entry, text));
  const time = duration === null ? null : `${duration.toLocaleString("en")} ms`;
  const late = deed.late === null ? null : `happened at ${clock(deed.late)}, recorded later`;
  return [...drawn, facts(`seen by ${host}`, named(agent), time, late)];
}

const MOST_FILES = 8;

function subjectOf({ sort, command, files }, tool) {
  if (sort === "run" && command !== null) return [" a command"];
  if (files.length === 1 && files[0].path !== null) return [" ", stored(files[0].path)];
  return files.length > 0 ? [` ${count(files.length, "file")}`] : tool;
}

function failureOf({ event, exit, isOpen, hasId, seals }) {
  if (event === "tool.denied") return "Denied: it did not run.";
  if (exit !== null && exit !== 0) return `Failed with exit code ${exit}.`;
  if (event === "tool.failed") return "Failed.";
  if (seals) return "It sealed the session, and ended after that.";
  if (!isOpen) return null;
  return hasId ? "Its end was not reported." : "It has no id: which report is that of its end is not known.";
}

const UNJUDGED = {
  rules: "colibri.toml cannot be used", session: "its session was not known",
  ledger: "the ledger could not be read in time", host: "this host takes no denial",
};

const unjudgedText = (why) => `Not judged by the project’s rule for edits: ${UNJUDGED[why] ?? "no reason is known"}.`;

/** What was on the disk after it. */
function drawFile({ path, sha256, size }) {
  const name = path === null ? "a file outside the project, or of unknown name" : stored(path);
  if (sha256 === null) return el("p", { class: "file" }, name, " gone, or not read");
  return el("p", { class: "file" }, name, " ", el("code", {}, shortHash(sha256)), ` ${count(size ?? 0, "byte")}`);
}

// Sessions and erasures.

const HAPPENED = {
  "session.open": " opened", "session.resume": " resumed in another process", "session.seal": " sealed",
};

function drawSession(entry) {
  const [record] = entry.changes;
  const { kind, session, body } = record;
  const drawn = [headline("Session ", stored(session), HAPPENED[kind])];
  if (body === null) {
    drawn.push(missing(entry, record));
  } else if (kind === "session.open") {
    drawn.push(passage(body.intent, "quote"));
  } else if (kind === "session.seal") {
    drawn.push(el("p", {}, `${count(body.count, "thought")} under the root `, el("code", {}, body.root)));
  }
  return [...drawn, facts(named(entry.task), named(entry.agent))];
}

function drawErasure(entry) {
  const [{ body }] = entry.changes;
  if (body === null) return [headline("Something was erased")];
  const { seqs, reason } = body;
  const which = list(seqs.slice(0, 20).map(String)) + (seqs.length > 20 ? " …" : "");
  return [
    headline(`Content of ${seqs.length === 1 ? "record" : "records"} ${which} erased`),
    passage(reason === null ? "No reason is given." : `Reason: ${reason}`, "change"),
  ];
}

// What is not there.

function drawHidden({ records, task, session }) {
  if (task === null && session === null) {
    const which = count(records.length, "record that names", "records that name");
    return [aside(`${which} no session or task of this report; only their headers are here`)];
  }
  const about = task === null ? [] : [" about ", stored(task)];
  const place = session === null ? [] : [" in session ", stored(session)];
  return records.some(({ kind }) => kind === "thought")
    ? [aside("A thought", ...about, ...place, "; its text is not in this file")]
    : [aside("A call", ...about, ...place, "; what it asked and how it ended is not in this file")];
}

function drawGap({ first, last }) {
  const which = first === last ? `Record ${first} is` : `Records ${first} to ${last} are`;
  return [aside(`${which} not in this file; “Can I trust it?” says more`)];
}

/** The records behind an entry, as they are in the log; made when they are asked for. */
function details({ records, type }, prove) {
  if (type === "gap") return null;
  const node = el("details", {}, el("summary", {}, count(records.length, "record")));
  node.addEventListener("toggle", async () => {
    if (!node.open || node.childElementCount > 1) return;
    const place = el("div", { class: "records" });
    node.append(place);
    const shown = records.slice(0, MOST_RECORDS);
    place.append(...await Promise.all(shown.map((record) => drawRecord(record, prove(record)))));
    if (records.length > shown.length) place.append(aside(`And ${records.length - shown.length} others.`));
  });
  return node;
}
