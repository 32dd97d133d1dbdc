// Check a Colibri evidence bundle, in a browser or under Node, with nothing but WebCrypto.
//
//     import { verify } from "./verify.mjs";
//     const verdict = await verify(bytes, { root: null, head: null });   // head: {seq, leaf}
//
// Nothing is fetched. This follows docs/formats.md (§ is a section there) and gives the same verdict
// as colibri_verify.py, whose parts it has in the same order; after the tables, that of §9:
//
//      1 read        at most 256 MiB
//      2 shape       strict JSON, with exactly the members of a bundle
//      3 headers     canonical, with exactly the members of a header
//      4 order       by ascending seq
//      5 links       each header names the leaf of the one before it
//      6 gaps        none but where the kind of bundle has them
//      7 payloads    those that the headers commit to, with exactly the members of their kind
//      8 erasures    of what can be erased, and it is gone
//      9 contents    all that the kind of bundle discloses (§8), and nothing else
//     10 sessions    opened once, thoughts in a row, sealed once under the right root
//     11 proofs      for thoughts whose session is not here as a whole
//     12 calls       enter, the changes that the tool makes, exit
//     13 tasks       replayed by the rules of §6
//     14 outside     the root and the head that the user has from elsewhere
//     15 verdict     and what was not checked
//
// Up to 9, the first step that finds anything is the last to run; then 10 to 14 all run.

const MAX_FILE = 256 * 1024 * 1024;
const MAX_DEPTH = 64;
const MAX_STEPS = 20_000_000; // of following dependencies
const MAX_LISTED = 100; // findings; also characters of a text that is shown
const NOWHERE = Number.MAX_SAFE_INTEGER + 1; // beyond every record
const FORMAT = "colibri-bundle/1";
const ZEROS = "0".repeat(64);

/** A bundle under examination. */
class Case {
  bundle = null;
  kind = "log"; // or session, task, thoughts
  session = null; // the scope, of which one is null at least
  task = null;
  records = []; // each a header's members, and leaf, body (of its payload, or null), disclosed
  bySeq = new Map();
  gaps = []; // first and last missing, ascending
  start = NOWHERE; // of the stretch, within which no record is missing
  end = 0;
  erased = new Set();
  openSessions = 0;
  openCalls = [];
  findings = []; // the first MAX_LISTED
  findingCount = 0;
  badLines = new Set();
  notes = [];

  constructor(root, head) {
    Object.assign(this, { root, head }); // what the user knows from elsewhere
  }

  /** Say that a rule is broken, and at which record. */
  find(code, seq, fact = "") {
    const [line, meaning] = CODES[code];
    this.badLines.add(line);
    this.findingCount += 1;
    if (this.findings.length < MAX_LISTED) {
      this.findings.push({ code, seq, detail: meaning + (fact === "" ? "" : `: ${show(fact)}`) });
    }
  }

  /** Say that something was not checked. */
  note(code, fact = "") {
    this.notes.push({ code, detail: NOTES[code] + (fact === "" ? "" : `: ${show(fact)}`) });
  }

  /** Whether a record between these two, neither included, is missing from the bundle. */
  hasGap(first, last) {
    let [low, high] = [0, this.gaps.length]; // the gaps that begin before `last`
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.gaps[middle][0] < last) low = middle + 1;
      else high = middle;
    }
    return low > 0 && this.gaps[low - 1][1] > first;
  }

  /** The first record of a kind, after a seq, whose header has this member. */
  first(kind, member, value, after = 0) {
    return this.records.find((r) => r.kind === kind && r.seq > after && r[member] === value) ?? null;
  }
}

/** Judge a bundle; root and head are what the caller knows from elsewhere. */
export async function verify(bytes, { root = null, head = null } = {}) {
  const case_ = new Case(root, head);
  readBundle(case_, bytes); // 1, 2
  const steps = [
    readHeaders, // 3
    checkOrder, // 4
    checkLinks, // 5
    checkGaps, // 6
    readPayloads, // 7
    checkErasures, // 8
    checkContents, // 9
  ];
  for (const step of steps) if (case_.findings.length === 0) await step(case_);
  if (case_.findings.length > 0) return conclude(case_, true); // 15
  if (case_.kind !== "thoughts") await checkSessions(case_); // 10
  if (["task", "thoughts"].includes(case_.kind)) await checkProofs(case_); // 11
  if (case_.kind !== "thoughts") {
    checkCalls(case_); // 12
    checkTasks(case_); // 13
  }
  checkOutside(case_); // 14
  return conclude(case_, false); // 15
}

