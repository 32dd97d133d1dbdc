// Check a Colibri evidence bundle, in a browser or under Node, with nothing but the language.
//
//     import { verify } from "./verify.mjs";
//     const verdict = await verify(file, { root, head, checkpoint });
//
// What the user has from elsewhere may be null: root "SIZE:HEX", head {seq, leaf}, checkpoint
// {log, size, root}.
//
// `file` is a Blob, bytes, or a function that answers the chunks of a file from its beginning. It is
// read line by line. Nothing is fetched. This follows docs/formats.md (§ is a section there) and gives
// the same verdict as colibri_verify.py, whose parts it has in the same order; after the tables, that
// of §9:
//
//      1 read        lines of at most 16 MiB
//      2 shape       each line exactly as §8 has it
//      3 headers     canonical, with exactly the members of a header
//      4 order       by ascending seq
//      5 links       each header names the leaf of the one before it
//      6 gaps        none but where the kind of bundle has them
//      7 payloads    those that the headers commit to, with exactly the members of their kind
//      8 erasures    of what can be erased, and it is gone
//      9 contents    all that the kind of bundle discloses (§8), and nothing else
//     10 sessions    opened once, thoughts in a row, sealed once under the right root
//     11 proofs      for thoughts whose session is not here as a whole; for the last record, that a
//                    later checkpoint covers it
//     12 calls       enter, the changes that the tool makes, exit; its arguments fit these
//     13 tasks       replayed by the rules of §6
//     14 outside     the root, the head and the checkpoint that the user has from elsewhere
//     15 verdict     and what was not checked
//
// Each record goes through all of them before the next is read. Of steps 1 to 9, only what the first
// that finds anything has found is told, and then nothing of 10 to 14. A bundle with a scope is read
// twice more before that, to know which records belong into it.

const MAX_LINE = 16 * 1024 * 1024;
const MAX_DEPTH = 64;
const MAX_ITEMS = 200_000; // of all arrays and objects of a value
const MAX_LINKS = 5_000; // of dependencies, from one end at least
const MAX_LISTED = 100; // of each list; also characters of a text that is shown
const MAX_NAME = 128; // characters of what a client says of itself
const MAX_COMMAND = 4096; // characters
const MAX_PATTERN = 1024; // characters
const RUNS = 64; // commands of a session that are remembered, the last ones
const NOWHERE = Number.MAX_SAFE_INTEGER + 1; // beyond every record
const FORMAT = "colibri-bundle/2";
const ZEROS = "0".repeat(64);

/** Steps 1 and 2: why this is no bundle, as a finding. */
class Unfit extends Error {
  constructor(code, fact = "") {
    super(code);
    Object.assign(this, { code, fact });
  }
}

/** A list that is cut, and how many there were. */
class Listed {
  items = [];
  count = 0;

  add(item) {
    this.count += 1;
    if (this.items.length < MAX_LISTED) this.items.push(item);
  }
}

/** Names that were seen, in eight bytes each: 76 bits of a hash under a key that nobody knows. */
class Seen {
  key = crypto.getRandomValues(new Uint8Array(16));
  shelves = new Map();

  has(name) {
    const [shelf, first, second] = this.place(name);
    for (let at = 0; at < shelf.size; at += 2) {
      if (shelf.marks[at] === first && shelf.marks[at + 1] === second) return true;
    }
    return false;
  }

  add(name) {
    const [shelf, first, second] = this.place(name);
    if (shelf.size === shelf.marks.length) {
      const marks = new Uint32Array(2 * Math.ceil(shelf.size * 0.55 + 2)); // a tenth more
      marks.set(shelf.marks);
      shelf.marks = marks;
    }
    shelf.marks[shelf.size] = first;
    shelf.marks[shelf.size + 1] = second;
    shelf.size += 2;
  }

  place(name) {
    const hash = new DataView(sha256(this.key, encoder.encode(name)).buffer);
    const number = hash.getUint16(0) >> 4;
    if (!this.shelves.has(number)) this.shelves.set(number, { marks: new Uint32Array(0), size: 0 });
    return [this.shelves.get(number), hash.getUint32(2), hash.getUint32(6)];
  }
}

/** The stretches of missing records, ascending; a place is a record's number in the bundle. */
class Gaps {
  first = [];
  last = [];
  places = []; // that come before it

  add(first, last) {
    this.places.push(first - 1 - this.missing(this.first.length));
    this.first.push(first);
    this.last.push(last);
  }

  /** How many records are missing in the first gaps. */
  missing(number) {
    return number > 0 ? this.last[number - 1] - this.places[number - 1] : 0;
  }

  /** Whether a record between these two, neither included, is missing from the bundle. */
  between(first, last) {
    const at = countUpTo(this.first, last - 1);
    return at > 0 && this.last[at - 1] > first;
  }

  /** Where a record is in the bundle, counted from 0; -1 if it falls into a gap. */
  place(seq) {
    const at = countUpTo(this.first, seq);
    return at > 0 && seq <= this.last[at - 1] ? -1 : seq - 1 - this.missing(at);
  }

  seq(place) {
    return place + 1 + this.missing(countUpTo(this.places, place));
  }
}

/** How many of ascending numbers are not greater than this. */
function countUpTo(numbers, most) {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] <= most) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A byte for each record that has gone by: what is known of it. */
class Marks {
  bytes = new Uint8Array(1024);
  size = 0;

  push(mark) {
    if (this.size === this.bytes.length) {
      const bytes = new Uint8Array(this.size + (this.size >> 1));
      bytes.set(this.bytes);
      this.bytes = bytes;
    }
    this.bytes[this.size] = mark;
    this.size += 1;
  }
}

const [THERE, ERASABLE, ERASED, WANTED] = [1, 2, 4, 8]; // its payload; its kind; by an erasure; by §8

/** A bundle under examination. */
class Case {
  log = "";
  kind = "log"; // or session, task, thoughts
  session = null; // the scope, of which one is null at least
  task = null;
  // What the readings before the last have found out; of a log they are not needed.
  gaps = new Gaps();
  start = NOWHERE; // of the stretch, within which no record is missing
  end = NOWHERE;
  reach = NOWHERE; // where the last header without its payload has a place
  isWhole = true; // whether that with which the scope begins or ends is there
  sessions = new Set(); // whose opening and seal belong in
  tasks = new Set(); // whose changes belong in
  evidence = new Set(); // the deeds that these name
  calls = new Seen(); // that wrote what belongs in
  openings = new Seen(); // the sessions whose opening is here
  // The chain
  records = 0;
  firstSeq = 0;
  order = 0; // the seq of the last header
  last = null;
  unlinked = null; // the last two records, if they do not fit
  breaks = new Listed(); // of such, the later confirmed by the next
  marks = new Marks();
  hidden = 0;
  // What is open, and what was found
  trail = new Trail();
  ledger = new Calls();
  replay = new Replay();
  gates = new Gates();
  proofs = new Proofs();
  deeds = new Deeds();
  seals = new Listed();
  isFitting = false; // whether a seal has the root that was given
  isKnown = false; // whether the head that was given has gone by
  tree = new Tree(); // of a log, up to the size of the checkpoint that was given
  stated = null; // the bundle's own checkpoint, if its proof holds
  covered = 0; // the last record that the checkpoint from elsewhere covers
  found = new Map(); // by step; those from 10 on as 10
  badLines = new Map();
  isSpoilt = false; // whether what builds on these records is not judged
  excused = new Listed(); // moves whose evidence may lie in a gap
  unseen = new Listed(); // repeats of what lies in a gap
  taken = new Listed(); // take-overs
  gated = new Listed(); // moves whose evidence is not here as a whole
  notes = [];

  constructor(root, head, checkpoint) {
    Object.assign(this, { root, head, checkpoint }); // what the user knows from elsewhere
  }

  /** Say that a rule is broken, and at which record. */
  find(step, code, seq, fact = "") {
    const [line, meaning] = CODES[code];
    const bucket = Math.min(step, 10);
    this.isSpoilt ||= bucket < 10;
    if (!this.found.has(bucket)) this.found.set(bucket, new Listed());
    if (!this.badLines.has(bucket)) this.badLines.set(bucket, new Set());
    this.badLines.get(bucket).add(line);
    const detail = meaning + (fact === "" ? "" : `: ${show(fact)}`);
    this.found.get(bucket).add({ code, seq, detail });
  }

  /** Say that something was not checked. */
  note(code, fact = "") {
    this.notes.push({ code, detail: NOTES[code] + (fact === "" ? "" : `: ${show(fact)}`) });
  }
}

/** Judge a bundle; root, head and checkpoint are what the caller knows from elsewhere. */
export async function verify(file, { root = null, head = null, checkpoint = null } = {}) {
  const case_ = new Case(root, head, checkpoint);
  try {
    await examine(case_, file);
  } catch (problem) {
    if (!(problem instanceof Unfit)) throw problem;
    case_.find(2, problem.code, null, problem.fact);
    case_.last = null;
  }
  return conclude(case_); // 15
}

async function examine(case_, file) {
  await readFirst(case_, file);
  if (case_.kind === "log") case_.start = 0;
  else await findScope(case_, file);
  let end = null;
  await read(file, (kind, line) => { // 1, 2
    if (kind === "record") {
      take(case_, line); // 3 to 10, 12, 13
    } else if (kind === "proof") {
      if (!["task", "thoughts"].includes(case_.kind)) {
        throw new Unfit("malformed-bundle", "a proof in a bundle that has none");
      }
      if (!case_.isSpoilt) case_.proofs.take(case_, line); // 11
    } else {
      end = line;
    }
  });
  if (case_.last === null) {
    if (case_.found.size === 0) throw new Unfit("empty-bundle");
    return;
  }
  await checkHead(case_, end.head, file); // 5
  if (!case_.isWhole) {
    case_.find(6, "missing-record", null, "the one that the scope begins or ends with");
  }
  checkMissing(case_); // 9
  if (case_.isSpoilt) return;
  case_.proofs.end(case_); // 11
  checkInclusion(case_, end.checkpoint); // 11
  case_.ledger.end(case_); // 12
  checkOutside(case_); // 14
  checkCheckpoint(case_); // 14
}

/** One record, through all the steps. */
function take(case_, [header, nonce, body]) {
  const record = readHeader(case_, header); // 3
  if (record === null || !isNext(case_, record)) return; // 4
  checkLink(case_, record); // 5
  checkGap(case_, record); // 6
  readPayload(case_, record, nonce, body); // 7
  checkErasure(case_, record); // 8
  const disclosed = checkContents(case_, record); // 9
  case_.records += 1;
  case_.firstSeq ||= record.seq;
  case_.last = record;
  if (case_.isSpoilt) return;
  checkSeen(case_, record); // 14
  if (record.kind === "session.seal" && disclosed) keepSeal(case_, record);
  if (["task", "thoughts"].includes(case_.kind)) case_.proofs.keep(record);
  if (case_.kind === "thoughts") return;
  case_.trail.take(case_, record); // 10
  case_.replay.take(case_, record, disclosed); // 13
  if (disclosed) case_.gates.take(case_, record); // 13
  if (DEEDS.includes(record.kind) && disclosed) case_.deeds.take(case_, record); // 12
  else if (isOfCall(case_, record, disclosed)) case_.ledger.take(case_, record); // 12
}

/** Whether step 12 looks at a record; of the thoughts of other sessions it needs the header. */
function isOfCall({ ledger }, { kind, call }, disclosed) {
  if (kind === "thought" && !disclosed) return ledger.open.has(call);
  return disclosed && kind !== "erasure";
}

// §2, §3, §8: the members of every object. "a=b" is: the member a is a b, "a+=b": it may be missing;
// "?" is: or null; "*" is: an array of these, "*64" one of at most 64.

