// The words of the page: tables from the codes of docs/formats.md and of the tools to sentences that need
// no knowledge of Colibri. Pure.

// The lines of the verdict: line → its name, and state → what that means.
export const LINES = {
  intact: {
    name: "Intact",
    yes: "Every hash was computed again: each record fits its own hash and the record before it.",
    no: "Something was altered after it was recorded.",
  },
  complete: {
    name: "Complete",
    yes: "No record that this report needs is missing.",
    no: "Something is missing, or does not belong here.",
  },
  sealed: {
    name: "Sealed",
    yes: "The session is closed for good: its thoughts are bound together under one root.",
    no: "The seal does not fit the thoughts that it should cover.",
    open: "Not sealed, or not all of it: more thoughts could still be added when this was written.",
    none: "No session here could be sealed.",
  },
  rules: {
    name: "Rules kept",
    yes: "Every task followed the allowed steps, and every change was made by a recorded call.",
    no: "A rule was broken that Colibri enforces, so Colibri did not write these records.",
  },
};
export const SIGNS = { yes: "✓", no: "✗", open: "–", none: "–", "not checked": "?" };
export const NOT_THE_VALUE = "Not as the value you pasted says. By itself nothing here is broken.";
export const NOT_CHECKED_LINE = "Not checked, because of what was found.";

/** What was erased on purpose, by its number. */
export const erasedText = (number) => (number === 0
  ? "No text was erased."
  : `The content of ${count(number, "record")} was erased on purpose; the records keep their places.`);

/** The calls without an end, by their number. */
export const openCallsText = (number) => (number === 0
  ? "Every call has ended."
  : "A call without an end was still running, or its server stopped. It changed nothing.");

// The verdict in one line.

export const UNCOVERED = ["head-not-covered", "checkpoint-not-covered"];
export const OUTSIDE_CODES = ["root-differs", "head-differs", "checkpoint-differs", "truncated", ...UNCOVERED];

/** Whether no value was compared, because the records do not fit together without one. */
export const isSkipped = ({ not_checked: notes }) => notes.some(({ code }) => code === "skipped");

/** Whether nothing is wrong but that the reader's value does not fit. */
export const isOnlyTheValue = (verdict) =>
  verdict.verdict === "bad" && !isSkipped(verdict) &&
  verdict.findings.every(({ code }) => OUTSIDE_CODES.includes(code));

export const isUncovered = ({ findings }) => findings.some(({ code }) => UNCOVERED.includes(code));

/** What the evidence is about, in a word. */
export const nounOf = ({ bundle }) => NOUNS[bundle?.kind] ?? "report";
const NOUNS = { session: "session", thoughts: "session", task: "task", log: "project" };

/** Whether the end of the evidence is known: nothing of a session can come after its seal. */
export const hasItsEnd = ({ bundle: { kind }, lines: { sealed } }) => kind === "session" && sealed === "yes";

/** Why the last records could be missing without a trace; null where they cannot. */
export function mayLackItsEnd(verdict) {
  if (hasItsEnd(verdict)) return null;
  const { kind, head } = verdict.bundle;
  const why = kind === "session" ? "This session is not sealed" : "No seal marks the end";
  return `${why}, so records after ${head.seq} could be missing without a trace.`;
}

/** A few words, and what they rest on, about a "report" or a "file"; `matched` names what was compared with it. */
export function headline(verdict, what, matched = "") {
  if (isOnlyTheValue(verdict)) return [`This is another ${nounOf(verdict)}`, "than the one you were told about."];
  if (isUncovered(verdict)) return ["Cannot compare.", "This file does not hold the record that your value belongs to."];
  if (verdict.verdict === "bad") return [`Do not trust this ${what}.`, "Its records were altered, or some are missing."];
  if (verdict.verdict === "cannot tell") return ["Could not be checked.", "Nothing below is proven."];
  const fits = `All ${count(verdict.bundle.records, "record")} in this file fit together`;
  if (matched !== "") return ["Intact.", `${fits}, and it matches the ${matched} you received.`];
  const open = mayLackItsEnd(verdict) === null ? "" : " More records may follow.";
  return ["Intact.", `${fits}. Only a root you received separately can rule out a complete rewrite.${open}`];
}