// §2, §3, §8: the members of every object. "a=b" is: the member a is a b; "?" is: or null; "*" is:
// an array of these, "*64" one of at most 64.

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
  bundle: `format=format log=log scope=scope? headers=text* payloads=object seals=seqs
    head=head proofs=proof*`,
  "of-session": "session=id",
  "of-task": "task=id",
  head: "seq=seq leaf=hash",
  proof: "seq=seq index=int size=int path=hash*64",
  secret: "nonce=text body=text",
  header: `v=one log=log seq=seq at=time kind=kind call=uuid session=text? task=text?
    agent=text? payload=hash prev=hash`,
  "call.enter": "server=uuid tool=text arguments=object? size=int? sha256=hash?",
  "call.exit": "enter=seq tool=text outcome=outcome code=text? result_sha256=hash? duration_ms=int",
  "session.open": "session_id=text intent=text task_id=text?",
  thought: "thought_id=text index=int type=thinking content=text prev=hash",
  "session.seal": "root=hash count=seq first_seq=seq last_seq=seq",
  task: "task_id=text version=seq attempt=seq set=fields-changed",
  "task.text": "task_id=text version=seq set=texts-changed",
  erasure: "seqs=some-seqs reason=text?",
  fields: "status=status priority=priority assignee=text? project=text? depends_on=tasks",
  texts: "title=text description=text?",
};
const CALLS = ["call.enter", "call.exit"];
const TRAIL = ["session.open", "thought", "session.seal"];
const CHANGES = ["task", "task.text"];
const KINDS = [...CALLS, ...TRAIL, ...CHANGES, "erasure"];
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
};
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const ascends = (values) => values.every((value, at) => at === 0 || values[at - 1] < value);
const TESTS = {
  text: (value) => typeof value === "string",
  object: isObject,
  int: (value) => Number.isSafeInteger(value) && value >= 0,
  seq: (value) => Number.isSafeInteger(value) && value >= 1,
  kind: (value) => KINDS.includes(value),
  one: (value) => value === 1,
  seqs: (value) => test("seq*")(value) && ascends(value),
  "some-seqs": (value) => test("seqs")(value) && value.length >= 1,
  tasks: (value) => test("text*100")(value) && new Set(value).size === value.length,
  scope: (value) => test("of-session")(value) || test("of-task")(value),
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
    known.members.set(shape, new Map(pairs.map(([name, type]) => [name, test(type)])));
  }
  return known.members.get(shape);
}