// §6: the task states, and the moves from each
const MOVES = {
  INIT: ["GATHER", "CANCELLED"],
  GATHER: ["ANALYZE", "CANCELLED"],
  ANALYZE: ["PLAN", "CANCELLED"],
  PLAN: ["APPLY", "CANCELLED"],
  APPLY: ["VERIFY", "CANCELLED"],
  VERIFY: ["DONE", "GATHER", "CANCELLED"],
  DONE: [],
  CANCELLED: [],
};
const SHAPES = {
  first: "format=format log=log scope=scope?",
  "of-session": "session=id",
  "of-task": "task=id",
  "of-thoughts": "thoughts=id",
  proof: "seq=seq index=int size=int path=hash*64",
  last: "head=head checkpoint+=checkpoint",
  checkpoint: "size=seq root=hash path=hash*64",
  head: "seq=seq leaf=hash",
  header: `v=one log=log seq=seq at=time kind=kind call=uuid session=text? task=text?
    agent=text? payload=hash prev=hash`,
  "call.enter": `server=uuid tool=text arguments=arguments? client=name? host_session=name?
    use=name? size=int? sha256=hash?`,
  digest: "sha256=hash size=int",
  "call.exit": `enter=seq tool=text outcome=outcome code=text? result_sha256=hash? duration_ms=int
    repeats=seq?`,
  "session.open": "session_id=text intent=text task_id=text? gates+=hash",
  "session.resume": "server=uuid",
  thought: "thought_id=text index=int type=thinking content=text prev=hash",
  "session.seal": "root=hash count=seq first_seq=seq last_seq=seq",
  task: "task_id=text version=seq attempt=seq set=fields-changed taken+=taken gate+=gate",
  gate: `command=pattern exit=integer after_last_edit=flag digest=hash evidence=seq*64
    waived+=true`,
  taken: "last=seq minutes=int",
  "task.text": "task_id=text version=seq set=texts-changed",
  erasure: "seqs=some-seqs reason=text?",
  deed: `host=name host_version=name? host_session=name? host_agent=name? event=event use=name?
    tool=name? class=class? exit=integer? duration_ms=int? input=digest? output=digest?
    files=file*64 git=git? settings=hash? late=time? lost=int unjudged+=unjudged`,
  file: "n=int sha256=hash? size=int?",
  git: "branch=text? commit=commit?",
  "deed.text": "of=seq command=command? paths=text?*64 tree=text? text=text?",
  fields: "status=status priority=priority assignee=text? project=text? depends_on=tasks holder=text?",
  texts: "title=text description=text?",
};
const CALLS = ["call.enter", "call.exit"];
const SESSIONS = ["session.open", "session.resume", "session.seal"];
const TRAIL = [...SESSIONS, "thought"];
const CHANGES = ["task", "task.text"];
const DEEDS = ["deed", "deed.text"];
const TOOL_EVENTS = ["tool.begin", "tool.end", "tool.failed", "tool.denied"];
const SCOPES = ["session", "task", "thoughts"];
const TEXTS = ["title", "description", "content", "intent"]; // of which arguments have a digest only
const KINDS = [...CALLS, ...TRAIL, ...CHANGES, "erasure", ...DEEDS];
const NAMES = Object.fromEntries([ // never null in a header
  ...TRAIL.map((kind) => [kind, "session"]),
  ...CHANGES.map((kind) => [kind, "task"]),
]);
const PATTERNS = { // ~ is a hex digit
  hash: "~{64}",
  uuid: "~{8}-~{4}-4~{3}-[89ab]~{3}-~{12}",
  log: "colibri/~{32}",
  time: "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6}Z",
  id: "[A-Za-z0-9][A-Za-z0-9._-]{0,63}",
  format: FORMAT,
  outcome: "ok|refused|invalid|error|cancelled",
  thinking: "plan|analysis|decision|reflection",
  status: Object.keys(MOVES).join("|"),
  priority: "low|medium|high|critical",
  commit: "~{40}|~{64}",
  class: "edit|run|read|fetch|mcp|other",
  unjudged: "rules|session|ledger|host",
  event: `${TOOL_EVENTS.join("|").replaceAll(".", "[.]")}` +
    "|session[.](?:start|end)|prompt|stop|subagent[.](?:start|end)|compact|bind",
};
// What a payload's members must agree on, among themselves and with their header
const AGREE = {
  "call.enter": (r, b) =>
    (b.arguments === null) === (b.size !== null) && (b.arguments === null) === (b.sha256 !== null),
  "call.exit": (r, b) => (b.code === null) === ["ok", "cancelled"].includes(b.outcome),
  "session.open": (r, b) => b.session_id === r.session && b.task_id === r.task,
  thought: (r, b) => b.thought_id === `R-${r.seq}`,
  task: (r, b) => b.task_id === r.task,
  "task.text": (r, b) => b.task_id === r.task,
  deed: (r, b) =>
    (b.class !== null) === TOOL_EVENTS.includes(b.event) &&
    (b.exit === null || TOOL_EVENTS.includes(b.event)) &&
    (!("unjudged" in b) || (b.event === "tool.begin" && b.class === "edit")),
  "deed.text": (r, b) => b.of === r.seq - 1,
};
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const ascends = (values) => values.every((value, at) => at === 0 || values[at - 1] < value);
const TESTS = {
  text: (value) => typeof value === "string",
  name: (value) => typeof value === "string" && [...value].length <= MAX_NAME,
  command: (value) => typeof value === "string" && [...value].length <= MAX_COMMAND,
  pattern: (value) => typeof value === "string" && [...value].length <= MAX_PATTERN,
  flag: (value) => typeof value === "boolean",
  true: (value) => value === true,
  integer: (value) => Number.isSafeInteger(value),
  object: isObject,
  int: (value) => Number.isSafeInteger(value) && value >= 0,
  seq: (value) => Number.isSafeInteger(value) && value >= 1,
  kind: (value) => KINDS.includes(value),
  one: (value) => value === 1,
  seqs: (value) => test("seq*")(value) && ascends(value),
  "some-seqs": (value) => test("seqs")(value) && value.length >= 1,
  tasks: (value) => test("text*100")(value) && new Set(value).size === value.length,
  scope: (value) => SCOPES.some((kind) => test(`of-${kind}`)(value)),
  arguments: (value) =>
    isObject(value) && TEXTS.every((name) => test("digest?")(value[name] ?? null)) &&
    test("digest?")(textOfThought(value)),
  "fields-changed": (value) => areChanges(value, "fields"),
  "texts-changed": (value) => areChanges(value, "texts"),
};

const known = { tests: new Map(Object.entries(TESTS)), members: new Map() };

/** Whether a value is of a type: of TESTS, of PATTERNS, or a shape. */
function test(type) {
  if (!known.tests.has(type)) known.tests.set(type, makeTest(type));
  return known.tests.get(type);
}

function makeTest(type) {
  if (type in PATTERNS) {
    const pattern = new RegExp(`^(?:${PATTERNS[type].replaceAll("~", "[0-9a-f]")})$`);
    return (value) => TESTS.text(value) && pattern.test(value);
  }
  if (type in SHAPES) return (value) => whyNot(value, type) === "";
  if (type.endsWith("?")) {
    const plain = test(type.slice(0, -1));
    return (value) => value === null || plain(value);
  }
  const [item, limit] = type.split("*");
  const [fits, most] = [test(item), limit === "" ? Infinity : Number(limit)];
  return (value) => Array.isArray(value) && value.length <= most && value.every((it) => fits(it));
}

function members(shape) {
  if (!known.members.has(shape)) {
    const pairs = SHAPES[shape].split(/\s+/).map((member) => member.split("="));
    known.members.set(shape, new Map(pairs.map(([name, type]) => [name.replace("+", ""), test(type)])));
  }
  return known.members.get(shape);
}

const isOptional = (shape, name) => SHAPES[shape].includes(` ${name}+=`);

/** The text of a thought that comes with a change, in whose place is a digest. */
const textOfThought = ({ thought }) => (isObject(thought) ? (thought.content ?? null) : null);

/** What is wrong with an object's members, or nothing. */
function whyNot(value, shape) {
  const wanted = members(shape);
  const names = isObject(value) ? Object.keys(value) : [];
  const missing = [...wanted.keys()].filter((name) => !names.includes(name));
  const isWhole = missing.every((name) => isOptional(shape, name));
  if (!isObject(value) || !isWhole || !names.every((name) => wanted.has(name))) {
    return `its members are not ${[...wanted.keys()].join(" ")}`;
  }
  const wrong = names.filter((name) => !wanted.get(name)(value[name]));
  return wrong.length > 0 ? `not as the format has it: ${wrong.join(" ")}` : "";
}

/** Whether it is field → [old, new], at least one; old may also be null. */
function areChanges(value, shape) {
  const wanted = members(shape);
  if (!isObject(value) || Object.keys(value).length === 0) return false;
  return Object.entries(value).every(([name, pair]) =>
    wanted.has(name) && Array.isArray(pair) && pair.length === 2 &&
    (pair[0] === null || wanted.get(name)(pair[0])) && wanted.get(name)(pair[1]));
}

// §1: strict JSON, and its canonical form

class Invalid extends Error {}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const lossy = new TextDecoder("utf-8", { ignoreBOM: true });
const encoder = new TextEncoder();
const SURROGATE = /\p{Surrogate}/u;
const NOT_ASCII = /[^\u0000-\u007f]/;
const [QUOTE, COMMA, BRACKET, BACKSLASH, BRACE] = [34, 44, 91, 92, 123];

function decodeText(bytes) {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new Invalid("not UTF-8");
  }
}

/** The value of canonical bytes, or null; and what is wrong with it, or nothing. */
function parseCanonical(bytes, shape) {
  try {
    const text = decodeText(bytes);
    checkItems(text);
    const value = parseJson(text);
    return dump(value) === text ? [value, whyNot(value, shape)] : [null, "not in canonical form"];
  } catch (problem) {
    return [null, messageOf(problem)];
  }
}

/** Before anything is made of them: a few bytes each become many in memory. */
function checkItems(text) {
  if (text.length <= MAX_ITEMS) return;
  let [items, quoted] = [0, false];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) quoted = !quoted;
    else if (quoted) at += code === BACKSLASH ? 1 : 0;
    else if (code === COMMA || ((code === BRACE || code === BRACKET) && !isEmpty(text, at))) items += 1;
  }
  if (items > MAX_ITEMS) throw new Invalid("too many items");
}

const isEmpty = (text, at) => text[at + 1] === (text[at] === "{" ? "}" : "]");

function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Invalid("not JSON");
  }
}

/** The canonical form of a value; Invalid if it has none. A key that came twice is not in it. */
function dump(value, depth = 1) {
  if (typeof value === "string") return quote(value);
  if (typeof value === "number") {
    if (Number.isSafeInteger(value)) return String(value);
    throw new Invalid("a number that is no integer within ±(2^53-1)");
  }
  if (value === null || typeof value === "boolean") return String(value);
  if (depth > MAX_DEPTH) throw new Invalid("nested too deeply");
  if (Array.isArray(value)) return `[${value.map((item) => dump(item, depth + 1)).join(",")}]`;
  let text = "";
  for (const key of Object.keys(value).sort()) {
    if (NOT_ASCII.test(key)) throw new Invalid("a key that is not ASCII");
    text += `${text === "" ? "{" : ","}${quote(key)}:${dump(value[key], depth + 1)}`;
  }
  return text === "" ? "{}" : `${text}}`;
}

function quote(text) {
  const quoted = JSON.stringify(text);
  if (quoted.includes("\\ud") && SURROGATE.test(text)) throw new Invalid("a lone surrogate");
  return quoted;
}

/** What an Invalid says; any other error is a fault of this program, and not caught. */
function messageOf(problem) {
  if (!(problem instanceof Invalid)) throw problem;
  return problem.message;
}

// §2, §4: hashes and trees

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

