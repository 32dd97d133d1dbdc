// From the text of an evidence bundle (docs/formats.md §8) to what the page tells: sessions, tasks and
// the entries of the timeline. Pure: no document, no clock. Whether it may be believed is for verify()
// to say, which is given the same text and refuses all that JSON.parse could read in another way.

import { hex, leafHash } from "../verify.mjs";
import { deedOf, noteSealing, useOf } from "./deeds.mjs";

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** The lines of a bundle, its records with `body`, which is null where no payload is there. */
export function readBundle(text) {
  const lines = text.split("\n").filter((line) => line.trim() !== "").map((line) => JSON.parse(line));
  const [{ log, scope }, { head }] = [lines[0], lines.at(-1)];
  const records = lines.filter((line) => "header" in line).map(({ header, body }) =>
    ({ ...readJson(header), header, body: body === undefined ? null : readJson(body) }));
  return { log, scope, head, records, proofs: lines.filter((line) => "path" in line) };
}

/** The bytes of base64. */
export function decode(base64) {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/** Nearly all of it is ASCII, which needs no decoding: a third of the time that a large page takes. */
function readJson(base64) {
  const binary = atob(base64);
  return JSON.parse(/[\u0080-\u00ff]/.test(binary) ? utf8.decode(decode(base64)) : binary);
}

/** Everything that the page shows of a bundle. */
export function derive({ log, scope, head, records, proofs }) {
  const erasedBy = new Map(); // seq → the erasure that names it
  for (const record of records) {
    if (record.kind !== "erasure") continue;
    for (const seq of record.body?.seqs ?? []) erasedBy.set(seq, record);
  }
  const about = scopeOf(scope);
  const own = records.filter(ownIn(about));
  const entries = entriesOf(records, erasedBy, new Set(own));
  noteSealing(entries);
  const tasks = replay(entries);
  const sessions = sessionsOf(records, proofs, erasedBy);
  return {
    log,
    head,
    scope: about,
    own,
    ...tasksOf(own),
    recordCount: records.length,
    openers: openersOf(records),
    runs: runsOf(records),
    entries: joinHidden(entries, tasks, new Set(sessions.map(({ id }) => id))),
    tasks: [...tasks.values()].sort((a, b) => (a.id < b.id ? -1 : 1)),
    sessions,
  };
}

/** Session → the agent that opened it. */
const openersOf = (records) =>
  new Map(records.filter(({ kind }) => kind === "session.open").map(({ session, agent }) => [session, agent]));

const isShown = (record) => record.body !== null;
const isChange = ({ kind }) => kind === "task" || kind === "task.text";

/** The tasks that these records created, ended, and changed or thought about once they were there. */
export function tasksOf(records) {
  const named = (fits) => new Set(records.filter(fits).map(({ task }) => task).filter((task) => task !== null));
  const isChangeTo = (status) => ({ kind, body }) => kind === "task" && body?.set.status?.[1] === status;
  const isCreation = ({ kind, body }) => kind === "task" && body?.version === 1;
  const creations = new Set(records.filter(isCreation).map(({ call }) => call)); // they write the text, too
  return {
    created: named(isCreation),
    workedOn: named((record) => record.kind === "thought" || (isChange(record) && !creations.has(record.call))),
    finished: named(isChangeTo("DONE")),
    cancelled: named(isChangeTo("CANCELLED")),
  };
}

/** Whether a record is part of what the page is about: of a session, what names it, and nothing that
 * others did before or meanwhile. */
const ownIn = ({ kind, id }) => (record) => kind !== "session" || record.session === id;

/** Whether an entry shows work that the page is not about. */
export const isOthers = ({ isOwn, type }) => !isOwn && !["erasure", "hidden", "gap"].includes(type);

function scopeOf(scope) {
  if (scope === null) return { kind: "log", id: null };
  const [[kind, id]] = Object.entries(scope);
  return { kind: kind === "thoughts" ? "session" : kind, id };
}

// The timeline: one entry for each call, with all that it wrote, at the record by which it took effect; and
// one for each action that a host reported, with its begin and its end.

const CALL = ["call.enter", "call.exit"];
const DEED = ["deed", "deed.text"];
const OTHER = ["session.open", "session.resume", "session.seal"];

function entriesOf(records, erasedBy, own) {
  const acts = new Map(); // of a call, or of a use of a tool → its records
  const keys = new Map(); // call → the key of its act
  const entries = [];
  let before = 0;
  for (const record of records) {
    if (record.seq > before + 1) entries.push(gap(before + 1, record.seq - 1));
    before = record.seq;
    if (record.kind === "erasure") {
      entries.push(entryOf([record], erasedBy, own));
      continue;
    }
    if (!keys.has(record.call)) keys.set(record.call, useOf(record) ?? record.call);
    const key = keys.get(record.call);
    if (acts.has(key)) acts.get(key).push(record);
    else acts.set(key, [record]);
  }
  for (const written of acts.values()) entries.push(entryOf(written, erasedBy, own));
  return entries.sort((a, b) => a.seq - b.seq);
}

function gap(first, last) {
  return { type: "gap", seq: first, first, last, records: [], changes: [], task: null, isOwn: false };
}

function entryOf(records, erasedBy, own) {
  const find = (kind) => records.find((record) => record.kind === kind) ?? null;
  const [enter, exit] = [find("call.enter"), find("call.exit")];
  const changes = records.filter(({ kind }) => !CALL.includes(kind) && !DEED.includes(kind));
  const main = changes[0] ?? exit ?? enter ?? records.findLast(({ kind }) => kind === "deed") ?? records[0];
  const named = (name) => records.map((record) => record[name]).find((id) => id !== null) ?? null;
  const entry = {
    seq: main.seq,
    at: main.at,
    first: records[0].seq,
    last: records.at(-1).seq,
    records,
    changes,
    tool: enter?.body?.tool ?? exit?.body?.tool ?? null,
    arguments: enter?.body?.arguments ?? null,
    outcome: exit?.body?.outcome ?? null,
    code: exit?.body?.code ?? null,
    duration: exit?.body?.duration_ms ?? null,
    repeats: exit?.body?.repeats ?? null,
    deed: deedOf(records),
    isOwn: records.some((record) => own.has(record)),
    session: named("session"),
    task: named("task"),
    agent: named("agent"),
    erasures: new Map(records.filter((r) => erasedBy.has(r.seq)).map((r) => [r.seq, erasedBy.get(r.seq)])),
  };
  return { ...entry, type: typeOf(entry) };
}

/** thought, creation, move, claim, edit, call, refused, open, deed, other (of a session), erasure, hidden or
 * gap; a thought that came with a change of its task is a thought. */
function typeOf({ records, changes, outcome, erasures }) {
  if (!records.some(isShown) && erasures.size === 0) return "hidden";
  // A thought of another session may be undisclosed while the change that came with it is not.
  const change = changes.find((record) => isShown(record) || erasures.has(record.seq)) ?? changes[0];
  if (change?.kind === "erasure") return "erasure";
  if (OTHER.includes(change?.kind)) return "other";
  if (change !== undefined) return change.kind === "thought" ? "thought" : typeOfChange(change);
  if (!records.some(({ kind }) => CALL.includes(kind))) return "deed";
  if (outcome === null) return "open";
  return outcome === "ok" ? "call" : "refused";
}

/** thought, creation, move, claim, edit, or null for what is none of these. */
export const kindOf = (record) =>
  (record.kind === "thought" ? "thought" : record.kind.startsWith("task") ? typeOfChange(record) : null);

/** What was done to a task; where its status changes, the first record says so. */
function typeOfChange({ kind, body }) {
  if (kind !== "task" || body === null) return "edit";
  if (body.version === 1) return "creation";
  if ("status" in body.set) return "move";
  return Object.keys(body.set).join() === "holder" ? "claim" : "edit";
}

/** Neighbours of which only headers are there become one entry, unless they name what is shown here. */
function joinHidden(entries, tasks, sessions) {
  const joined = [];
  for (const entry of entries) {
    const last = joined.at(-1);
    if (entry.type !== "hidden" || tasks.has(entry.task) || sessions.has(entry.session)) {
      joined.push(entry);
    } else if (last?.isJoined) {
      last.records.push(...entry.records);
      last.last = Math.max(last.last, entry.last);
    } else {
      joined.push({ ...entry, task: null, session: null, records: [...entry.records], isJoined: true });
    }
  }
  return joined;
}

// The tasks, by replaying their records; what a refused call met is noted on its entry.

const TERMINAL = ["DONE", "CANCELLED"];

function replay(entries) {
  const tasks = new Map();
  for (const entry of entries) {
    for (const record of entry.changes) {
      if (isChange(record) && entry.type !== "hidden") change(tasks, record, entry); // else it is of other work
      if (record.kind === "thought" && tasks.has(record.task)) noteThought(tasks.get(record.task), entry);
      if (record.kind === "session.seal") release(tasks, record.session);
    }
    if (entry.type === "refused") entry.met = met(tasks, entry);
  }
  for (const task of tasks.values()) task.waits = isEnded(task) ? [] : openOf(tasks, task.depends_on);
  return tasks;
}

/** Whether a task is done or cancelled. */
export const isEnded = (task) => TERMINAL.includes(task?.status);

/** Those that have not ended, as far as is known here. */
const openOf = (tasks, ids) => ids.filter((id) => !isEnded(tasks.get(id)));

/** A claim ends with its session, as it does with its task. */
function release(tasks, session) {
  for (const task of tasks.values()) if (task.holder === session) task.holder = null;
}

function change(tasks, record, entry) {
  if (!tasks.has(record.task)) tasks.set(record.task, newTask(record));
  const task = tasks.get(record.task);
  if (record.body === null) {
    // The text was erased, or is not in the bundle: what the task was called is unknown from here on.
    Object.assign(task, { title: null, description: null, erased: entry.erasures.has(record.seq) });
    return;
  }
  const { set, attempt = task.attempt } = record.body;
  for (const [name, [, now]] of Object.entries(set)) task[name] = now;
  if (isEnded(task)) task.holder = null;
  task.attempt = attempt;
  task.changed = record.at;
  if ("status" in set) {
    const { seq, at, session, agent } = record;
    task.path.push({ status: set.status[1], from: set.status[0], seq, at, session, agent });
  }
}

/** Of a thought: during which attempt at its task it was recorded. */
function noteThought(task, entry) {
  task.thoughts += 1;
  entry.attempt = task.attempt;
}

function newTask({ task, at, seq }) {
  return {
    id: task, created: at, changed: at, seq, title: null, description: null, erased: false,
    status: null, attempt: 1, priority: null, assignee: null, project: null, depends_on: [], holder: null,
    thoughts: 0, path: [],
  };
}

/** The state of the task that a refused call was about, and the tasks that it still waited for. */
function met(tasks, { task: id, arguments: given }) {
  const task = tasks.get(id);
  if (task === undefined) return { status: null, waiting: [], holder: null };
  const needed = Array.isArray(given?.depends_on) ? given.depends_on : task.depends_on;
  const waiting = openOf(tasks, needed.filter((other) => tasks.has(other)));
  return { status: task.status, attempt: task.attempt, waiting, holder: task.holder };
}

// The sessions of which anything but headers is there. A thought has its place in its session, and where
// the others are not here, its proof's path to the root.

function sessionsOf(records, proofs, erasedBy) {
  const proofOf = new Map(proofs.map((proof) => [proof.seq, proof]));
  const sessions = new Map();
  for (const record of records) {
    const { kind, session: id, seq } = record;
    if (!["session.open", "thought", "session.seal"].includes(kind)) continue;
    if (!sessions.has(id)) sessions.set(id, { id, opening: null, thoughts: [], seal: null, shown: false });
    const session = sessions.get(id);
    session.shown ||= isShown(record) || erasedBy.has(seq);
    if (kind === "thought") {
      const { index, path } = proofOf.get(seq) ?? { index: session.thoughts.length, path: null };
      session.thoughts.push({ record, index, path });
    }
    if (kind === "session.open") session.opening ??= record;
    if (kind === "session.seal") session.seal ??= record;
  }
  return [...sessions.values()].filter((session) => session.shown);
}

// What a value from elsewhere covers. Each record names the hash of the one before it, so a value that
// names one record covers all before it, back to the first that is not here.

function runsOf(records) {
  const runs = []; // [first, last] of records without a gap
  for (const { seq } of records) {
    if (runs.at(-1)?.[1] === seq - 1) runs.at(-1)[1] = seq;
    else runs.push([seq, seq]);
  }
  return runs;
}

/** The stretches of records that a root or head covers, and those that it leaves. */
export function coverage({ runs, sessions }, { root, head, checkpoint }) {
  const end = checkpoint && Math.min(checkpoint.size, runs.at(-1)[1]);
  const named = end ? [end] : head === null ? thoughtsUnder(root, sessions) : [head.seq];
  const [covered, left] = [[], []];
  for (const [first, last] of runs) {
    const end = named.findLast((seq) => first <= seq && seq <= last) ?? first - 1;
    if (end >= first) covered.push([first, end]);
    if (end < last) left.push([end + 1, last]);
  }
  return { covered, left };
}

/** A root as it is handed out, with its size, which it does not commit to. */
export const rootOf = ({ count, root }) => `${count}:${root}`;

/** Whether a root, with or without its size, is that of a seal. */
export const isRootOf = (root, seal) => seal != null && [seal.root, rootOf(seal)].includes(root);

function thoughtsUnder(root, sessions) {
  const sealed = sessions.filter(({ seal }) => isRootOf(root, seal?.body));
  return sealed.flatMap(({ thoughts }) => thoughts.map(({ record }) => record.seq)).sort((a, b) => a - b);
}

/** Whose hash this is, if it is one of this evidence and no root: {what, seq}, or null. */
export function knownHash({ entries, sessions }, hash) {
  if (hash.includes(":") || sessions.some(({ seal }) => seal?.body?.root === hash)) return null;
  const records = entries.flatMap((entry) => entry.records);
  const at = records.findIndex(({ header }) => hex(leafHash(decode(header))) === hash);
  if (at !== -1) return { what: "record", seq: records[at].seq };
  const content = records.find(({ payload }) => payload === hash);
  if (content !== undefined) return { what: "content", seq: content.seq };
  const next = records.find(({ prev, seq }) => prev === hash && seq > 1);
  return next === undefined ? null : { what: "absent", seq: next.seq - 1 };
}

/** All that can be searched for in an entry, in lower case. */
export function searchText(entry) {
  const words = [entry.tool, entry.code, entry.outcome, entry.session, entry.task, entry.agent];
  for (const record of entry.records) words.push(String(record.seq), ...textsIn(record.body));
  return words.filter(Boolean).join("\n").toLowerCase();
}

function textsIn(value) {
  if (typeof value === "string") return [value];
  return value === null || typeof value !== "object" ? [] : Object.values(value).flatMap(textsIn);
}