/** What is wrong with an object's members, or nothing. */
function whyNot(value, shape) {
  const wanted = members(shape);
  const names = isObject(value) ? Object.keys(value) : [];
  if (names.length !== wanted.size || !names.every((name) => wanted.has(name))) {
    return `its members are not ${[...wanted.keys()].join(" ")}`;
  }
  const wrong = [...wanted].filter(([name, fits]) => !fits(value[name])).map(([name]) => name);
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
const encoder = new TextEncoder();
const STOP = /["\\\u0000-\u001f]/g; // no pattern repeats without bound: long texts exhaust its stack
const NUMBER = /-?(?:0|[1-9][0-9]{0,15})(?![0-9.eE])/y;
const WORD = /true|false|null/y;
const SURROGATE = /\p{Surrogate}/u;
const WORDS = { true: true, false: false, null: null };

function decodeText(bytes) {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new Invalid("not UTF-8");
  }
}

/** The one JSON value that a text is; Invalid for all that §1 does not allow. */
export function parseJson(text) {
  let at = 0;
  const expect = (holds) => {
    if (!holds) throw new Invalid(`not JSON, or a number that is no integer, at character ${at}`);
  };
  const take = (pattern) => {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    expect(match !== null);
    at = pattern.lastIndex;
    return match[0];
  };
  const space = () => {
    while (" \t\n\r".includes(text[at] ?? "x")) at += 1;
  };
  const skip = (character) => {
    if (text[at] !== character) return false;
    at += 1;
    space();
    return true;
  };
  const string = () => {
    expect(text[at] === '"');
    let escaped = false;
    for (STOP.lastIndex = at + 1; ; STOP.lastIndex += 1) {
      const stop = STOP.exec(text);
      expect(stop !== null && stop[0] >= '"');
      if (stop[0] === '"') break;
      escaped = true; // the next character is not a stop, whatever it is
    }
    const raw = text.slice(at, STOP.lastIndex);
    let value = raw.slice(1, -1);
    try {
      if (escaped) value = JSON.parse(raw);
    } catch {
      expect(false);
    }
    if (SURROGATE.test(value)) throw new Invalid("a lone surrogate");
    at += raw.length;
    return value;
  };
  const number = () => {
    const value = Number(take(NUMBER));
    if (!Number.isSafeInteger(value)) throw new Invalid("a number beyond ±(2^53-1)");
    return value;
  };
  const object = (depth) => {
    const value = Object.create(null);
    if (skip("}")) return value;
    do {
      const key = string();
      space();
      expect(skip(":"));
      if (key in value) throw new Invalid("a key comes twice");
      value[key] = any(depth);
    } while (skip(","));
    expect(skip("}"));
    return value;
  };
  const array = (depth) => {
    const value = [];
    if (skip("]")) return value;
    do value.push(any(depth)); while (skip(","));
    expect(skip("]"));
    return value;
  };
  const any = (depth) => {
    const first = text[at];
    if (first === "{" || first === "[") {
      if (depth === MAX_DEPTH) throw new Invalid("nested too deeply");
      skip(first);
      return first === "{" ? object(depth + 1) : array(depth + 1);
    }
    const isNumber = first === "-" || (first >= "0" && first <= "9");
    const value = first === '"' ? string() : isNumber ? number() : WORDS[take(WORD)];
    space();
    return value;
  };
  space();
  const value = any(0);
  expect(at === text.length);
  return value;
}

/** The value of canonical bytes, or null; and what is wrong with it, or nothing. */
function parseCanonical(bytes, shape) {
  try {
    const text = decodeText(bytes);
    const value = parseJson(text);
    return dump(value) === text ? [value, whyNot(value, shape)] : [null, "not in canonical form"];
  } catch (problem) {
    return [null, messageOf(problem)];
  }
}

function dump(value) {
  if (Array.isArray(value)) return `[${value.map(dump).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  if (keys.some((key) => /[^\u0000-\u007f]/.test(key))) throw new Invalid("a key that is not ASCII");
  return `{${keys.map((key) => `${JSON.stringify(key)}:${dump(value[key])}`).join(",")}}`;
}

/** What an Invalid says; any other error is a fault of this program, and not caught. */
function messageOf(problem) {
  if (!(problem instanceof Invalid)) throw problem;
  return problem.message;
}

// §2, §4: hashes and trees

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

export const hex = (bytes) => Array.from(bytes, (byte) => HEX[byte]).join("");
export const unhex = (text) =>
  Uint8Array.from({ length: text.length / 2 }, (_, at) => parseInt(text.substr(2 * at, 2), 16));

async function sha256(...parts) {
  const data = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    data.set(part, at);
    at += part.length;
  }
  return new Uint8Array(await crypto.subtle.digest("SHA-256", data));
}

export const leafHash = (header) => sha256([0], header);
export const nodeHash = (left, right) => sha256([1], left, right);

/** RFC 6962's tree hash, by its definition; of at least one leaf. */
export async function treeRoot(leaves) {
  if (leaves.length === 1) return leaves[0];
  let k = 1; // the largest power of two below
  while (2 * k < leaves.length) k *= 2;
  return nodeHash(await treeRoot(leaves.slice(0, k)), await treeRoot(leaves.slice(k)));
}

/** The root that a proof leads to; null if a tree of this size has no such proof. */
export async function rootOfProof(leaf, index, size, path) {
  if (!(TESTS.int(index) && index < size)) return null;
  const half = (n) => Math.floor(n / 2); // >> would cut off at 32 bits
  let [f, s, r] = [index, size - 1, leaf];
  for (const p of path) {
    if (s === 0) return null;
    if (f % 2 === 1 || f === s) {
      r = await nodeHash(p, r);
      while (f !== 0 && f % 2 === 0) [f, s] = [half(f), half(s)];
    } else {
      r = await nodeHash(r, p);
    }
    [f, s] = [half(f), half(s)];
  }
  return s === 0 ? r : null;
}

/** WebCrypto answers late: ask for many hashes at once, but not for all. */
async function hashMany(items, ask) {
  const answers = [];
  for (let at = 0; at < items.length; at += 1024) {
    for (const hash of await Promise.all(items.slice(at, at + 1024).map(ask))) answers.push(hex(hash));
  }
  return answers;
}

// 1 read, 2 shape

function readBundle(case_, bytes) {
  let bundle;
  try {
    if (bytes.length > MAX_FILE) return case_.find("too-large", null);
    bundle = parseJson(decodeText(bytes));
    const name = isObject(bundle) ? bundle.format : null;
    if (TESTS.text(name) && name.startsWith("colibri-bundle/") && name !== FORMAT) {
      return case_.find("unknown-version", null, name);
    }
    const wrong = whyNot(bundle, "bundle");
    if (wrong !== "") throw new Invalid(wrong);
    if (bundle.scope === null && bundle.proofs.length > 0) throw new Invalid("proofs without a scope");
    bundle.headers = bundle.headers.map(decode);
    bundle.payloads = Object.entries(bundle.payloads).map(readSecret).sort((a, b) => a.seq - b.seq);
  } catch (problem) {
    return case_.find("malformed-bundle", null, messageOf(problem));
  }
  if (bundle.headers.length === 0) case_.find("empty-bundle", null);
  const { session = null, task = null } = bundle.scope ?? {};
  Object.assign(case_, { bundle, session, task });
  case_.kind = task !== null ? "task" : session !== null ? "session" : "log";
  if (case_.kind === "session" && bundle.proofs.length > 0) case_.kind = "thoughts";
  return undefined;
}

/** The seq, nonce and body of a payload. */
function readSecret([key, secret]) {
  const seq = Number(key);
  if (!/^[1-9][0-9]{0,15}$/.test(key) || !TESTS.seq(seq)) throw new Invalid("a payload of no seq");
  const wrong = whyNot(secret, "secret");
  if (wrong !== "") throw new Invalid(`payload ${key}: ${wrong}`);
  const [nonce, body] = [decode(secret.nonce), decode(secret.body)];
  if (nonce.length !== 32) throw new Invalid(`payload ${key}: a nonce has 32 bytes`);
  return { seq, nonce, body };
}

/** The bytes of strict base64, at least one. */
function decode(text) {
  let binary = "";
  try {
    binary = atob(text);
  } catch {
    // said below
  }
  if (binary === "" || btoa(binary) !== text) throw new Invalid("a text that is not base64");
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

// 3 headers, 4 order, 5 links

async function readHeaders(case_) {
  const { bundle, records } = case_;
  const leaves = await hashMany(bundle.headers, leafHash);
  for (const [at, bytes] of bundle.headers.entries()) {
    let [header, wrong] = parseCanonical(bytes, "header");
    if (wrong === "" && header[NAMES[header.kind] ?? "kind"] === null) {
      wrong = `a ${header.kind} record without a ${NAMES[header.kind]}`;
    }
    if (wrong !== "") {
      case_.find("bad-header", isObject(header) && TESTS.seq(header.seq) ? header.seq : null, wrong);
    } else if (header.log !== bundle.log) {
      case_.find("foreign-record", header.seq, header.log);
    } else {
      records.push({ ...header, leaf: leaves[at], body: null, disclosed: false });
    }
  }
}

function checkOrder(case_) {
  let last = 0;
  for (const record of case_.records) {
    if (record.seq <= last) case_.find("wrong-order", record.seq);
    last = record.seq;
    case_.bySeq.set(record.seq, record);
  }
}

async function checkLinks(case_) {
  const { records, bundle: { log, head } } = case_;
  const last = records.at(-1);
  const genesis = hex(await sha256(encoder.encode("colibri/ledger/v1\n"), encoder.encode(log)));
  const leaves = new Set([genesis, ...records.map((record) => record.leaf)]);
  let doubt = false; // whether the later of two neighbours is itself in doubt
  if (head.seq > last.seq) {
    case_.find("truncated", last.seq + 1, `the bundle's head is ${head.seq}`);
  } else if (head.seq !== last.seq || head.leaf !== last.leaf) {
    case_.find("wrong-head", last.seq);
    doubt = true;
  }
  for (let at = records.length - 1; at > 0; at -= 1) {
    const [earlier, later] = [records[at - 1], records[at]];
    const linked = later.seq !== earlier.seq + 1 || later.prev === earlier.leaf;
    if (!linked && !doubt) {
      if (leaves.has(later.prev)) case_.find("broken-link", later.seq);
      else case_.find("altered-header", earlier.seq);
    }
    doubt = !linked;
  }
  if (records[0].seq === 1 && records[0].prev !== genesis && !doubt) {
    case_.find("broken-link", 1, "not the genesis");
  }
}