export function hex(bytes) {
  let text = "";
  for (const byte of bytes) text += HEX[byte];
  return text;
}

export const unhex = (text) =>
  Uint8Array.from({ length: text.length / 2 }, (_, at) => parseInt(text.substr(2 * at, 2), 16));

// SHA-256 (FIPS 180-4): that of browsers answers late, and not in every page.
const INITIAL = Uint32Array.of(
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19);
const ROUND = Uint32Array.of(
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2);
const words = new Uint32Array(64);
let message = new Uint8Array(4096);

export function sha256(...parts) {
  let size = 0;
  for (const part of parts) size += part.length;
  const padded = 64 * Math.ceil((size + 9) / 64);
  if (message.length < padded) message = new Uint8Array(2 * padded);
  let end = 0;
  for (const part of parts) {
    message.set(part, end);
    end += part.length;
  }
  message.fill(0, end, padded);
  message[end] = 0x80;
  const view = new DataView(message.buffer);
  view.setUint32(padded - 8, Math.floor(size / 2 ** 29));
  view.setUint32(padded - 4, (size * 8) >>> 0);
  const state = INITIAL.slice();
  for (let at = 0; at < padded; at += 64) digestBlock(state, view, at);
  if (message.length > 1024 * 1024) message = new Uint8Array(4096);
  const hash = new DataView(new ArrayBuffer(32));
  for (let n = 0; n < 8; n += 1) hash.setUint32(4 * n, state[n]);
  return new Uint8Array(hash.buffer);
}

function digestBlock(state, view, at) {
  const w = words;
  for (let n = 0; n < 16; n += 1) w[n] = view.getUint32(at + 4 * n);
  for (let n = 16; n < 64; n += 1) {
    const p = w[n - 15];
    const q = w[n - 2];
    const s = (p >>> 7 | p << 25) ^ (p >>> 18 | p << 14) ^ p >>> 3;
    w[n] = w[n - 16] + s + w[n - 7] + ((q >>> 17 | q << 15) ^ (q >>> 19 | q << 13) ^ q >>> 10);
  }
  let a = state[0], b = state[1], c = state[2], d = state[3];
  let e = state[4], f = state[5], g = state[6], h = state[7];
  for (let n = 0; n < 64; n += 1) {
    const s = (e >>> 6 | e << 26) ^ (e >>> 11 | e << 21) ^ (e >>> 25 | e << 7);
    const one = h + s + (e & f ^ ~e & g) + ROUND[n] + w[n] | 0;
    const t = (a >>> 2 | a << 30) ^ (a >>> 13 | a << 19) ^ (a >>> 22 | a << 10);
    const two = t + (a & b ^ a & c ^ b & c) | 0;
    h = g;
    g = f;
    f = e;
    e = d + one | 0;
    d = c;
    c = b;
    b = a;
    a = one + two | 0;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
  state[5] += f;
  state[6] += g;
  state[7] += h;
}

export const leafHash = (header) => sha256([0], header);
export const nodeHash = (left, right) => sha256([1], left, right);

/** RFC 6962's tree hash, leaf by leaf: the roots of the whole trees that the leaves make. */
export class Tree {
  size = 0;
  peaks = [];

  add(leaf) {
    let node = leaf;
    for (let size = this.size; size % 2 === 1; size = Math.floor(size / 2)) {
      node = nodeHash(this.peaks.pop(), node);
    }
    this.peaks.push(node);
    this.size += 1;
  }

  /** Of at least one leaf. */
  root() {
    return this.peaks.reduceRight((root, peak) => nodeHash(peak, root));
  }
}

/** The root that a proof leads to; null if a tree of this size has no such proof. */
export function rootOfProof(leaf, index, size, path) {
  if (!(TESTS.int(index) && index < size)) return null;
  const half = (n) => Math.floor(n / 2); // >> would cut off at 32 bits
  let [f, s, r] = [index, size - 1, leaf];
  for (const p of path) {
    if (s === 0) return null;
    if (f % 2 === 1 || f === s) {
      r = nodeHash(p, r);
      while (f !== 0 && f % 2 === 0) [f, s] = [half(f), half(s)];
    } else {
      r = nodeHash(r, p);
    }
    [f, s] = [half(f), half(s)];
  }
  return s === 0 ? r : null;
}

// 1 read, 2 shape

const VERSION =
  /^[ \t\r\n]{0,16}\{[ \t\r\n]{0,16}"format"[ \t\r\n]{0,16}:[ \t\r\n]{0,16}"(colibri-bundle\/[^"\\]{0,100})"/;
const PIECE = 1024 * 1024;
const NEWLINE = 10;
const [CHECKPOINT, HEAD, INDEX] = // the beginnings of other lines
  ['{"checkpoint":', '{"head":', '{"index":'].map((text) => encoder.encode(text));
const [BODY, HEADER, COMMA_HEADER, NONCE, END] = // the parts of a record's line
  ['{"body":"', '{"header":"', '","header":"', '","nonce":"', '"}'].map((text) => encoder.encode(text));

/** The bytes of a file, from its beginning, piece by piece. */
async function* pieces(file) {
  if (typeof file === "function") {
    yield* file();
  } else if (file instanceof Uint8Array) {
    for (let at = 0; at < file.length; at += PIECE) yield file.subarray(at, at + PIECE);
  } else {
    for (let at = 0; at < file.size; at += PIECE) {
      yield new Uint8Array(await file.slice(at, at + PIECE).arrayBuffer());
    }
  }
}

/** Pieces put together to lines. */
class Lines {
  parts = []; // of a line that has not ended yet
  size = 0;

  *take(piece) {
    let at = 0;
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, at)) {
      this.keep(piece.subarray(at, end));
      at = end + 1;
      const line = this.parts.length === 1 ? this.parts[0] : joined(this.parts, this.size);
      [this.parts, this.size] = [[], 0];
      if (line.length === 0) throw new Unfit("malformed-bundle", "an empty line");
      yield line;
    }
    if (at < piece.length) this.keep(piece.slice(at));
  }

  keep(part) {
    this.parts.push(part);
    this.size += part.length;
    if (this.size > MAX_LINE) throw new Unfit("too-large");
  }
}