// §10: what was found → how to say it of a record.
export const FINDINGS = {
  unreadable: "cannot be read",
  "too-large": "has a line that is longer than a verifier reads",
  "malformed-bundle": "is not in the format of a bundle",
  "unknown-version": "is in a version that this page does not know",
  "empty-bundle": "holds no records",
  "head-not-covered": "is not in this file, so the head you pasted cannot be compared",
  "checkpoint-not-covered": "does not lead to the checkpoint you pasted, so the two cannot be compared",
  "bad-checkpoint": "is not covered by the checkpoint that comes with the evidence",
  "checkpoint-differs": "belongs to a log that does not have the checkpoint you pasted",
  "bad-header": "is not a record as Colibri writes them",
  "foreign-record": "belongs to another log",
  "wrong-order": "is in the wrong place",
  "wrong-head": "is not the last record that the evidence itself names",
  "broken-link": "does not follow the record before it",
  "altered-header": "was altered: the record after it follows a different one",
  "stray-payload": "has content that does not belong here",
  "altered-payload": "has content that was altered: it is not what was recorded",
  "bad-payload": "has content that Colibri does not write",
  "head-differs": "is not the record that the head you pasted belongs to",
  truncated: "is missing: the evidence was truncated before it",
  "missing-record": "is missing",
  "missing-payload": "lost its content, and no erasure accounts for it",
  "stray-record": "does not belong in this evidence",
  "second-seal": "seals a session that was already sealed",
  "thought-after-seal": "is a thought that came after its session was sealed",
  "wrong-index": "is a thought with the wrong number",
  "broken-thought-chain": "is a thought that does not follow the one before it",
  "wrong-count": "is a seal over another number of thoughts",
  "wrong-range": "is a seal over other thoughts",
  "wrong-root": "is a seal with a root that its thoughts do not have",
  "change-after-seal": "is a change that came after its session was sealed",
  "bad-proof": "has a proof that does not hold",
  "missing-proof": "has no proof that the seal covers it",
  "root-differs": "is a seal with a different root than the one you pasted",
  "second-open": "opens a session that was already open",
  "outside-session": "belongs to a session that was not open yet",
  "bad-pair": "does not fit the call that it belongs to",
  "stray-change": "is a change that no call accounts for",
  "bad-repeat": "claims to repeat a call that it cannot repeat",
  "wrong-digest": "begins a call that was given a different text than it recorded",
  "missing-change": "ends a call whose change is not there",
  "wrong-server": "was written by a process after another process had taken over the session",
  "bad-creation": "does not create a task as tasks are created",
  "wrong-version": "has a version that does not follow",
  "wrong-change": "changes something that was not as it says",
  "change-after-end": "changes a task that had ended",
  "illegal-move": "moves a task where it could not go",
  "wrong-attempt": "has the wrong number of attempts",
  "unknown-task": "names a task that does not exist",
  "dependency-cycle": "makes a task wait for itself",
  "blocked-move": "moves a task on while one that it waits for is open",
  "missing-evidence": "calls a task done without a recorded thought about it",
  "wrong-holder": "gives a task to a session that did not ask for it, or moves it without taking it",
  "claimed-change": "changes a task that another session held",
  "wrong-takeover": "takes over a task in a way that does not fit the records",
  "wrong-gate": "calls a task done under a rule that the commands it names do not satisfy",
  "bad-erasure": "erases what cannot be erased",
  "erased-payload": "should be erased, but its content is here",
};

/** A finding as a sentence. */
export function findingText({ code, seq, detail }) {
  const what = FINDINGS[code];
  const subject = seq === null ? "The evidence" : `Record ${seq}`;
  return what === undefined || (seq === null && !ABOUT_ALL.has(code))
    ? `${subject}: ${detail}`
    : `${subject} ${what}`;
}

const ABOUT_ALL = new Set(
  "unreadable too-large malformed-bundle unknown-version empty-bundle checkpoint-not-covered".split(" "),
);