// 6 gaps

function checkGaps(case_) {
  const opening = case_.first("session.open", "session", case_.session);
  const seal = case_.first("session.seal", "session", case_.session);
  const sealing = seal && case_.first("call.exit", "call", seal.call, seal.seq);
  let mustBeThere = true;
  case_.end = case_.records.at(-1).seq;
  if (case_.kind === "log") {
    case_.start = 0;
  } else if (case_.kind === "session") {
    mustBeThere = opening !== null;
    case_.start = opening?.seq ?? case_.end;
    case_.end = sealing?.seq ?? case_.end;
  } else if (case_.kind === "thoughts") {
    mustBeThere = seal !== null;
    case_.end = seal?.seq ?? case_.end;
  } else {
    mustBeThere = case_.first("task", "task", case_.task) !== null;
  }
  if (!mustBeThere) {
    return case_.find("missing-record", null, "the one that the scope begins or ends with");
  }
  let before = 0;
  for (const { seq } of case_.records) {
    if (seq > before + 1) {
      case_.gaps.push([before + 1, seq - 1]);
      if (case_.start <= before && seq <= case_.end) {
        case_.find("missing-record", before + 1, `${before + 1} to ${seq - 1}`);
      }
    }
    before = seq;
  }
  return undefined;
}

// 7 payloads, 8 erasures

async function readPayloads(case_) {
  const { payloads } = case_.bundle;
  const tag = encoder.encode("colibri/payload/v1\n");
  const hashes = await hashMany(payloads, ({ nonce, body }) => sha256(tag, nonce, body));
  for (const [at, { seq, body }] of payloads.entries()) {
    const record = case_.bySeq.get(seq);
    if (record === undefined) {
      case_.find("stray-payload", seq);
    } else if (hashes[at] !== record.payload) {
      case_.find("altered-payload", seq);
    } else {
      let wrong;
      [record.body, wrong] = parseCanonical(body, record.kind);
      if (wrong === "" && AGREE[record.kind] && !AGREE[record.kind](record, record.body)) {
        wrong = "its members contradict each other or the header";
      }
      if (wrong !== "") case_.find("bad-payload", seq, wrong);
    }
  }
}

function checkErasures(case_) {
  const erasable = ["call.enter", "session.open", "thought", "task.text"];
  for (const erasure of case_.records) {
    for (const seq of erasure.kind === "erasure" && erasure.body ? erasure.body.seqs : []) {
      const record = case_.bySeq.get(seq);
      if (seq >= erasure.seq || (record && !erasable.includes(record.kind))) {
        case_.find("bad-erasure", erasure.seq, seq);
      } else if (record && record.body !== null) {
        case_.find("erased-payload", seq);
      } else if (record) {
        case_.erased.add(seq);
      }
    }
  }
}

// 9 contents

function checkContents(case_) {
  const shown = new Set(toDisclose(case_).map((record) => record.seq));
  const last = case_.records.findLast((record) => shown.has(record.seq))?.seq ?? 0;
  // A header may stand alone within the stretch, and in a tail of it without a gap.
  const reach = case_.hasGap(case_.start, last) ? case_.end : Math.max(case_.end, last);
  for (const record of case_.records) {
    const { seq, body } = record;
    record.disclosed = shown.has(seq);
    if (record.disclosed && body === null && !case_.erased.has(seq)) {
      case_.find("missing-payload", seq);
    } else if (!record.disclosed && !(case_.start <= seq && seq <= reach)) {
      case_.find("stray-record", seq);
    } else if (!record.disclosed && body !== null) {
      case_.find("stray-payload", seq);
    }
  }
  const [stated, there] = [case_.bundle.seals, sealsOf(case_).map((seal) => seal.seq)];
  const at = [...stated, Infinity].findIndex((seq, n) => seq !== (there[n] ?? Infinity));
  if (at >= 0) case_.find("wrong-seals", Math.min(stated[at] ?? Infinity, there[at] ?? Infinity));
}