function joined(parts, size) {
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Hand over the lines after the first: records, proofs and the last, which is an end. */
async function read(file, use) {
  const lines = new Lines();
  let state = "first";
  for await (const piece of pieces(file)) {
    if (state === "end") throw new Unfit("malformed-bundle", "something follows the last line");
    for (const line of lines.take(piece)) {
      if (state === "end") throw new Unfit("malformed-bundle", "something follows the last line");
      if (state === "first") {
        state = "record";
      } else if (startsWith(line, 0, HEAD) || startsWith(line, 0, CHECKPOINT)) {
        const end = readLine(line, "last");
        state = "end";
        use("end", end);
      } else if (startsWith(line, 0, INDEX)) {
        state = "proof";
        use("proof", readLine(line, "proof"));
      } else if (state === "proof") {
        throw new Unfit("malformed-bundle", "a record follows a proof");
      } else {
        use("record", readRecord(line));
      }
    }
  }
  if (state === "end" && lines.size === 0) return;
  if (state === "end") throw new Unfit("malformed-bundle", "something follows the last line");
  if (lines.size > 0) throw new Unfit("malformed-bundle", "a line without its end");
  throw new Unfit("malformed-bundle", "the last line is missing");
}

/** Any line but a record. */
function readLine(line, shape) {
  const [value, wrong] = parseCanonical(line, shape);
  if (wrong !== "") throw new Unfit("malformed-bundle", wrong);
  return value;
}

/** Header, nonce and body; these two are empty where the header stands alone. */
function readRecord(line) {
  let at = 0;
  const skip = (part) => {
    if (!startsWith(line, at, part)) {
      throw new Unfit("malformed-bundle", "a line that is no record, no proof and no end");
    }
    at += part.length;
  };
  const text = () => {
    const begin = at;
    at = line.indexOf(QUOTE, at);
    if (at < 0) skip(line); // it has no such part
    return decode(line.subarray(begin, at));
  };
  const isWhole = startsWith(line, 0, BODY);
  skip(isWhole ? BODY : HEADER);
  const body = isWhole ? text() : new Uint8Array(0);
  if (isWhole) skip(COMMA_HEADER);
  const header = text();
  if (isWhole) skip(NONCE);
  const nonce = isWhole ? text() : new Uint8Array(0);
  skip(END);
  if (at !== line.length || (isWhole && nonce.length !== 32)) {
    throw new Unfit("malformed-bundle", "a line that is no record, no proof and no end");
  }
  return [header, nonce, body];
}

function startsWith(bytes, at, part) {
  if (at + part.length > bytes.length) return false;
  for (let n = 0; n < part.length; n += 1) if (bytes[at + n] !== part[n]) return false;
  return true;
}

const DIGITS = new Uint8Array(256).fill(64);
encoder.encode("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  .forEach((code, value) => (DIGITS[code] = value));

/** The bytes of strict base64, at least one. */
function decode(text) {
  let length = text.length;
  while (length > text.length - 2 && text[length - 1] === 61) length -= 1; // =
  const bytes = new Uint8Array((length * 3) >> 2);
  let [bits, held, at, wrong] = [0, 0, 0, length === 0 || text.length % 4 !== 0 ? 64 : 0];
  for (let n = 0; n < length; n += 1) {
    const digit = DIGITS[text[n]];
    wrong |= digit;
    bits = (bits << 6 | digit) & 0xfff;
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes[at] = bits >> held;
      at += 1;
    }
  }
  if ((wrong & 64) !== 0 || (bits & (1 << held) - 1) !== 0) {
    throw new Unfit("malformed-bundle", "a text that is not base64");
  }
  return bytes;
}

async function readFirst(case_, file) {
  const lines = new Lines();
  let begin = new Uint8Array(0);
  for await (const piece of pieces(file)) {
    if (begin.length < 256) begin = joined([begin, piece], begin.length + piece.length).slice(0, 256);
    const [, version = FORMAT] = VERSION.exec(String.fromCharCode(...begin)) ?? [];
    if (version !== FORMAT) throw new Unfit("unknown-version", lossy.decode(latin1(version)));
    for (const line of lines.take(piece)) return readScope(case_, readLine(line, "first"));
  }
  throw new Unfit("malformed-bundle", lines.size > 0 ? "a line without its end" : "an empty file");
}

const latin1 = (text) => Uint8Array.from(text, (character) => character.charCodeAt(0));

function readScope(case_, { log, scope }) {
  const [[kind, name]] = Object.entries(scope ?? { log: null });
  const session = kind === "task" ? null : name;
  Object.assign(case_, { log, kind, session, task: scope?.task ?? null });
}

// 3 headers, 4 order, 5 links, 6 gaps

function parseHeader(bytes) {
  const [header, wrong] = parseCanonical(bytes, "header");
  if (wrong !== "" || header[NAMES[header.kind] ?? "kind"] !== null) return [header, wrong];
  return [header, `a ${header.kind} record without a ${NAMES[header.kind]}`];
}

function readHeader(case_, bytes) {
  const [header, wrong] = parseHeader(bytes);
  if (wrong !== "") {
    const seq = isObject(header) && TESTS.seq(header.seq) ? header.seq : null;
    case_.find(3, "bad-header", seq, wrong);
  } else if (header.log !== case_.log) {
    case_.find(3, "foreign-record", header.seq, header.log);
  } else {
    header.leaf = hex(leafHash(bytes));
    header.body = null; // the members of its payload
    return header;
  }
  return null;
}

function isNext(case_, { seq }) {
  const last = case_.order;
  case_.order = seq;
  if (seq <= last) case_.find(4, "wrong-order", seq);
  return seq > last;
}

const genesis = (log) => hex(sha256(encoder.encode(`colibri/ledger/v1\n${log}`)));

/** A record that does not fit the one before it tells something only if it is not in doubt itself:
 * if the next one, or the head, names its leaf. */
function checkLink(case_, record) {
  const { seq, leaf } = case_.last ?? { seq: 0, leaf: record.seq === 1 ? genesis(case_.log) : "" };
  const linked = record.seq !== seq + 1 || record.prev === leaf;
  if (linked) keepBreak(case_);
  case_.unlinked = linked ? null : [seq, record];
}

function keepBreak(case_) {
  if (case_.unlinked !== null) case_.breaks.add(case_.unlinked);
  case_.unlinked = null;
}

async function checkHead(case_, head, file) {
  const { seq, leaf } = case_.last;
  if (head.seq > seq) {
    case_.find(5, "truncated", seq + 1, `the bundle's head is ${head.seq}`);
  } else if (head.seq !== seq || head.leaf !== leaf) {
    case_.find(5, "wrong-head", seq);
    case_.unlinked = null;
  }
  keepBreak(case_);
  const isJudged = ![...case_.found.keys()].some((step) => step < 5);
  if (case_.breaks.count > 0 && isJudged) await tellBreaks(case_, file);
}

/** Whether a record follows another one of the bundle, or one that is not here. */
async function tellBreaks(case_, file) {
  const wanted = new Set(case_.breaks.items.map(([, { prev }]) => prev));
  const known = new Set([genesis(case_.log)]);
  await read(file, (kind, line) => {
    const leaf = kind === "record" ? hex(leafHash(line[0])) : null;
    if (wanted.has(leaf)) known.add(leaf);
  });
  for (const [before, { seq, prev }] of case_.breaks.items) {
    if (before === 0) case_.find(5, "broken-link", 1, "not the genesis");
    else if (known.has(prev)) case_.find(5, "broken-link", seq);
    else case_.find(5, "altered-header", before);
  }
  case_.found.get(5).count += case_.breaks.count - case_.breaks.items.length;
}

function checkGap(case_, { seq }) {
  const before = case_.last?.seq ?? 0;
  if (seq > before + 1 && case_.start <= before && seq <= case_.end) {
    case_.find(6, "missing-record", before + 1, `${before + 1} to ${seq - 1}`);
  }
}

// 7 payloads, 8 erasures

const COMMITMENT = encoder.encode("colibri/payload/v1\n");

function readPayload(case_, record, nonce, body) {
  if (nonce.length === 0) return;
  if (hex(sha256(COMMITMENT, nonce, body)) !== record.payload) {
    case_.find(7, "altered-payload", record.seq);
    return;
  }
  let [value, wrong] = parseCanonical(body, record.kind);
  if (wrong === "" && AGREE[record.kind] && !AGREE[record.kind](record, value)) {
    wrong = "its members contradict each other or the header";
  }
  if (wrong !== "") case_.find(7, "bad-payload", record.seq, wrong);
  else record.body = value;
}

function checkErasure(case_, { seq: at, kind, body }) {
  const erasable = ["call.enter", "session.open", "thought", "task.text", "deed.text"].includes(kind);
  const { marks, gaps } = case_;
  marks.push((body === null ? 0 : THERE) | (erasable ? ERASABLE : 0));
  for (const seq of kind === "erasure" && body !== null ? body.seqs : []) {
    const place = gaps.place(seq);
    const mark = place >= 0 && place < marks.size ? marks.bytes[place] : null;
    if (seq >= at || (mark !== null && (mark & ERASABLE) === 0)) {
      case_.find(8, "bad-erasure", at, seq);
    } else if (mark !== null && (mark & THERE) !== 0) {
      case_.find(8, "erased-payload", seq);
    } else if (mark !== null) {
      marks.bytes[place] |= ERASED;
    }
  }
}

/** The records of which this is known. */
function* marked({ marks, gaps }, isWanted) {
  for (let place = 0; place < marks.size; place += 1) {
    if (isWanted(marks.bytes[place])) yield gaps.seq(place);
  }
}

// 9 contents

/** Whether its payload belongs into the bundle. */
function checkContents(case_, record) {
  const { seq, body } = record;
  const disclosed = case_.kind === "log" || belongs(case_, record);
  if (!disclosed) case_.hidden += 1;
  const at = case_.marks.size - 1;
  if (disclosed && body === null && (case_.marks.bytes[at] & ERASABLE) !== 0) {
    case_.marks.bytes[at] |= WANTED; // until an erasure names it
  } else if (disclosed && body === null) {
    case_.find(9, "missing-payload", seq);
  } else if (!disclosed && !(case_.start <= seq && seq <= case_.reach)) {
    case_.find(9, "stray-record", seq);
  } else if (!disclosed && body !== null) {
    case_.find(9, "stray-payload", seq);
  }
  return disclosed;
}

function checkMissing(case_) {
  for (const seq of marked(case_, (mark) => (mark & (WANTED | ERASED)) === WANTED)) {
    case_.find(9, "missing-payload", seq);
  }
}

function belongs(case_, record) {
  if (record.kind === "erasure") return namesOurs(case_, record);
  if (case_.kind === "thoughts") {
    const isOurs = record.session === case_.session;
    return isOurs && (record.kind === "thought" || record.seq === case_.end);
  }
  return isOwn(case_, record, record.body !== null) ||
    (CALLS.includes(record.kind) && case_.calls.has(record.call));
}

/** Whether it belongs in for itself, and not for the call that wrote it. */
function isOwn(case_, { kind, seq, session, task }, isThere) {
  const isInside = (case_.start <= seq && seq <= case_.end) || case_.kind === "task";
  if (CHANGES.includes(kind)) return case_.tasks.has(task) && seq <= case_.end;
  if (kind === "call.exit" && session === null && isThere && isInside) {
    return case_.tasks.has(task); // it may be disclosed: how a call ended that did nothing
  }
  if (SESSIONS.includes(kind) && case_.sessions.has(session) && seq <= case_.end) return true;
  if (case_.kind === "session") {
    return session === case_.session && ([...TRAIL, ...DEEDS].includes(kind) || isInside);
  }
  if (DEEDS.includes(kind)) return case_.evidence.has(kind === "deed" ? seq : seq - 1);
  return kind === "thought" && task === case_.task;
}

/** Read the bundle for what belongs into it: its stretch and its tasks, then their calls. */
async function findScope(case_, file) {
  const [needs, holders, evidence] = [new Map(), new Map(), new Map()];
  const add = (sets, task, ids) => {
    if (!sets.has(task)) sets.set(task, new Set());
    for (const id of ids ?? []) if (id !== null) sets.get(task).add(id);
  };
  let [sealing, last] = [null, 0];
  case_.isWhole = false;
  await headers(file, (record, body) => {
    const { kind, seq, session, task, call } = record;
    if (seq > last + 1) case_.gaps.add(last + 1, seq - 1);
    last = Math.max(last, seq);
    const isOurs = session === case_.session;
    if (kind === "session.open") {
      case_.openings.add(session);
      if (isOurs && case_.start === NOWHERE) {
        Object.assign(case_, { start: seq, isWhole: case_.kind === "session" });
      }
    } else if (kind === "session.seal" && isOurs && sealing === null) {
      sealing = call;
      if (case_.kind === "thoughts") Object.assign(case_, { end: seq, isWhole: true });
    } else if (kind === "call.exit" && call === sealing && case_.end === NOWHERE) {
      case_.end = seq;
    } else if (kind === "task" && case_.end === NOWHERE) {
      case_.isWhole ||= task === case_.task;
      const [change, wrong] = body.length > 0 ? parseCanonical(body, "task") : [null, "no body"];
      const made = wrong === "" ? change.set : {};
      for (const ids of made.depends_on ?? []) add(needs, task, ids);
      add(holders, task, made.holder);
      add(evidence, task, wrong === "" ? change.gate?.evidence : []);
    }
    if (CHANGES.includes(kind) && case_.kind === "task") add(holders, task, [session]);
    const isWork = ["session.open", "thought", ...CHANGES, ...DEEDS].includes(kind);
    if (isWork && isOurs && case_.end === NOWHERE) {
      if (task !== null) case_.tasks.add(task);
    } else if (kind === "thought" && case_.kind === "task" && task === case_.task) {
      case_.sessions.add(session);
    }
  });
  case_.end = Math.min(case_.end, last);
  if (case_.kind !== "session") Object.assign(case_, { start: NOWHERE, tasks: new Set([case_.task]) });
  for (const task of case_.tasks) { // a Set grows while it is walked through
    for (const id of needs.get(task) ?? []) case_.tasks.add(id);
    for (const id of holders.get(task) ?? []) case_.sessions.add(id);
    for (const seq of evidence.get(task) ?? []) case_.evidence.add(seq);
  }
  if (case_.kind !== "thoughts") await findCalls(case_, file);
}

async function findCalls(case_, file) {
  let shown = 0;
  await headers(file, (record, body) => {
    const { kind, seq, call } = record;
    if (kind === "erasure" && body.length > 0) {
      const [value, wrong] = parseCanonical(body, "erasure");
      if (wrong === "" && namesOurs(case_, { seq, body: value })) shown = seq;
    } else if (case_.calls.has(call)) {
      if (CALLS.includes(kind) || isOwn(case_, record, body.length > 0)) shown = seq;
    } else if (isOwn(case_, record, body.length > 0)) {
      case_.calls.add(call);
      shown = seq;
    }
  });
  const isLinked = !case_.gaps.between(case_.start, shown);
  case_.reach = isLinked ? Math.max(case_.end, shown) : case_.end;
}

/** Hand over the records and the bytes of their bodies, without a judgement. */
async function headers(file, use) {
  let last = 0;
  await read(file, (kind, line) => {
    const [header, wrong] = kind === "record" ? parseHeader(line[0]) : [null, kind];
    if (wrong === "" && header.seq > last) {
      last = header.seq;
      use(header, line[2]);
    }
  });
}

const namesOurs = ({ gaps }, { seq: at, body }) =>
  (body?.seqs ?? []).some((seq) => seq < at && gaps.place(seq) >= 0);

// 10 sessions and seals

const AFTER_SEAL = { thought: "thought-after-seal", "session.seal": "second-seal" };

/** The sessions that are open, and the names of those that are sealed.
 *
 * `ended` are all whose seal went by, also where the bundle says nothing else of them. Of those that
 * can still give one, `signs` is the last sign of life. */
class Trail {
  open = new Map();
  sealed = new Seen();
  ended = new Seen();
  signs = new Map();

  /** A sign of life: the exit of a call that ended ok, or a deed that is not late. */
  live({ session, seq }) {
    if (session !== null && !this.ended.has(session)) this.signs.set(session, seq);
  }

  take(case_, record) {
    this.judge(case_, record);
    const { kind, session } = record;
    if (kind === "session.seal" && !this.ended.has(session)) {
      this.ended.add(session);
      this.signs.delete(session);
    }
  }

  judge(case_, record) {
    const { kind, seq, session: id } = record;
    const isOurs = case_.kind !== "session" || id === case_.session;
    if (![...TRAIL, ...CHANGES, "deed"].includes(kind) || id === null || !isOurs) return;
    const session = this.open.get(id);
    const isSealed = this.sealed.has(id);
    if (kind === "session.open" && (session || isSealed)) {
      case_.find(10, "second-open", seq, id);
    } else if (kind === "session.open") {
      // placed: the last record whose place in the session is known
      // index: of the next thought; after a gap it may be greater
      // first, last, leaf: its first thought, its last, and the leaf of this
      // server: the process that continues it; null if any may
      const thoughts = { placed: seq, index: 0, first: 0, last: 0, leaf: ZEROS, tree: new Tree() };
      this.open.set(id, { opened: seq, agent: record.agent, server: null, ...thoughts });
      case_.deeds.open(record);
    } else if (isSealed) {
      case_.find(10, AFTER_SEAL[kind] ?? "change-after-seal", seq, id);
    } else if (!session) {
      const lost = case_.gaps.between(0, seq) && !case_.openings.has(id);
      case_.find(10, lost ? "missing-record" : "outside-session", seq, id);
    } else {
      if (kind !== "deed") checkServer(case_, record, session);
      else if (record.agent !== session.agent) {
        case_.find(12, "bad-pair", seq, "another agent than its session's");
      }
      if (kind === "thought") checkThought(case_, record, session);
      if (kind === "session.seal") {
        checkSeal(case_, record, session);
        this.open.delete(id);
        this.sealed.add(id);
        case_.deeds.seal(id);
      }
    }
  }
}

/** Whether the process that makes a change is the one that continues its session. */
function checkServer(case_, { kind, seq, call, session: id, body }, session) {
  if (kind === "session.resume") session.server = body.server;
  const entered = case_.ledger.open.get(call)?.enter.body ?? null;
  if (entered !== null && ![null, entered.server].includes(session.server)) {
    case_.find(10, "wrong-server", seq, id);
  }
}

function checkThought(case_, { seq, body, leaf }, session) {
  const gap = case_.gaps.between(session.placed, seq); // others may lie there
  if (body && gap && body.index > session.index) {
    session.index = body.index;
  } else if (body) { // otherwise it is erased; its header still holds its place
    if (body.index !== session.index) case_.find(10, "wrong-index", seq, body.index);
    if (body.prev !== session.leaf) case_.find(10, "broken-thought-chain", seq);
  }
  if (body || !gap) session.placed = seq;
  session.index += 1;
  session.first ||= seq;
  Object.assign(session, { last: seq, leaf });
  session.tree.add(unhex(leaf));
}

function checkSeal(case_, { seq, body: stated }, { opened, index, first, last, tree }) {
  const gap = case_.gaps.between(opened, seq); // what lies there is for the proofs to show
  if (stated.count < index || (stated.count > index && !gap)) {
    case_.find(10, "wrong-count", seq, `${stated.count}, not ${index}`);
  }
  if (first === 0) return;
  const [early, late] = [first - stated.first_seq, stated.last_seq - last];
  if (early < 0 || late < 0 || ((early || late) && !gap)) case_.find(10, "wrong-range", seq);
  if (!gap && stated.root !== hex(tree.root())) case_.find(10, "wrong-root", seq);
}

function keepSeal(case_, { seq, session, body: { count, root } }) {
  case_.seals.add({ seq, session: show(session), count, root });
  case_.isFitting ||= [root, `${count}:${root}`].includes(case_.root);
}

// 11 proofs

/** The thoughts and the first seal of each session, until the proofs have come. */
class Proofs {
  thoughts = new Map();
  seals = new Map();

  keep({ kind, seq, session, leaf, body }) {
    if (kind === "thought") {
      this.thoughts.set(seq, { session, leaf: unhex(leaf), index: body?.index ?? null });
    } else if (kind === "session.seal" && !this.seals.has(session)) {
      this.seals.set(session, { size: body.count, root: body.root });
    }
  }

  take(case_, proof) {
    const thought = this.thoughts.get(proof.seq);
    const seal = thought && this.seals.get(thought.session);
    this.thoughts.delete(proof.seq);
    if (!seal) {
      case_.find(11, "bad-proof", proof.seq, "of no thought here that a seal covers");
      return;
    }
    const index = thought.index ?? proof.index;
    const found = rootOfProof(thought.leaf, index, seal.size, proof.path.map(unhex));
    const holds = found !== null && hex(found) === seal.root;
    if (!holds || proof.index !== index || proof.size !== seal.size) {
      case_.find(11, "bad-proof", proof.seq, `the thought is ${index} of ${seal.size}`);
    }
  }

  end(case_) {
    for (const [seq, { session }] of this.thoughts) {
      if (this.seals.has(session)) case_.find(11, "missing-proof", seq);
    }
  }
}

/** Whether the bundle's checkpoint covers its last record. */
function checkInclusion(case_, stated) {
  if (stated === undefined) return;
  const { seq, leaf } = case_.last;
  const { size, root } = stated;
  const found = rootOfProof(unhex(leaf), seq - 1, size, stated.path.map(unhex));
  const isLater = size > seq && endsWithLog(case_);
  if (found === null || hex(found) !== root || isLater) {
    case_.find(11, "bad-checkpoint", seq, `it is of ${size} records`);
  } else {
    case_.stated = { size, root };
  }
}

/** Whether the bundle goes to the end of the log. */
function endsWithLog({ kind, seals }) {
  return kind === "log" || (kind === "session" && seals.count === 0);
}

// 12 calls

// §5: the changes that a tool makes in a call that ended ok, in this order: a kind, how many at least
// and at most. Any other tool makes none.
const MADE_BY = new Map(Object.entries({
  audit_session_start: [[["session.open", "session.resume"], 1, 1]],
  thought_record: [[["thought"], 1, 1]],
  merkle_finalize: [[["session.seal"], 1, 1]],
  task_create: [[["task"], 1, 1], [["task.text"], 1, 1]],
  task_update: [[["thought"], 0, 1], [["task"], 0, 8], [["task.text"], 0, 1]],
  task_next_actions: [[["task"], 0, 1]],
}));
const MOST_CHANGES = 10; // of any tool
const REPEATED = ["task_create", "thought_record"];
// The texts of its arguments that a tool records
const RECORDED = new Map(Object.entries({
  audit_session_start: ["intent"],
  thought_record: ["content"],
  task_create: ["title", "description"],
  task_update: ["title", "description", "content"],
}));
const TEXTS_OF = {
  "session.open": ["intent"],
  thought: ["content"],
  "task.text": ["title", "description"],
};
const UNKNOWN = Symbol("a value that an erased or missing record may have set");

/** The calls that are open, the names of all that were entered, and which may be repeated. */
class Calls {
  open = new Map();
  entered = new Seen();
  first = new Seen();

  take(case_, record) {
    const { kind, seq } = record;
    const call = this.open.get(record.call);
    if (kind === "call.enter") {
      if (call || this.entered.has(record.call)) {
        case_.find(12, "bad-pair", seq);
      } else {
        this.open.set(record.call, { enter: record, changes: [], texts: {} });
        this.entered.add(record.call);
        case_.deeds.unseen.enter(case_, record);
      }
    } else if (!call) {
      this.misplaced(case_, record);
    } else {
      const same = (name) => call.enter[name] === null || call.enter[name] === record[name];
      if (record.agent !== call.enter.agent || !same("session") || !same("task")) {
        case_.find(12, "bad-pair", seq, "another session, task or agent");
      }
      if (kind === "call.exit") {
        if (record.body.outcome === "ok") case_.trail.live(record);
        checkExit(case_, call, record);
        case_.deeds.unseen.exit(case_, call.enter, record);
        case_.replay.settle(call.changes.filter((one) => CHANGES.includes(one.kind)));
        this.open.delete(record.call);
      } else if (call.changes.length === MOST_CHANGES) {
        case_.find(12, "stray-change", seq);
      } else {
        Object.assign(call.texts, recorded(record));
        call.changes.push({ kind, seq, task: record.task });
      }
    }
  }

  /** A record of a call that was not entered, or has ended. */
  misplaced(case_, { kind, seq, call, body }) {
    const isExit = kind === "call.exit";
    const at = isExit ? body.enter : seq;
    const lost = case_.gaps.between(isExit ? at - 1 : 0, at + 1);
    if (lost && !this.entered.has(call)) case_.find(12, "missing-record", at);
    else case_.find(12, isExit ? "bad-pair" : "stray-change", seq);
  }

  end(case_) {
    for (const { changes } of this.open.values()) {
      for (const { seq } of changes) case_.find(12, "stray-change", seq);
    }
  }

  listed() {
    const calls = [...this.open.values()].slice(0, MAX_LISTED);
    return calls.map(({ enter: { seq, call, body } }) => ({ seq, call, tool: body && show(body.tool) }));
  }
}

function checkExit(case_, call, exit) {
  const { enter, changes } = call;
  const { tool, outcome, repeats } = exit.body;
  if (exit.body.enter !== enter.seq || (enter.body !== null && enter.body.tool !== tool)) {
    case_.find(12, "bad-pair", exit.seq, "another enter or tool");
    return;
  }
  const isDone = outcome === "ok" && repeats === null;
  const isRight = checkChanges(case_, changes, isDone ? (MADE_BY.get(tool) ?? []) : [], exit.seq);
  if (repeats !== null) {
    checkRepeat(case_, exit);
  } else if (isDone && (enter.body === null || "key" in (enter.body.arguments ?? {}))) {
    case_.ledger.first.add(`${tool} ${enter.seq}`);
  }
  if (isRight && isDone && enter.body !== null) checkDigests(case_, call, exit);
}

/** Whether a call has made the changes that its tool makes. */
function checkChanges(case_, changes, makes, exit) {
  let [at, isMissing] = [0, false];
  for (const [kinds, least, most] of makes) {
    let count = 0;
    while (at < changes.length && count < most && kinds.includes(changes[at].kind)) {
      at += 1;
      count += 1;
    }
    isMissing ||= count < least;
  }
  for (const { seq } of changes.slice(at)) case_.find(12, "stray-change", seq);
  if (isMissing && at === changes.length) case_.find(12, "missing-change", exit);
  return !isMissing && at === changes.length;
}

/** Whether the call that this one repeats has done its work. */
function checkRepeat(case_, { seq, body: { tool, outcome, repeats } }) {
  const isPossible = outcome === "ok" && REPEATED.includes(tool) && repeats < seq;
  const place = case_.gaps.place(repeats);
  const isShown = place >= 0 && (case_.marks.bytes[place] & (THERE | WANTED)) !== 0;
  if (isPossible && !isShown) {
    case_.unseen.add(`record ${seq}`);
  } else if (!isPossible || !case_.ledger.first.has(`${tool} ${repeats}`)) {
    case_.find(12, "bad-repeat", seq, repeats);
  }
}

/** Whether the texts of its arguments are those that it recorded, or that stood there before. */
function checkDigests(case_, { enter, texts }, exit) {
  const task = case_.replay.tasks.get(enter.task);
  const isWhole = !case_.gaps.between(enter.seq, exit.seq);
  for (const name of RECORDED.get(exit.body.tool) ?? []) {
    const given = enter.body.arguments ?? {};
    const stated = given[name] ?? (name === "content" ? textOfThought(given) : null);
    const before = ["content", "intent"].includes(name) && isWhole ? null : UNKNOWN;
    const { [name]: known = before } = name in texts ? texts : (task?.values ?? {});
    if (stated !== null && known !== UNKNOWN && known !== `${stated.sha256} ${stated.size}`) {
      case_.find(12, "wrong-digest", enter.seq, name);
    }
  }
}

/** The digests of the texts that a change records. */
function recorded({ kind, body }) {
  if (kind === "session.resume") return { intent: UNKNOWN }; // it keeps the one it was opened with
  if (body === null) return valuesOf(TEXTS_OF[kind], UNKNOWN);
  if (kind === "thought") return { content: digest(body.content) };
  if (kind === "session.open") return { intent: digest(body.intent) };
  return kind === "task.text" ? said(stored(body.set)) : {};
}

function digest(text) {
  if (text === null) return null;
  const bytes = encoder.encode(text);
  return `${hex(sha256(bytes))} ${bytes.length}`;
}

// 12 deeds

/** The deed before, the tool calls that began and did not end, and what §10 measures. */
class Deeds {
  last = null;
  begun = new Map(); // where, and its class
  newest = new Map(); // of each session
  sealing = new Set(); // that began, sealed a session, and end after that
  halves = new Map(); // of each session of a host
  settings = new Map(); // of each host, as they were last
  silent = new Set(); // sessions of agents that are open, without a deed
  unseen = new Unseen();
  count = 0;
  changes = 0;
  lost = 0;
  unjudged = 0;
  sessions = 0;
  unheard = 0;

  open({ session, agent }) {
    if (isPerson(agent)) return;
    this.silent.add(session);
    this.sessions += 1;
  }

  /** The tool call that seals a session ends after it: it counts as ended. */
  seal(session) {
    this.unseen.seal(session);
    if (this.silent.delete(session)) this.unheard += 1;
    const use = this.newest.get(session);
    this.newest.delete(session);
    if (!["mcp", "run"].includes(this.begun.get(use)?.class)) return;
    this.begun.delete(use);
    this.sealing.add(use);
  }

  take(case_, record) {
    const { last } = this;
    this.last = record;
    if (record.kind === "deed.text") return checkText(case_, last, record);
    const { seq, call, session, agent, body } = record;
    const { ledger } = case_;
    if (ledger.open.has(call) || ledger.entered.has(call)) {
      case_.find(12, "bad-pair", seq, "another call or deed has its id");
    } else {
      ledger.entered.add(call);
    }
    if (session === null && agent !== null) {
      case_.find(12, "bad-pair", seq, "an agent without a session");
    }
    if (body.late === null) case_.trail.live(record);
    this.measure(record, body);
  }

  measure(record, body) {
    const { host, settings } = body;
    this.count += 1;
    this.lost += body.lost;
    if ("unjudged" in body) this.unjudged += 1;
    this.silent.delete(record.session);
    this.unseen.deed(record.session, body);
    if (settings !== null) {
      if ((this.settings.get(host) ?? settings) !== settings) this.changes += 1;
      this.settings.set(host, settings);
    }
    if (TOOL_EVENTS.includes(body.event)) this.pair(record, body);
  }

  /** The report of a tool call's begin or end. */
  pair({ seq, session }, { host_session, host_agent, use, event, class: kind }) {
    if (!this.halves.has(host_session)) this.halves.set(host_session, new Halves());
    const halves = this.halves.get(host_session);
    const [begins, ends] = [event === "tool.begin", ENDS.includes(event)];
    const key = JSON.stringify([host_session, host_agent, use]);
    if (use === null) {
      if (begins) halves.begins += 1;
      if (ends) halves.ends += 1;
    } else if (begins) {
      Object.assign(halves, { early: 0, isNamed: true });
      this.begun.set(key, { seq, class: kind });
      if (session !== null) this.newest.set(session, key);
    } else if (!this.sealing.delete(key) && !this.begun.delete(key) && ends) {
      halves[halves.isNamed ? "lone" : "early"] += 1;
    }
  }

  coverage() {
    const begun = [...this.begun.values()].map(({ seq }) => seq);
    const unseen = this.unseen.found();
    return {
      deeds: this.count,
      not_ended: begun.slice(0, MAX_LISTED),
      not_ended_count: begun.length,
      unpaired: [...this.halves.values()].reduce((sum, { unpaired }) => sum + unpaired, 0),
      unseen: unseen.slice(0, MAX_LISTED),
      unseen_count: unseen.length,
      unjudged: this.unjudged,
      settings_changed: this.changes,
      lost: this.lost,
      sessions: this.sessions,
      unreported: this.unheard + this.silent.size,
    };
  }
}

/** What a session of a host reported of tool calls without saying what belongs together. */
class Halves {
  begins = 0; // without an id
  ends = 0; // the same
  isNamed = false; // a begin has an id
  early = 0; // ends before the first of these: they began before the session did
  lone = 0; // ends without a begin, later

  get unpaired() {
    return Math.max(this.begins, this.ends) + this.early + this.lone;
  }
}

/** §10: the calls that a host should have reported, and did not. */
class Unseen {
  hosts = new Map(); // of each session of a host, how it reports
  tails = new Map(); // of open sessions with a deed of an MCP tool, the calls after the last deed
  named = new Set(); // sessions with a deed that has an id
  begun = new Set(); // ids of tool calls that have not ended
  missing = new Map(); // id → the enter, and whether the call has ended
  sealed = []; // the calls of the sessions that are sealed

  deed(session, { host_session, class: kind, use, event }) {
    const tail = this.tails.get(session);
    if (tail) tail.enters = [];
    if (kind === null) return;
    if (!this.hosts.has(host_session)) this.hosts.set(host_session, {});
    const habits = this.hosts.get(host_session);
    if (use !== null) {
      habits.givesIds = true;
      this.missing.delete(use);
      if (session !== null) this.named.add(session);
      if (event === "tool.begin") habits.begins = true;
      this.begun[event === "tool.begin" ? "add" : "delete"](use);
    }
    if (kind !== "mcp") return;
    habits.hidesIds ||= use === null;
    if (session === null) return;
    const begun = event === "tool.begin" ? (tail?.begun ?? 0) + 1 : 0;
    this.tails.set(session, { enters: [], givesIds: tail?.givesIds ?? false, begun });
  }

  enter(case_, { seq, session, agent, body }) {
    const use = body?.use ?? null;
    const isOurs = case_.kind !== "session" || [null, case_.session].includes(session);
    if (!isOurs || use === null || this.begun.has(use) || isPerson(agent)) return;
    const habits = this.hosts.get(body.host_session);
    if ((habits?.givesIds || this.named.has(session)) && !habits?.hidesIds) {
      this.missing.set(use, { seq, hasEnded: false });
    }
  }

  exit(case_, { seq, body: entered }, { session, agent, body: { tool, outcome } }) {
    if (entered === null || isPerson(agent)) return;
    const tail = this.tails.get(session);
    if (entered.use !== null) {
      if (tail) tail.givesIds = true;
      if (this.missing.get(entered.use)?.seq !== seq) return;
      this.missing.delete(entered.use);
      const begins = this.hosts.get(entered.host_session)?.begins;
      const seals = tool === "merkle_finalize" && outcome === "ok";
      const isOurs = case_.kind !== "session" || session === case_.session;
      if (isOurs && outcome !== "cancelled" && (begins || !seals)) {
        this.missing.set(entered.use, { seq, hasEnded: true });
      }
    } else if (tail && outcome !== "cancelled") {
      if (tail.begun > 0) tail.begun -= 1;
      else tail.enters.push(seq);
    }
  }

  seal(session) {
    const tail = this.tails.get(session);
    this.tails.delete(session);
    if (tail && !tail.givesIds) this.sealed = this.sealed.concat(tail.enters);
  }

  found() {
    const tails = [...this.tails.values()].filter(({ givesIds }) => !givesIds);
    const ended = [...this.missing.values()].filter(({ hasEnded }) => hasEnded);
    const seqs = [...ended.map(({ seq }) => seq), ...tails.flatMap(({ enters }) => enters)];
    return [...this.sealed, ...seqs].sort((a, b) => a - b);
  }
}

const isPerson = (agent) => (agent ?? "").startsWith(HUMAN);

function checkText(case_, deed, text) {
  const named = ["call", "session", "task", "agent"];
  const follows = deed?.kind === "deed" && deed.seq === text.seq - 1;
  if (!follows || !named.every((name) => deed[name] === text[name])) {
    case_.find(12, "bad-pair", text.seq, "it does not follow its deed");
  } else if (text.body && deed.body.files.some(({ n }) => n >= text.body.paths.length)) {
    case_.find(12, "bad-pair", text.seq, "a file of its deed has no path");
  }
}

// 13 tasks

const ENDED = ["DONE", "CANCELLED"];
const NEEDS_DEPENDENCIES = ["APPLY", "VERIFY", "DONE"];
const NOTHING = valuesOf([...members("fields").keys(), ...members("texts").keys()], UNKNOWN);
const CREATED = [...members("fields").keys()].filter((name) => name !== "holder");
const HUMAN = "human:"; // how the names of people begin

/** A task as its records leave it; before the first of them nothing is known. */
class Task {
  values = NOTHING; // of its texts the digests
  version = 0;
  attempt = 1;
  began = 0; // the record that began the attempt
  thought = 0; // the last about it
  last = 0; // its last record, and the call that wrote it, while that is open
  call = "";
  texted = false; // whether its version has its task.text already
  isNew = false; // whether its last record created it
  waiting = new Set(); // the tasks that depend on it

  get needs() {
    return this.values.depends_on === UNKNOWN ? [] : this.values.depends_on;
  }
}

/** The tasks that can still change, or lead to one that can; and the names of all others. */
class Replay {
  tasks = new Map();
  ended = new Seen();

  take(case_, record, disclosed) {
    const { kind, seq, session, task: id } = record;
    if (CHANGES.includes(kind) && disclosed) {
      this.change(case_, record);
    } else if (kind === "deed" && disclosed && id !== null) {
      this.work(case_, record);
    } else if (["session.open", "thought"].includes(kind) && id !== null) {
      const isOurs = [id, null].includes(case_.task) && [session, null].includes(case_.session);
      if (disclosed && isOurs && !this.exists(id)) case_.find(13, "unknown-task", seq, id); // 10
      if (kind === "thought" && this.tasks.has(id)) this.tasks.get(id).thought = seq;
    }
  }

  /** A deed that names a task, which its session holds. */
  work(case_, { seq, session, task: id }) {
    const holder = this.tasks.get(id)?.values.holder ?? null;
    const isOver = typeof holder === "string" && case_.trail.ended.has(holder);
    const isHeld = holder === UNKNOWN || (holder === session && !isOver);
    if (session === null || !isHeld) case_.find(13, "wrong-holder", seq, id); // 11
  }

  exists(id) {
    return this.tasks.has(id) || this.ended.has(id);
  }

  /** A task or task.text record; without a body it is a text that was erased. */
  change(case_, record) {
    const { seq, call, task: id } = record;
    if (this.ended.has(id)) return case_.find(13, "change-after-end", seq, id); // 4
    if (!this.tasks.has(id)) this.tasks.set(id, new Task());
    const task = this.tasks.get(id);
    const isText = record.kind === "task.text";
    const [first, old] = [task.version === 0, task.values.status];
    const shares = isText && call === task.call && !task.texted;
    if (ENDED.includes(old) && !shares) return case_.find(13, "change-after-end", seq, id); // 4
    const { holder } = task.values;
    const isReleased = typeof holder === "string" && case_.trail.ended.has(holder);
    if (isReleased) task.values = { ...task.values, holder: null }; // 11
    const expected = shares ? task.version : task.version + 1;
    const body = record.body ?? { version: expected, set: {} };
    const made = stored(body.set);
    const lost = body.version > expected && case_.gaps.between(task.last, seq);
    if (lost) { // continue with what this record says, and nothing else
      case_.find(13, "missing-record", seq, id);
      task.values = NOTHING;
    } else {
      for (const code of this.broken(case_, record, body, made, expected)) case_.find(13, code, seq, id);
    }
    const unsaid = record.body === null ? valuesOf(members("texts").keys(), UNKNOWN) : {};
    const isFree = (first && !lost) || ENDED.includes(made.status?.[1]); // 11
    const freed = isFree ? { holder: null } : {};
    this.link(id, task, { ...task.values, ...unsaid, ...said(made), ...freed });
    if (first || (!lost && isRetry(old, made.status?.[1]))) task.began = seq;
    const { version, attempt = task.attempt } = body;
    Object.assign(task, { version, attempt, last: seq, call, texted: isText, isNew: first && !lost });
    return undefined;
  }

  /** Which rules of §6 a record breaks. */
  *broken(case_, record, body, made, expected) {
    const task = this.tasks.get(record.task);
    const first = task.version === 0;
    yield* first ? creation(body) : changed(task, body, made, expected);
    yield* this.dependencies(record.task, made, first);
    if (!first && task.values.status !== UNKNOWN) yield* this.moved(case_, record, made, body);
    const { holder } = task.values;
    if (!first && holder !== UNKNOWN) yield* held(case_, record, holder, made, body.taken ?? null);
  }

  /** Give a task its new values, and tell those that it depends on. */
  link(id, task, values) {
    for (const other of task.needs) this.tasks.get(other)?.waiting.delete(id);
    task.values = values;
    for (const other of task.needs) this.tasks.get(other)?.waiting.add(id);
  }

  /** Which rules of §6 about a task's state its change breaks, by their numbers. */
  *moved(case_, record, made, body) {
    const task = this.tasks.get(record.task);
    const after = { ...task.values, ...said(made) };
    const [old, now] = [task.values.status, after.status];
    if ((body.attempt ?? task.attempt) !== task.attempt + (isRetry(old, now) ? 1 : 0)) {
      yield "wrong-attempt"; // 6
    }
    if (old !== now && !MOVES[old].includes(now)) yield "illegal-move"; // 5
    else if (this.isBlocked(after, made)) yield "blocked-move"; // 8
    else if (old !== now && ENDED.includes(now) && lacksEvidence(case_, record, task)) {
      yield "missing-evidence"; // 9
    }
  }

  isBlocked({ status, depends_on: ids }, made) {
    return ("status" in made || "depends_on" in made) && NEEDS_DEPENDENCIES.includes(status) &&
      ids !== UNKNOWN &&
      ids.some((id) => this.tasks.has(id) && !ENDED.includes(this.tasks.get(id).values.status));
  }

  *dependencies(id, made, first) {
    const ids = made.depends_on?.[1] ?? [];
    if (!ids.every((other) => this.exists(other))) yield "unknown-task"; // 7
    if (ids.includes(id) || (ids.length > 0 && !first && this.leadsBack(id, ids))) {
      yield "dependency-cycle"; // 7
    }
  }

  /** Whether its dependencies lead back to a task, or nobody could tell: both ends have more links
   * than a server follows. */
  leadsBack(id, ids) {
    const ahead = this.reach(ids, (task) => task.needs);
    if (ahead !== null) return ahead.has(id);
    const behind = this.reach([id], (task) => task.waiting);
    return behind === null || ids.some((other) => behind.has(other));
  }

  /** All tasks that links lead to; null if there are too many links. */
  reach(ids, links) {
    const seen = new Set(ids);
    let count = 0;
    for (const id of seen) { // a Set grows while it is walked through
      for (const other of this.tasks.has(id) ? links(this.tasks.get(id)) : []) {
        count += 1;
        if (count > MAX_LINKS) return null;
        seen.add(other);
      }
    }
    return seen;
  }

  /** The call that made these changes has ended. A task that is final, and depends on no
   * other than such, is forgotten but for its name. */
  settle(changes) {
    const queue = changes.map(({ task }) => task);
    for (const id of queue) {
      const task = this.tasks.get(id);
      if (!task) continue;
      task.call = "";
      if (!ENDED.includes(task.values.status) || task.needs.some((one) => this.tasks.has(one))) continue;
      queue.push(...task.waiting);
      this.ended.add(id);
      this.tasks.delete(id);
    }
  }
}

/** Which rules of §6 a task's first record breaks, by their numbers. */
function* creation({ set, version, attempt, taken }) {
  if (taken !== undefined) yield "wrong-takeover"; // 12
  if (!isCreation(set, CREATED) || version !== 1 || attempt !== 1) yield "bad-creation"; // 1
  else if (set.status[1] !== "INIT") yield "illegal-move"; // 1
}

/** The same for a later record, which should have the version that is expected. */
function* changed(task, { set, version }, made, expected) {
  if (task.isNew && expected === task.version) {
    if (Object.keys(set).length > 0 && !isCreation(set, [...members("texts").keys()])) yield "bad-creation"; // 1
  } else if (Object.entries(made).some(([name, pair]) => isWrong(task.values[name], ...pair))) {
    yield "wrong-change"; // 3
  }
  if (version !== expected) yield "wrong-version"; // 2
}

/** Whether no thought is about the attempt; where one may lie in a gap, that is noted. */
function lacksEvidence(case_, { seq, task: id }, { began, thought }) {
  if (thought > began) return false;
  const excused = case_.gaps.between(began, seq) && id !== case_.task;
  if (excused) case_.excused.add(`record ${seq}, ${id}`);
  return !excused;
}

function valuesOf(names, value) {
  return Object.fromEntries(Array.from(names, (name) => [name, value]));
}

/** Changes with digests in place of texts. */
function stored(made) {
  const keep = (name) => (members("texts").has(name) ? digest : (value) => value);
  return Object.fromEntries(Object.entries(made).map(([name, pair]) => [name, pair.map(keep(name))]));
}

const said = (made) => Object.fromEntries(Object.entries(made).map(([name, [, now]]) => [name, now]));
const isRetry = (old, now) => old === "VERIFY" && now === "GATHER";
const isSame = (a, b) => dump(a) === dump(b);
const isWrong = (before, old, now) => before !== UNKNOWN && (!isSame(old, before) || isSame(old, now));

function isCreation(made, wanted) {
  const names = Object.keys(made);
  return names.length === wanted.length && names.every((name) => wanted.includes(name)) &&
    Object.values(made).every(([old]) => old === null);
}

/** Which rules of §6 about who holds a task its change breaks, by their numbers. */
function* held(case_, record, holder, made, taken) {
  const { seq, session: mine, task } = record;
  const now = "holder" in made ? made.holder[1] : holder;
  const takes = now !== null && now === mine;
  const isUnclaimed = holder === null && "status" in made && mine !== null && !takes;
  if (isUnclaimed || ("holder" in made && now !== null && now !== mine)) yield "wrong-holder"; // 11
  const isAnothers = holder !== null && holder !== mine;
  if (isAnothers && takes) {
    case_.taken.add(`record ${seq}, ${task}`);
    if (!isLastSign(case_, holder, taken, seq)) yield "wrong-takeover"; // 12
    return;
  }
  if (taken !== null) yield "wrong-takeover"; // 12
  if (isAnothers && !isRelease(case_, record, made)) yield "claimed-change"; // 12
}

/** Whether a person takes a task from its holder, and says why. */
function isRelease(case_, record, made) {
  return Object.keys(made).join() === "holder" && made.holder[1] === null &&
    isPersonWithReason(case_, record);
}

/** Whether a person makes a change and says why in the same call; perhaps in a gap. */
function isPersonWithReason({ ledger, gaps }, { seq, call: id, agent, task }) {
  const call = ledger.open.get(id);
  const saysWhy = call !== undefined && (gaps.between(call.enter.seq, seq) ||
    call.changes.some((one) => one.kind === "thought" && one.task === task));
  return (agent ?? "").startsWith(HUMAN) && saysWhy;
}

/** Whether a take-over names the last sign of life; only a whole log shows them all. */
function isLastSign(case_, holder, taken, seq) {
  if (taken === null || taken.last >= seq) return false;
  const known = case_.trail.signs.get(holder) ?? 0;
  return taken.last === known || (case_.kind !== "log" && taken.last > known);
}

/** §6, rule 13: the deeds of the sessions that are open, as far as a rule may ask for them. */
class Gates {
  sessions = new Map(); // of each its last edit, its last commands, and those that have begun

  take(case_, record) {
    const { kind, seq, body } = record;
    if (kind === "deed" && case_.kind === "task") {
      this.work(record).runs.set(seq, { body, begun: null, command: null, isErased: false });
    } else if (kind === "deed") {
      this.observe(record);
    } else if (kind === "deed.text") {
      const run = this.work(record).runs.get(seq - 1);
      if (run) Object.assign(run, { isErased: body === null, command: body?.command ?? null });
    } else if (kind === "session.seal" && case_.kind !== "task") {
      this.sessions.delete(record.session);
    } else if (kind === "task" && body !== null && "gate" in body) {
      this.judge(case_, record, body.gate);
    }
  }

  work({ session }) {
    if (!this.sessions.has(session)) {
      this.sessions.set(session, { edit: 0, runs: new Map(), begun: new Map() });
    }
    return this.sessions.get(session);
  }

  /** A deed, where all deeds of its session are. */
  observe(record) {
    const { seq, body } = record;
    const work = this.work(record);
    if (body.class === "edit" && body.event !== "tool.denied") work.edit = seq;
    if (body.class !== "run") return;
    const use = dump([body.host_session, body.host_agent, body.use]);
    const before = work.begun.get(use);
    if (body.event === "tool.begin") {
      work.begun.set(use, { seq, isKnown: before === undefined && body.late === null });
      return;
    }
    work.begun.delete(use);
    if (!ENDS.includes(body.event)) return;
    const begun = before?.isKnown ? before.seq : null;
    work.runs.set(seq, { body, begun, command: null, isErased: false });
    if (work.runs.size > RUNS) work.runs.delete(work.runs.keys().next().value);
  }

  judge(case_, record, gate) {
    const { seq, task, body: { set: made } } = record;
    const fits = gate.waived
      ? gate.evidence.length === 0 && isPersonWithReason(case_, record)
      : gate.evidence.length > 0 &&
        gate.evidence.map((one) => this.proves(case_, record, gate, one)).every(Boolean);
    if (!fits || made.status?.[1] !== "DONE") case_.find(13, "wrong-gate", seq, task);
  }

  /** Whether a deed satisfies a rule; what is not here cannot be told, and is noted. */
  proves(case_, record, gate, seq) {
    const isOurs = case_.kind === "session" && case_.session === record.session;
    const isWhole = case_.kind === "log" || isOurs;
    const work = this.work(record);
    const run = work.runs.get(seq);
    if (run === undefined) {
      const isElsewhere = !isWhole && (case_.kind === "session" || case_.gaps.place(seq) < 0);
      if (isElsewhere) case_.gated.add(record.seq);
      return isElsewhere && seq < record.seq;
    }
    if (run.isErased || (gate.after_last_edit && !isWhole)) case_.gated.add(record.seq);
    const isOlder = run.begun === null || run.begun < work.edit;
    const { class: class_, exit, late, event } = run.body;
    return class_ === "run" && exit === gate.exit && late === null && ENDS.includes(event) &&
      (run.isErased || matches(gate.command, run.command ?? "")) &&
      !(isWhole && gate.after_last_edit && work.edit > 0 && isOlder);
  }
}

const ENDS = ["tool.end", "tool.failed"];
const OPERATORS = /([;&|<>()$`!#\n\r])/;

/** Whether a command is of a pattern, in which * is any text without a shell operator. */
function matches(pattern, command) {
  if ([...command].length >= MAX_COMMAND || command.includes("[redacted:")) return false;
  const [wanted, given] = [pattern.split(OPERATORS), command.split(OPERATORS)];
  return wanted.length === given.length && wanted.every((part, at) =>
    (at % 2 === 0 ? covers(part, given[at]) : part === given[at]));
}

function covers(pattern, text) {
  const [first, ...others] = pattern.split("*");
  if (others.length === 0) return text === first;
  const last = others.pop();
  let at = first.length;
  for (const part of others) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return text.startsWith(first) && text.endsWith(last) && text.length - at >= last.length;
}

// 14 outside

function checkSeen(case_, { seq, leaf }) {
  const { kind, head, checkpoint, tree } = case_;
  if (head?.seq === seq) {
    case_.isKnown = true;
    if (leaf !== head.leaf) case_.find(14, "head-differs", seq);
  }
  if (kind === "log" && checkpoint !== null && seq <= checkpoint.size) tree.add(unhex(leaf));
}

function checkOutside(case_) {
  const { root, head, seals, last } = case_;
  if (root !== null && !case_.isFitting) {
    case_.find(14, "root-differs", seals.count === 1 ? seals.items[0].seq : null);
  }
  if (head === null || case_.isKnown) return;
  if (head.seq > last.seq && endsWithLog(case_)) {
    case_.find(14, "truncated", last.seq + 1, `record ${head.seq} was seen`);
  } else {
    case_.find(14, "head-not-covered", head.seq);
  }
}

/** A checkpoint from elsewhere is that of the bundle, or one of the records of a whole log. */
function checkCheckpoint(case_) {
  if (case_.checkpoint === null) return;
  const { stated, tree, last, checkpoint: { log, size, root } } = case_;
  let found = null;
  if (log !== case_.log) {
    case_.find(14, "checkpoint-differs", null, "it is of another log");
  } else if (stated?.size === size) {
    [case_.covered, found] = [last.seq, stated.root];
  } else if (tree.size === size) {
    [case_.covered, found] = [size, hex(tree.root())];
  } else if (size > last.seq && endsWithLog(case_)) {
    case_.find(14, "truncated", last.seq + 1, `a checkpoint of ${size} records was seen`);
  } else {
    case_.find(14, "checkpoint-not-covered", null, `it is of ${size} records`);
  }
  if (found !== null && found !== root) case_.find(14, "checkpoint-differs", case_.covered);
}

// 15 verdict

// §10: the findings, the line of the verdict that each turns to "no", and what it means
export const CODES = {
  "unreadable": ["unknown", "the file cannot be read"],
  "too-large": ["unknown", "a line of the file is larger than 16 MiB"],
  "malformed-bundle": ["unknown", "the file is not made like a bundle"],
  "unknown-version": ["unknown", "the file is of another version"],
  "empty-bundle": ["unknown", "the bundle holds no records: there is nothing to check"],
  "head-not-covered": ["unknown", "the head that was given is not in this bundle"],
  "checkpoint-not-covered": ["unknown", "the bundle does not lead to the checkpoint given"],
  "bad-header": ["intact", "the header is not made like one"],
  "foreign-record": ["intact", "the record is of another log"],
  "wrong-order": ["intact", "the record does not come after the one before it"],
  "wrong-head": ["intact", "the last record is not the one that head names"],
  "broken-link": ["intact", "the record follows another than the one before it"],
  "altered-header": ["intact", "what comes next follows another record than this"],
  "stray-payload": ["intact", "the payload is of no record whose payload belongs here"],
  "altered-payload": ["intact", "the payload is not the one that the header commits to"],
  "bad-payload": ["intact", "the payload is not made like one of its kind"],
  "head-differs": ["intact", "the record is not the one whose head was given"],
  "bad-checkpoint": ["intact", "the checkpoint of the bundle does not cover its last record"],
  "checkpoint-differs": ["intact", "the log does not have the checkpoint that was given"],
  "truncated": ["complete", "the records from here on are missing"],
  "missing-record": ["complete", "a record is missing"],
  "missing-payload": ["complete", "the payload is missing, and no erasure names it"],
  "stray-record": ["complete", "this kind of bundle has no place for the record"],
  "second-seal": ["sealed", "the session was already sealed"],
  "thought-after-seal": ["sealed", "the session was already sealed"],
  "wrong-index": ["sealed", "the index is not the thought's place in its session"],
  "broken-thought-chain": ["sealed", "the thought does not name the one before it"],
  "wrong-count": ["sealed", "the count is not that of the session's thoughts"],
  "wrong-range": ["sealed", "the session's thoughts do not begin and end there"],
  "wrong-root": ["sealed", "the root is not that of the session's thoughts"],
  "bad-proof": ["sealed", "the proof does not lead from a thought to the root of its seal"],
  "missing-proof": ["sealed", "nothing shows that the seal covers the thought"],
  "root-differs": ["sealed", "no seal of the bundle has the root that was given"],
  "change-after-seal": ["sealed", "the session was already sealed"],
  "second-open": ["rules", "the session was opened already"],
  "outside-session": ["rules", "the session was not open yet"],
  "bad-pair": ["rules", "the record does not fit the call that it names"],
  "stray-change": ["rules", "no call that ended well has made this change"],
  "wrong-server": ["rules", "another process continues the session"],
  "bad-repeat": ["rules", "the call that it repeats has not done the work"],
  "wrong-digest": ["rules", "a text of the call's arguments is not the one that it recorded"],
  "missing-change": ["rules", "the call has not made the changes that its tool makes"],
  "bad-creation": ["rules", "no task begins like this"],
  "wrong-version": ["rules", "the version is not the next"],
  "wrong-change": ["rules", "a value was not what it says, or is no other now"],
  "change-after-end": ["rules", "the task had ended"],
  "illegal-move": ["rules", "no task moves like this"],
  "wrong-attempt": ["rules", "the attempt is not the same, or on a retry not the next"],
  "unknown-task": ["rules", "a task that it names was not created before"],
  "dependency-cycle": ["rules", "the task waits for itself"],
  "blocked-move": ["rules", "the task waits for another"],
  "missing-evidence": ["rules", "it ended without a thought about the attempt"],
  "wrong-holder": ["rules", "a task is held by the session that moves or claims it"],
  "claimed-change": ["rules", "another session holds the task"],
  "wrong-takeover": ["rules", "a task is taken over, but its holder was not silent as claimed"],
  "wrong-gate": ["rules", "what it names does not satisfy the rule under which the task was DONE"],
  "bad-erasure": ["rules", "the erasure names what cannot be erased, or comes later"],
  "erased-payload": ["rules", "an erasure says that the payload is gone"],
};
const LINES = ["intact", "complete", "sealed", "rules"];

// §11: what can be left open.
export const NOTES = {
  "truth": "whether what was recorded is true, or something was never recorded",
  "clock": "the times, which come from the server's clock; the record numbers give the order",
  "skipped": "sessions, seals, proofs, calls and tasks, because of what was found",
  "arguments": "whether a call's answer, and arguments other than texts, fit what it recorded",
  "rules": "calls, tasks and the session's other thoughts, which are not in the bundle",
  "outside-head": "a truncated or rewritten log, which only a head from outside reveals",
  "outside-checkpoint": "whether the bundle's checkpoint is one that was published",
  "outside-root": "whether a seal's root is the one that was published",
  "size": "how many thoughts the root that was given covers: it came without its size",
  "gaps": "what the missing records say, and whether those around a gap are of one chain",
  "undisclosed": "records of which only the header is here",
  "erased": "payloads that can no longer be read",
  "evidence": "whether there was a thought about a task that ended",
  "takeover": "for how long the session from which a task was taken over had been silent",
  "gate": "whether a command was the one that a rule asks for, and ran after the last edit",
  "repeats": "whether the first of two calls with the same key has done the work",
};

function conclude(case_) {
  const { kind, last, found, badLines } = case_;
  const step = Math.min(10, ...found.keys());
  const skipped = step < 10;
  const bad = badLines.get(step) ?? new Set();
  const { items: findings, count: finding_count } = found.get(step) ?? new Listed();
  const lines = valuesOf(LINES, skipped ? "not checked" : "yes");
  for (const code of skipped ? ["truth", "clock", "skipped"] : ["truth", "clock"]) case_.note(code);
  const erased = skipped ? null : [...marked(case_, (mark) => (mark & ERASED) !== 0)];
  const seals = skipped ? new Listed() : case_.seals;
  if (!skipped) {
    lines.sealed = case_.trail.open.size > 0 ? "open" : seals.count > 0 ? "yes" : "none";
    lines.rules = kind === "thoughts" ? "not checked" : "yes";
    noteWhatIsOpen(case_, erased.length);
  }
  for (const line of LINES) if (bad.has(line)) lines[line] = "no";
  const calls = skipped || kind === "thoughts" ? null : case_.ledger;
  return new Verdict({
    verdict: Object.values(lines).includes("no") ? "bad" : bad.size > 0 ? "cannot tell" : "good",
    bundle: last === null ? null : described(case_),
    lines,
    seals: seals.items,
    seal_count: seals.count,
    erased: erased?.slice(0, MAX_LISTED) ?? null,
    erased_count: erased?.length ?? null,
    open_calls: calls?.listed() ?? null,
    open_call_count: calls?.open.size ?? null,
    coverage: calls && ["log", "session"].includes(kind) ? case_.deeds.coverage() : null,
    findings,
    finding_count,
    not_checked: case_.notes,
  });
}

/** What §10 lists: verdict (good, bad or cannot tell), bundle, lines, findings and so on. */
class Verdict {
  constructor(members) {
    Object.assign(this, members);
  }

  toJSON() {
    return { format: "colibri-verdict/1", ...this };
  }
}

function described({ kind, session, task, records, firstSeq: first_seq, last, stated }) {
  const { log, seq, leaf } = last;
  return { log, kind, session, task, records, first_seq, head: { seq, leaf }, checkpoint: stated };
}

function noteWhatIsOpen(case_, erased) {
  const { kind, gaps, root, hidden, excused, taken, unseen } = case_;
  const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
  const end = Math.min(case_.end, case_.last.seq);
  const isUnlinked = (known) => known < end || gaps.between(end, known);
  const spans = gaps.first.slice(0, 4).map((first, at) => `${first} to ${gaps.last[at]}`).join(", ");
  for (const [code, applies, fact] of [
    ["arguments", kind !== "thoughts", ""],
    ["rules", kind === "thoughts", ""],
    ["outside-head", [case_.head?.seq ?? 0, case_.covered].every(isUnlinked), ""],
    ["outside-checkpoint", case_.stated !== null && case_.checkpoint === null, ""],
    ["outside-root", case_.seals.count > 0 && root === null, ""],
    ["size", root !== null && !root.includes(":"), ""],
    ["gaps", gaps.first.length > 0, `${gaps.first.length} in all, ${spans}`],
    ["undisclosed", hidden > 0, `${hidden} in all`],
    ["erased", erased > 0, `${erased} in all`],
    ["evidence", excused.count > 0, `${excused.count} in all, first ${excused.items[0]}`],
    ["takeover", taken.count > 0, counted(taken.count, "task")],
    ["gate", case_.gated.count > 0, counted(case_.gated.count, "move")],
    ["repeats", unseen.count > 0, counted(unseen.count, "call")],
  ]) {
    if (applies) case_.note(code, fact);
  }
}

/** How much of the work the deeds show, a fact each; §10. */
export function covered(coverage) {
  if (coverage === null) return [];
  const { deeds, not_ended, not_ended_count, unpaired, unseen, unseen_count, unjudged } = coverage;
  const { settings_changed, lost, unreported, sessions } = coverage;
  if (deeds === 0) return ["none: no host reported what was done"];
  const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
  const listed = (seqs, count) =>
    [...seqs, ...(count > seqs.length ? [`… ${count} in all`] : [])].join(", ");
  const facts = [
    [not_ended_count, `${counted(not_ended_count, "tool call")} began and did not end: ` +
      listed(not_ended, not_ended_count)],
    [unpaired, `${counted(unpaired, "tool call")} whose begin and end cannot be paired: ` +
      "no id, or no begin, was reported"],
    [unseen_count, `${counted(unseen_count, "call")} to Colibri not reported, though the host ` +
      `had reported before: ${listed(unseen, unseen_count)}`],
    [unjudged, `${counted(unjudged, "edit")} not judged by the rule for edits`],
    [settings_changed, `the settings of the hooks changed ${counted(settings_changed, "time")}`],
    [lost, `${counted(lost, "deed")} could not be kept`],
    [unreported, `no deed in ${unreported} of ${counted(sessions, "session")}`],
  ];
  return [`${deeds} recorded`, ...facts.filter(([count]) => count > 0).map(([, fact]) => fact)];
}

/** A text of the bundle, short, and without characters that could deceive a reader. */
export function show(text) {
  const characters = [...String(text)];
  const cut = characters.length > MAX_LISTED ? [...characters.slice(0, MAX_LISTED), "…"] : characters;
  const isPlain = (c) => c === " " || !/[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/u.test(c);
  return cut.map((c) => (isPlain(c) ? c : `\\u{${c.codePointAt(0).toString(16)}}`)).join("");
}