// §11: what was not checked → why that matters; of what can be counted, `number` is how many there are.
export const NOT_CHECKED = {
  truth: "Whether what the agents wrote is true, and whether anything happened that was never recorded.",
  clock: "Whether the clock was right: the times are the server’s own. The numbers give the order.",
  arguments: "Whether a call’s arguments (other than its texts) and its answer fit what it recorded: only hashes are kept.",
  "outside-head":
    "Whether the whole log was rewritten, or its end cut off. A root or head that you received separately shows it.",
  "outside-checkpoint": "Whether the checkpoint in this file was published: compare it with the published one.",
  "outside-root": "Whether this seal’s root is the one that was passed on: compare the two.",
  size: "How many thoughts the pasted root covers: it came without the number before the colon.",
  gaps: (_, detail) =>
    `Whether ${leftOut(detail)} should be here: only the numbers show that records were left out, and nothing ` +
    "shows that what is before and after them is of the same log.",
  undisclosed: (number) => `The content of ${count(number, "record")} of other work: only headers are in this file.`,
  erased: (number) => `The content of ${count(number, "erased record")}.`,
  evidence: (number, detail) =>
    `Whether a thought about ${/T-[0-9]{1,9}/.exec(detail)?.[0] ?? "a task"}${number > 1 ? " and others" : ""} was ` +
    "recorded before the task ended. It would be in another session, which is not in this file.",
  takeover: (number) =>
    `For ${count(number, "task")} that a session took over from another: how long the other had been silent.`,
  gate: (number) =>
    `For ${count(number, "move")} to DONE: whether the command that a rule asks for was the right one, or ran after the ` +
    "last edit. Not all of it is here.",
  repeats: (number) =>
    `For ${count(number, "call")} sent again with the same key: whether the first one was the same. It is not in this file.`,
  rules: "The session’s other thoughts, and all calls and tasks.",
  skipped: "Seals, calls and tasks, because the records themselves are damaged.",
};

/** What is open, as a sentence. */
export function openText({ code, detail }) {
  const said = NOT_CHECKED[code] ?? detail;
  return typeof said === "string" ? said : said(numberIn(detail), detail);
}

/** The records that are not in a file, as the note about its gaps names them: "2 in all, 5 to 5, 9 to 12". */
export function leftOut(detail) {
  const named = [...detail.matchAll(/([0-9]{1,16}) to ([0-9]{1,16})/g)].map(([, ...ends]) => ends.map(Number));
  return stretches(named, numberIn(detail));
}

const numberIn = (detail) => Number(/[0-9]{1,16}/.exec(detail)?.[0] ?? 1);

// Why a call did not do what it was asked; {} is filled from what it met.
const REFUSALS = {
  ERR_NOT_FOUND: () => "it named something that does not exist",
  ERR_VERSION_CONFLICT: () => "somebody else had changed the task in the meantime",
  ERR_CYCLE: () => "the task would have waited for itself",
  ERR_INVALID_TRANSITION: ({ status }) =>
    status === null ? "the task could not go there" : `the task was in ${status} and could not go there`,
  ERR_BLOCKED: ({ waiting }) =>
    waiting.length === 0
      ? "the task waits for others that are not finished"
      : `the task waits for ${list(waiting.slice(0, 5))}, which ${waiting.length === 1 ? "was" : "were"} not finished yet`,
  ERR_WRITEBACK_REQUIRED: () => "no thought about the task had been recorded, so it could not be called done",
  ERR_GATE: () => "the command that colibri.toml asks for had not been seen, so it could not be called done",
  ERR_CLAIMED: ({ holder }) =>
    holder === null
      ? "another session held the task, or another process had resumed this session"
      : `session ${holder} held the task`,
  ERR_KEY_REUSED: () => "its key had been used before with different arguments",
  ERR_SESSION_NOT_FOUND: () => "no such session exists",
  ERR_SESSION_EXISTS: () => "a session with this name already existed",
  ERR_ALREADY_FINALIZED: () => "the session was already sealed, and nothing can be added to it",
  ERR_NOT_FINALIZED: () => "the session was not sealed yet",
  ERR_NO_RECORDS: () => "the session had no thoughts that could be sealed",
  INVALID_PARAMS: () => "its arguments did not have the right form; only their size and hash were kept",
  "-32602": () => "the tool does not exist or was not available",
  HANDLER_ERROR: () => "it failed inside the server",
  AUDIT_ENTER_FAILED: () => "it could not be recorded, so it did not run",
};
const OUTCOMES = {
  refused: "a rule of the server did not allow it",
  invalid: "it was not a valid call",
  error: "it failed inside the server",
  cancelled: "it was cancelled before it ran",
};