/** The records whose payloads belong into the bundle, by §8. */
function toDisclose(case_) {
  const { kind, records, session, task, start, end } = case_;
  if (kind === "log") return records;
  let own;
  let tasks;
  if (kind === "task") {
    own = records.filter((r) => r.kind === "thought" && r.task === task);
    tasks = new Set([task]);
    const sessions = new Set(own.map((r) => r.session));
    const ends = ["session.open", "session.seal"];
    own = [...own, ...records.filter((r) => ends.includes(r.kind) && sessions.has(r.session))];
  } else {
    const inside = records.filter((r) => TRAIL.includes(r.kind) || (start <= r.seq && r.seq <= end));
    own = inside.filter((r) => r.session === session);
    const naming = own.filter((r) => ["session.open", "thought"].includes(r.kind));
    tasks = new Set(naming.map((r) => r.task));
  }
  if (kind === "thoughts") {
    own = own.filter((r) => r.kind === "thought" || r.seq === case_.end);
  } else {
    own = [...own, ...changesOf(case_, tasks), ...callsAbout(case_, tasks)];
    const calls = new Set(own.map((r) => r.call));
    own = [...own, ...records.filter((r) => CALLS.includes(r.kind) && calls.has(r.call))];
  }
  const erasures = records.filter((r) => r.kind === "erasure" && r.body !== null);
  return [...own, ...erasures.filter((r) => r.body.seqs.some((seq) => case_.bySeq.has(seq)))];
}

/** What else may be disclosed: how calls about these tasks ended that changed nothing. */
function callsAbout({ kind, records, start, end }, tasks) {
  const isThere = ({ seq, body }) => body !== null && (kind === "task" || (start <= seq && seq <= end));
  const isAbout = (r) => r.kind === "call.exit" && r.session === null && tasks.has(r.task);
  return records.filter((r) => isAbout(r) && isThere(r));
}

/** The changes of these tasks, and of all that they have ever depended on. */
function changesOf({ records, end }, tasks) {
  const changes = groupBy(records.filter((r) => CHANGES.includes(r.kind) && r.seq <= end), "task");
  const chosen = [];
  for (const task of tasks) { // a Set grows while it is walked through
    for (const record of changes.get(task) ?? []) {
      chosen.push(record);
      for (const ids of record.body?.set.depends_on ?? []) for (const id of ids ?? []) tasks.add(id);
    }
  }
  return chosen;
}

const sealsOf = ({ records }) => records.filter((r) => r.kind === "session.seal" && r.disclosed);

function groupBy(records, member) {
  const groups = new Map();
  for (const record of records) {
    if (!groups.has(record[member])) groups.set(record[member], []);
    groups.get(record[member]).push(record);
  }
  return groups;
}

// 10 sessions and seals, 11 proofs

async function checkSessions(case_) {
  const sessions = new Map();
  const openings = new Set();
  for (const { kind, session } of case_.records) if (kind === "session.open") openings.add(session);
  for (const record of case_.records) {
    const { kind, seq, session: id } = record;
    if (!TRAIL.includes(kind) || (case_.kind === "session" && id !== case_.session)) continue;
    if (!sessions.has(id)) {
      // index: of the next thought; after a gap it may be greater
      // placed: the last record whose place in the session is known
      sessions.set(id, { opened: 0, sealed: false, thoughts: [], index: 0, placed: 0 });
    }
    const session = sessions.get(id);
    if (kind === "session.open" && session.opened) {
      case_.find("second-open", seq, id);
    } else if (kind === "session.open") {
      session.opened = seq;
      session.placed = seq;
    } else if (!session.opened) {
      const lost = !openings.has(id) && case_.hasGap(0, seq);
      case_.find(lost ? "missing-record" : "outside-session", seq, id);
    } else if (session.sealed) {
      case_.find(kind === "thought" ? "thought-after-seal" : "second-seal", seq, id);
    } else if (kind === "thought") {
      checkThought(case_, record, session);
    } else {
      await checkSeal(case_, record, session);
    }
  }
  case_.openSessions = [...sessions.values()].filter((session) => !session.sealed).length;
}

function checkThought(case_, thought, session) {
  const { seq, body } = thought;
  const gap = case_.hasGap(session.placed, seq); // others may lie there
  if (body && gap && body.index > session.index) {
    session.index = body.index;
  } else if (body) { // otherwise it is erased; its header still holds its place
    if (body.index !== session.index) case_.find("wrong-index", seq, body.index);
    if (body.prev !== (session.thoughts.at(-1)?.leaf ?? ZEROS)) {
      case_.find("broken-thought-chain", seq);
    }
  }
  if (body || !gap) session.placed = seq;
  session.index += 1;
  session.thoughts.push(thought);
}

async function checkSeal(case_, { seq, body: stated }, session) {
  const { thoughts, index } = session;
  session.sealed = true;
  const gap = case_.hasGap(session.opened, seq); // what lies there is for the proofs to show
  if (stated.count < index || (stated.count > index && !gap)) {
    case_.find("wrong-count", seq, `${stated.count}, not ${index}`);
  }
  if (thoughts.length === 0) return;
  const early = thoughts[0].seq - stated.first_seq;
  const late = stated.last_seq - thoughts.at(-1).seq;
  if (early < 0 || late < 0 || ((early || late) && !gap)) case_.find("wrong-range", seq);
  if (!gap && stated.root !== hex(await treeRoot(thoughts.map((thought) => unhex(thought.leaf))))) {
    case_.find("wrong-root", seq);
  }
}

async function checkProofs(case_) {
  const seals = new Map(sealsOf(case_).reverse().map((seal) => [seal.session, seal.body]));
  const proven = case_.records.filter((r) => r.kind === "thought" && seals.has(r.session));
  const thoughts = new Map(proven.map((thought) => [thought.seq, thought]));
  for (const proof of case_.bundle.proofs) {
    const thought = thoughts.get(proof.seq);
    thoughts.delete(proof.seq);
    if (thought === undefined) {
      case_.find("bad-proof", proof.seq, "of no thought here that a seal covers");
      continue;
    }
    const { root, count: size } = seals.get(thought.session);
    const index = thought.body === null ? proof.index : thought.body.index;
    const found = await rootOfProof(unhex(thought.leaf), index, size, proof.path.map(unhex));
    const holds = found !== null && hex(found) === root;
    if (!holds || proof.index !== index || proof.size !== size) {
      case_.find("bad-proof", thought.seq, `the thought is ${index} of ${size}`);
    }
  }
  for (const seq of thoughts.keys()) case_.find("missing-proof", seq);
}

// 12 calls

// §5: the changes that a tool can have made when its call ended ok; any other tool, none
const NONE = [[]];
const MADE_BY = new Map(Object.entries({
  audit_session_start: [["session.open"]],
  thought_record: [["thought"]],
  merkle_finalize: [["session.seal"]],
  task_create: [["task", "task.text"]],
  task_update: [[], ["task"], ["task.text"], ["task", "task.text"]],
}));

function checkCalls(case_) {
  const records = case_.records.filter((r) => r.disclosed && r.kind !== "erasure");
  for (const call of groupBy(records, "call").values()) checkCall(case_, call);
}

/** All records of one call, which must be its enter, its changes and its exit. */
function checkCall(case_, records) {
  let enter = null;
  let exit = null;
  const changes = [];
  for (const record of records) {
    const isExit = record.kind === "call.exit";
    const misplaced = CALLS.includes(record.kind) ? "bad-pair" : "stray-change";
    if (record.kind === "call.enter" && !enter) {
      enter = record;
    } else if (!enter) {
      const at = isExit ? record.body.enter : record.seq;
      const lost = case_.hasGap(isExit ? at - 1 : 0, at + 1);
      case_.find(lost ? "missing-record" : misplaced, lost ? at : record.seq);
    } else if (exit || record.kind === "call.enter") {
      case_.find(misplaced, record.seq);
    } else if (isExit) {
      exit = record;
    } else {
      changes.push(record);
    }
  }
  if (enter) checkChanges(case_, enter, changes, exit);
}

function checkChanges(case_, enter, changes, exit) {
  const tool = enter.body === null ? null : enter.body.tool; // null: erased
  for (const record of exit ? [...changes, exit] : changes) {
    const same = (name) => enter[name] === null || enter[name] === record[name];
    if (record.agent !== enter.agent || !same("session") || !same("task")) {
      case_.find("bad-pair", record.seq, "another session, task or agent");
    }
  }
  if (exit === null) {
    case_.openCalls.push({ seq: enter.seq, call: enter.call, tool: tool && show(tool) });
  } else if (exit.body.enter !== enter.seq || (tool !== null && exit.body.tool !== tool)) {
    return case_.find("bad-pair", exit.seq, "another enter or tool");
  }
  const allowed = exit?.body.outcome === "ok" ? (MADE_BY.get(exit.body.tool) ?? NONE) : NONE;
  const made = changes.map((change) => change.kind).join();
  if (!allowed.some((kinds) => kinds.join() === made)) {
    const most = allowed.at(-1);
    const foreign = changes.filter((change) => !most.includes(change.kind));
    const stray = foreign.length > 0 ? foreign : changes.slice(most.length);
    for (const change of stray) case_.find("stray-change", change.seq);
    if (exit && stray.length === 0) case_.find("missing-change", exit.seq);
  }
  return undefined;
}

// 13 tasks

const ENDED = ["DONE", "CANCELLED"];
const NEEDS_DEPENDENCIES = ["APPLY", "VERIFY", "DONE"];
const UNKNOWN = Symbol("a value that an erased or missing record may have set");
const NOTHING = valuesOf([...members("fields").keys(), ...members("texts").keys()], UNKNOWN);

/** A task as its records leave it; before the first of them nothing is known. */
class Task {
  values = NOTHING;
  version = 0;
  attempt = 1;
  began = 0; // the record that began the attempt
  last = 0; // its last record, and the call that wrote it
  call = "";
  texted = false; // whether its version has its task.text already
  isNew = false; // whether its last record created it
}

/** All tasks, while their records are taken one by one. */
class Replay {
  tasks = new Map();
  thoughts = new Map(); // the last about each task
  steps = 0;

  constructor(case_) {
    this.case = case_;
  }

  /** A task or task.text record; without a body it is a text that was erased. */
  take(record) {
    const { seq, call } = record;
    if (!this.tasks.has(record.task)) this.tasks.set(record.task, new Task());
    const task = this.tasks.get(record.task);
    const isText = record.kind === "task.text";
    const [first, old] = [task.version === 0, task.values.status];
    const shares = isText && call === task.call && !task.texted;
    const expected = shares ? task.version : task.version + 1;
    const body = record.body ?? { version: expected, set: {} };
    const lost = body.version > expected && this.case.hasGap(task.last, seq);
    if (lost) { // go on with what this record says, and nothing else
      this.case.find("missing-record", seq, record.task);
      task.values = NOTHING;
    } else {
      const rules = first ? this.creation(record, body) : this.change(record, body, expected);
      for (const code of rules) this.case.find(code, seq, record.task);
    }
    const unsaid = record.body === null ? valuesOf(members("texts").keys(), UNKNOWN) : {};
    task.values = { ...task.values, ...unsaid, ...said(body.set) };
    if (first || (!lost && isRetry(old, body.set.status?.[1]))) task.began = seq;
    const { version, attempt = task.attempt } = body;
    Object.assign(task, { version, attempt, last: seq, call, texted: isText, isNew: first && !lost });
  }