/** Why the call of an entry changed nothing. */
export function refusalReason({ code, outcome, met }) {
  return REFUSALS[code]?.(met) ?? OUTCOMES[outcome] ?? "";
}

// tool → what it did, and what a call that did not get through tried to do
const TOOLS = {
  task_create: ["Created a task", "Tried to create a task"],
  task_get: ["Looked at a task", "Tried to look at a task"],
  task_update: ["Asked for a change that changed nothing", "Tried to change a task"],
  task_list: ["Listed tasks", "Tried to list tasks"],
  task_next_actions: ["Asked what to do next", "Tried to take the next task"],
  audit_session_start: ["Opened a session", "Tried to open a session"],
  thought_record: ["Recorded a thought", "Tried to record a thought"],
  thought_record_list: ["Read recorded thoughts", "Tried to read recorded thoughts"],
  merkle_finalize: ["Sealed the session", "Tried to seal a session"],
  merkle_root: ["Asked for the seal", "Tried to ask for the seal"],
  audit_verify_chain: ["Had the log verified", "Tried to have the log verified"],
  skill_list: ["Listed skills", "Tried to list skills"],
  server_ping: ["Checked that the server answers", "Tried to reach the server"],
  server_health: ["Asked for the server’s health", "Tried to ask for the server’s health"],
};

/** What the call of an entry did, or tried to do. */
export function callTitle({ type, tool, task, repeats, arguments: given }) {
  const tried = type !== "call";
  if (repeats !== null) return `Sent the call of record ${repeats} again; it happened only once`;
  if (tried && tool === "task_update" && given?.status !== undefined) {
    const steps = [given.status].flat();
    return `Tried to move ${task ?? "a task"} to ${list(steps)}${steps.length > 1 ? " in one call" : ""}`;
  }
  return TOOLS[tool]?.[tried ? 1 : 0] ?? (tried ? "Tried to call a tool" : "Called a tool");
}

export const count = (number, one, many = `${one}s`) =>
  `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

/** "a", "a and b", "a, b and c" */
export function list(words) {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

/** [[1, 4], [9, 9]] → "records 1 to 4 and 9" */
export function stretches(ranges, number = ranges.length) {
  const texts = ranges.slice(0, FEW).map(([first, last]) => (first === last ? `${first}` : `${first} to ${last}`));
  if (number > FEW) texts.push(count(number - FEW, "other stretch", "other stretches"));
  const isOne = ranges.length === 1 && ranges[0][0] === ranges[0][1];
  return `${isOne ? "record" : "records"} ${list(texts)}`;
}

const FEW = 4;

/** The verifiers name a stretch by both its ends: "63 to 63" is 63. */
export const numbersIn = (text) => text.replace(/\b(\d+) to \1\b/g, "$1");

/** 2026-03-01T09:30:00.000005Z → 1 March 2026 */
export function day(at) {
  const [year, month, date] = at.slice(0, 10).split("-");
  return `${Number(date)} ${MONTHS[Number(month) - 1]} ${year}`;
}

const MONTHS = [
  "January", "February", "March", "April", "May", "June",
  "July", "August", "September", "October", "November", "December",
];

/** 09:30:00.000, to the millisecond: what one agent does in a second has an order, too. */
export const clock = (at) => at.slice(11, 23);

const second = (at) => at.slice(11, 19);

/** From one moment to another, the day said once if it is the same. */
export function span(first, last) {
  const begin = `${day(first)}, ${second(first)}`;
  if (first.slice(0, 19) === last.slice(0, 19)) return `${begin} UTC`;
  const end = day(first) === day(last) ? second(last) : `${day(last)}, ${second(last)}`;
  return `${begin} to ${end} UTC`;
}

export const shortHash = (hash) => `${hash.slice(0, 8)}…${hash.slice(-4)}`;