  /** Which rules of §6 a task's first record breaks, by their numbers. */
  *creation(record, body) {
    if (!isCreation(body.set, "fields") || body.version !== 1 || body.attempt !== 1) {
      yield "bad-creation"; // 1
    } else if (body.set.status[1] !== "INIT") {
      yield "illegal-move"; // 1
    }
    yield* this.dependencies(record, body, true); // 7
  }

  /** The same for a later record, which should have the version that is expected. */
  *change(record, body, expected) {
    const task = this.tasks.get(record.task);
    const shares = expected === task.version;
    const after = { ...task.values, ...said(body.set) };
    const [old, now] = [task.values.status, after.status];
    if (task.isNew && shares) {
      if (record.body !== null && !isCreation(body.set, "texts")) yield "bad-creation"; // 1
    } else if (Object.entries(body.set).some(([name, pair]) => isWrong(task.values[name], ...pair))) {
      yield "wrong-change"; // 3
    }
    if (body.version !== expected) yield "wrong-version"; // 2
    yield* this.dependencies(record, body, false); // 7
    if (old === UNKNOWN) return;
    if ((body.attempt ?? task.attempt) !== task.attempt + (isRetry(old, now) ? 1 : 0)) {
      yield "wrong-attempt"; // 6
    }
    const moves = {
      "change-after-end": ENDED.includes(old) && !shares, // 4
      "illegal-move": old !== now && !MOVES[old].includes(now), // 5
      "blocked-move": this.isBlocked(after, body.set), // 8
      "missing-evidence": old !== now && now === "DONE" && this.lacksEvidence(record), // 9
    };
    yield* Object.keys(moves).filter((code) => moves[code]).slice(0, 1);
  }

  *dependencies(record, { set }, first) {
    const ids = set.depends_on?.[1] ?? [];
    if (!ids.every((id) => this.tasks.has(id))) yield "unknown-task";
    const seen = new Set(ids);
    for (const id of first ? [] : seen) { // on a new task nothing depends yet; seen grows
      if (this.tasks.has(id) && id !== record.task && this.steps <= MAX_STEPS) {
        const further = this.needs(this.tasks.get(id).values);
        this.steps += 1 + further.length;
        for (const next of further) seen.add(next);
      }
    }
    if (seen.has(record.task)) yield "dependency-cycle";
  }

  /** What a task with these values depends on, as far as that is here. */
  needs({ depends_on: ids }) {
    return ids === UNKNOWN ? [] : ids.filter((id) => this.tasks.has(id));
  }

  isBlocked(values, made) {
    const moved = "status" in made || "depends_on" in made;
    return moved && NEEDS_DEPENDENCIES.includes(values.status) &&
      this.needs(values).some((id) => !ENDED.includes(this.tasks.get(id).values.status));
  }

  /** Whether no thought is about the attempt; where one may lie in a gap, that is noted. */
  lacksEvidence({ seq, task }) {
    const { began } = this.tasks.get(task);
    if ((this.thoughts.get(task) ?? 0) > began) return false;
    const excused = this.case.hasGap(began, seq) && task !== this.case.task;
    if (excused) this.case.note("evidence", `record ${seq}, ${task}`);
    return !excused;
  }
}

function valuesOf(names, value) {
  return Object.fromEntries(Array.from(names, (name) => [name, value]));
}

const said = (made) => Object.fromEntries(Object.entries(made).map(([name, [, now]]) => [name, now]));
const isRetry = (old, now) => old === "VERIFY" && now === "GATHER";
const isSame = (a, b) => dump(a) === dump(b);
const isWrong = (before, old, now) => before !== UNKNOWN && (!isSame(old, before) || isSame(old, now));

function isCreation(made, shape) {
  const names = Object.keys(made);
  return names.length === members(shape).size && names.every((name) => members(shape).has(name)) &&
    Object.values(made).every(([old]) => old === null);
}

function checkTasks(case_) {
  const replay = new Replay(case_);
  for (const record of case_.records) {
    const { kind, seq, task, disclosed } = record;
    if (["session.open", "thought"].includes(kind) && task !== null) {
      const judged = disclosed && [task, null].includes(case_.task);
      if (judged && !replay.tasks.has(task)) case_.find("unknown-task", seq, task); // 10
      if (kind === "thought") replay.thoughts.set(task, seq);
    } else if (CHANGES.includes(kind) && disclosed) {
      replay.take(record);
    }
  }
  if (replay.steps > MAX_STEPS) case_.find("too-complex", null);
}

// 14 outside

function checkOutside(case_) {
  const { kind, root, head, bySeq } = case_;
  const seals = sealsOf(case_);
  const last = case_.records.at(-1).seq;
  if (root !== null && !seals.some((seal) => seal.body.root === root)) {
    case_.find("root-differs", seals.length === 1 ? seals[0].seq : null);
  }
  if (head === null) return;
  const { seq, leaf } = head;
  if (bySeq.has(seq)) {
    if (bySeq.get(seq).leaf !== leaf) case_.find("head-differs", seq);
  } else if (seq > last && (kind === "log" || (kind === "session" && seals.length === 0))) {
    case_.find("truncated", last + 1, `record ${seq} was seen`);
  } else {
    case_.find("head-not-covered", seq);
  }
}

// 15 verdict

// §10: the findings, the line of the verdict that each turns to "no", and what it means
export const CODES = {
  "unreadable": ["unknown", "the file cannot be read"],
  "too-large": ["unknown", "the file is larger than 256 MiB"],
  "malformed-bundle": ["unknown", "the file is not made like a bundle"],
  "unknown-version": ["unknown", "the file is of another version"],
  "empty-bundle": ["unknown", "the bundle holds no records: there is nothing to check"],
  "head-not-covered": ["unknown", "the head that was given is not in this bundle"],
  "too-complex": ["unknown", "the dependencies are too many to follow"],
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
  "truncated": ["complete", "the records from here on are missing"],
  "missing-record": ["complete", "a record is missing"],
  "missing-payload": ["complete", "the payload is missing, and no erasure names it"],
  "stray-record": ["complete", "this kind of bundle has no place for the record"],
  "wrong-seals": ["complete", "seals does not list the seals of the bundle"],
  "second-seal": ["sealed", "the session was sealed already"],
  "thought-after-seal": ["sealed", "the session was sealed already"],
  "wrong-index": ["sealed", "the index is not the thought's place in its session"],
  "broken-thought-chain": ["sealed", "the thought does not name the one before it"],
  "wrong-count": ["sealed", "the count is not that of the session's thoughts"],
  "wrong-range": ["sealed", "the session's thoughts do not begin and end there"],
  "wrong-root": ["sealed", "the root is not that of the session's thoughts"],
  "bad-proof": ["sealed", "the proof does not lead from a thought to the root of its seal"],
  "missing-proof": ["sealed", "nothing shows that the seal covers the thought"],
  "root-differs": ["sealed", "no seal of the bundle has the root that was given"],
  "second-open": ["rules", "the session was opened already"],
  "outside-session": ["rules", "the session was not open yet"],
  "bad-pair": ["rules", "the record does not fit the call that it names"],
  "stray-change": ["rules", "no call that ended well has made this change"],
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
  "missing-evidence": ["rules", "it became DONE without a thought about the attempt"],
  "bad-erasure": ["rules", "the erasure names what cannot be erased, or comes later"],
  "erased-payload": ["rules", "an erasure says that the payload is gone"],
};
const LINES = ["intact", "complete", "sealed", "rules"];

// §11: what can be left open.
export const NOTES = {
  "truth": "whether what was recorded is true, or something was never recorded",
  "clock": "the times, which are the server's own; the order is the number",
  "skipped": "sessions, seals, proofs, calls and tasks, for what was found",
  "arguments": "whether a call's arguments and answer fit what it recorded",
  "rules": "calls, tasks and the session's other thoughts, which are not in the bundle",
  "outside-head": "a tail cut off, or a log written anew: that takes a head from outside",
  "outside-root": "whether a seal's root is the one that was published",
  "gaps": "what the missing records are, and that those around them are of one chain",
  "undisclosed": "records of which only the header is here",
  "erased": "payloads that can no longer be read",
  "evidence": "whether there was a thought about a task that became DONE",
};

function conclude(case_, skipped) {
  const { kind, records, badLines } = case_;
  const seals = skipped ? [] : sealsOf(case_);
  const lines = valuesOf(LINES, skipped ? "not checked" : "yes");
  for (const code of skipped ? ["truth", "clock", "skipped"] : ["truth", "clock"]) case_.note(code);
  if (!skipped) {
    lines.sealed = case_.openSessions > 0 ? "open" : seals.length > 0 ? "yes" : "none";
    lines.rules = kind === "thoughts" ? "not checked" : "yes";
    noteWhatIsOpen(case_, seals);
  }
  for (const line of LINES) if (badLines.has(line)) lines[line] = "no";
  const unclear = badLines.size > 0 ? "cannot tell" : "good";
  return new Verdict({
    verdict: Object.values(lines).includes("no") ? "bad" : unclear,
    bundle: records.length > 0 ? described(case_) : null,
    lines,
    seals: seals.map(({ seq, session, body: { count, root } }) =>
      ({ seq, session: show(session), count, root })),
    erased: skipped ? null : [...case_.erased].sort((a, b) => a - b),
    open_calls: skipped || kind === "thoughts" ? null : case_.openCalls,
    findings: case_.findings,
    finding_count: case_.findingCount,
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

function described({ kind, session, task, records }) {
  const { log, seq, leaf } = records.at(-1);
  const first_seq = records[0].seq;
  return { log, kind, session, task, records: records.length, first_seq, head: { seq, leaf } };
}

function noteWhatIsOpen(case_, seals) {
  const { kind, gaps, erased } = case_;
  const known = case_.head?.seq ?? 0;
  const hidden = case_.records.filter((record) => !record.disclosed).length;
  const spans = gaps.slice(0, 4).map(([first, last]) => `${first} to ${last}`).join(", ");
  for (const [code, applies, fact] of [
    ["arguments", kind !== "thoughts", ""],
    ["rules", kind === "thoughts", ""],
    ["outside-head", known < case_.end || case_.hasGap(case_.end, known), ""],
    ["outside-root", seals.length > 0 && case_.root === null, ""],
    ["gaps", gaps.length > 0, `${gaps.length} in all, ${spans}`],
    ["undisclosed", hidden > 0, `${hidden} in all`],
    ["erased", erased.size > 0, `${erased.size} in all`],
  ]) {
    if (applies) case_.note(code, fact);
  }
}

/** A text of the bundle, short, and without characters that could deceive a reader. */
export function show(text) {
  const characters = [...String(text)];
  const cut = characters.length > MAX_LISTED ? [...characters.slice(0, MAX_LISTED), "…"] : characters;
  const isPlain = (c) => c === " " || !/[\p{C}\p{Z}]/u.test(c);
  return cut.map((c) => (isPlain(c) ? c : `\\u{${c.codePointAt(0).toString(16)}}`)).join("");
}
