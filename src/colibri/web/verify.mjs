// Check a Colibri evidence bundle, in a browser or under Node, with nothing but WebCrypto.
//
//     import { verify } from "./verify.mjs";
//     const verdict = await verify(bytes, { root: null, head: null });   // head: {seq, leaf}
//
// This follows docs/formats.md step by step (the numbers below are its steps, § its sections) and
// gives the same verdict, with the same finding codes, as colibri_verify.py. Nothing is fetched.

const MAX_FILE = 256 * 1024 * 1024;
const MAX_DEPTH = 64;
const MAX_FINDINGS = 100;
const MAX_STEPS = 20_000_000;
const FORMAT = "colibri-bundle/1";
const ZEROS = "0".repeat(64);

// §10: the finding codes, by the line of the verdict that each turns to "no".
const CODES = {
  unknown: `unreadable too-large malformed-bundle unknown-version empty-bundle head-not-covered
    too-complex`,
  intact: `bad-header foreign-record wrong-order wrong-head broken-link altered-header
    stray-payload altered-payload bad-payload head-differs`,
  complete: "truncated missing-record missing-payload stray-record wrong-seals",
  sealed: `second-seal thought-after-seal wrong-index broken-thought-chain wrong-count wrong-range
    wrong-root bad-proof missing-proof root-differs`,
  rules: `second-open outside-session bad-pair stray-change missing-change bad-creation
    wrong-version wrong-change change-after-end illegal-move wrong-attempt unknown-task
    dependency-cycle blocked-move missing-evidence bad-erasure erased-payload`,
};
const LINE_OF = new Map(
  Object.entries(CODES).flatMap(([line, codes]) => codes.split(/\s+/).map((code) => [code, line])),
);
const LINES = ["intact", "complete", "sealed", "rules"];

class Verdict {
  bundle = null;
  lines = {};
  seals = [];
  erased = null; // null: not checked
  open_calls = null;
  findings = [];
  finding_count = 0;
  not_checked = [];
  #bad = new Set();

  find(code, seq, detail) {
    this.#bad.add(LINE_OF.get(code));
    this.finding_count += 1;
    if (this.findings.length < MAX_FINDINGS) this.findings.push({ code, seq, detail });
  }

  note(code, detail) {
    this.not_checked.push({ code, detail });
  }

  isBad(line) {
    return this.#bad.has(line);
  }

  get verdict() {
    if (LINES.some((line) => this.#bad.has(line))) return "bad";
    return this.#bad.size > 0 ? "cannot tell" : "good";
  }

  toJSON() {
    return { format: "colibri-verdict/1", verdict: this.verdict, ...this };
  }
}

/** Judge a bundle; root and head are what the caller knows from elsewhere. */
export async function verify(bytes, { root = null, head = null } = {}) {
  const verdict = new Verdict();
  let bundle;
  try {
    bundle = readBundle(bytes); // 1, 2
  } catch (problem) {
    if (!(problem instanceof Refused)) throw problem;
    verdict.find(problem.code, null, problem.message);
    return conclude(verdict, null, true);
  }
  const session = bundle.scope === null ? null : bundle.scope.session;
  const kind = session === null ? "log" : bundle.proofs.length > 0 ? "thoughts" : "session";
  const case_ = {
    bundle, verdict, kind, session, root, head,
    records: [], bySeq: new Map(), gaps: [], start: 1, end: 0,
    erased: new Set(), disclosed: new Map(), openSessions: 0,
    find: (code, seq, detail) => verdict.find(code, seq, detail),
  };
  const steps = [
    readHeaders, // 3
    checkOrder, // 4
    checkLinks, // 5
    checkGaps, // 6
    readPayloads, // 7
    checkErasures, // 8
    checkContents, // 9
  ];
  for (const step of steps) {
    await step(case_);
    if (verdict.finding_count > 0) return conclude(verdict, case_, true);
  }
  if (kind === "thoughts") {
    await checkProofs(case_); // 11
  } else {
    await checkSessions(case_); // 10
    checkCalls(case_); // 12
    checkTasks(case_); // 13
  }
  checkOutside(case_); // 14
  return conclude(verdict, case_, false); // 15
}

// §1: strict JSON, and the canonical form

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
  const take = (pattern) => {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match === null) return null;
    at = pattern.lastIndex;
    return match[0];
  };
  const expect = (holds) => {
    if (!holds) throw new Invalid(`not JSON, or a number that is no integer, at character ${at}`);
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
    const raw = take(NUMBER);
    expect(raw !== null);
    const value = Number(raw);
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
    let value;
    if (first === '"') value = string();
    else if (first === "{" || first === "[") {
      if (depth === MAX_DEPTH) throw new Invalid("nested too deeply");
      skip(first);
      return first === "{" ? object(depth + 1) : array(depth + 1);
    } else if (first === "-" || (first >= "0" && first <= "9")) value = number();
    else {
      const word = take(WORD);
      expect(word !== null);
      value = WORDS[word];
    }
    space();
    return value;
  };
  space();
  const value = any(0);
  expect(at === text.length);
  return value;
}

function dump(value) {
  if (Array.isArray(value)) return `[${value.map(dump).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  if (keys.some((key) => /[^\u0000-\u007f]/.test(key))) throw new Invalid("a key that is not ASCII");
  return `{${keys.map((key) => `${JSON.stringify(key)}:${dump(value[key])}`).join(",")}}`;
}

function parseCanonical(bytes) {
  const text = decodeText(bytes);
  const value = parseJson(text);
  if (dump(value) !== text) throw new Invalid("not in canonical form");
  return value;
}

// §2, §3, §8: the members of each object and their types

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

const isText = (value) => typeof value === "string";
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isInt = (value) => Number.isSafeInteger(value) && value >= 0;
const isSeq = (value) => Number.isSafeInteger(value) && value >= 1;
const matching = (pattern) => (value) => isText(value) && pattern.test(value);
const isHash = matching(/^[0-9a-f]{64}$/);
const oneOf = (...values) => (value) => isText(value) && values.includes(value);
const listOf = (test, most = Infinity) => (value) =>
  Array.isArray(value) && value.length <= most && value.every(test);
const ascends = (values) => values.every((value, at) => at === 0 || values[at - 1] < value);
const isDecimal = (text) => /^[1-9][0-9]{0,15}$/.test(text) && Number.isSafeInteger(Number(text));

function setOf(fields) {
  const tests = schema(fields);
  const isPair = ([name, pair]) =>
    tests.has(name) && Array.isArray(pair) && pair.length === 2 &&
    (pair[0] === null || tests.get(name)(pair[0])) && tests.get(name)(pair[1]);
  return (value) =>
    isObject(value) && Object.keys(value).length > 0 && Object.entries(value).every(isPair);
}

/** From "name=type …"; "?" is: or null. */
function schema(text) {
  const test = (type) => {
    const plain = TYPES[type.replace("?", "")];
    return type.endsWith("?") ? (value) => value === null || plain(value) : plain;
  };
  return new Map(text.trim().split(/\s+/).map((item) => item.split("=")).map(([n, t]) => [n, test(t)]));
}

function whyNot(value, tests) {
  const names = isObject(value) ? Object.keys(value) : [];
  if (names.length !== tests.size || !names.every((name) => tests.has(name))) {
    return `not an object with exactly the members ${[...tests.keys()].join(" ")}`;
  }
  const wrong = names.filter((name) => !tests.get(name)(value[name]));
  return wrong.length > 0 ? `not as the format has it: ${wrong.join(", ")}` : null;
}

const TYPES = {
  text: isText,
  object: isObject,
  array: Array.isArray,
  int: isInt,
  seq: isSeq,
  one: (value) => value === 1,
  hash: isHash,
  uuid: matching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
  log: matching(/^colibri\/[0-9a-f]{32}$/),
  time: matching(/^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$/),
  session: matching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/),
  format: oneOf(FORMAT),
  outcome: oneOf("ok", "refused", "invalid", "error", "cancelled"),
  thinking: oneOf("plan", "analysis", "decision", "reflection"),
  status: oneOf(...Object.keys(MOVES)),
  priority: oneOf("low", "medium", "high", "critical"),
  kind: (value) => isText(value) && PAYLOADS.has(value),
  texts: listOf(isText),
  hashes: listOf(isHash, 64),
  ids: (value) => listOf(isText, 100)(value) && new Set(value).size === value.length,
  seqs: (value) => listOf(isSeq)(value) && ascends(value),
  "some-seqs": (value) => TYPES.seqs(value) && value.length > 0,
};
TYPES["task-set"] = setOf("status=status priority=priority assignee=text? project=text? depends_on=ids");
TYPES["text-set"] = setOf("title=text description=text?");

const BUNDLE = schema(`format=format log=log scope=object? headers=texts payloads=object seals=seqs
  head=object proofs=array`);
const SCOPE = schema("session=session");
const HEAD = schema("seq=seq leaf=hash");
const ITEM = schema("nonce=text body=text");
const PROOF = schema("seq=seq index=int size=int path=hashes");
const HEADER = schema(`v=one log=log seq=seq at=time kind=kind call=uuid session=text? task=text?
  agent=text? payload=hash prev=hash`);
const PAYLOADS = new Map(Object.entries({
  "call.enter": "server=uuid tool=text arguments=object? size=int? sha256=hash?",
  "call.exit": "enter=seq tool=text outcome=outcome code=text? result_sha256=hash? duration_ms=int",
  "session.open": "session_id=text intent=text task_id=text?",
  thought: "thought_id=text index=int type=thinking content=text prev=hash",
  "session.seal": "root=hash count=seq first_seq=seq last_seq=seq",
  task: "task_id=text version=seq attempt=seq set=task-set",
  "task.text": "task_id=text version=seq set=text-set",
  erasure: "seqs=some-seqs reason=text?",
}).map(([kind, text]) => [kind, schema(text)]));

// 1, 2: read, and the shape of the bundle

class Refused extends Error {
  constructor(code, why) {
    super(why);
    this.code = code;
  }
}

function readBundle(bytes) {
  if (bytes.length > MAX_FILE) throw new Refused("too-large", `more than ${MAX_FILE} bytes`);
  let bundle;
  try {
    bundle = parseJson(decodeText(bytes));
    const name = isObject(bundle) ? bundle.format : null;
    if (isText(name) && name.startsWith("colibri-bundle/") && name !== FORMAT) {
      throw new Refused("unknown-version", `${show(name)} is not ${FORMAT}`);
    }
    checkShape(bundle);
  } catch (problem) {
    if (!(problem instanceof Invalid)) throw problem;
    throw new Refused("malformed-bundle", problem.message);
  }
  if (bundle.headers.length === 0) {
    throw new Refused("empty-bundle", "it holds no records: there is nothing to check");
  }
  return bundle;
}

function checkShape(bundle) {
  require(bundle, BUNDLE, "the bundle");
  if (bundle.scope !== null) require(bundle.scope, SCOPE, "scope");
  require(bundle.head, HEAD, "head");
  for (const proof of bundle.proofs) require(proof, PROOF, "a proof");
  if (bundle.scope === null && bundle.proofs.length > 0) throw new Invalid("proofs without a session");
  bundle.headers = bundle.headers.map(decode);
  for (const [seq, item] of Object.entries(bundle.payloads)) {
    if (!isDecimal(seq)) throw new Invalid("payloads: a key that is no seq");
    require(item, ITEM, `payloads.${seq}`);
    item.nonce = decode(item.nonce);
    item.body = decode(item.body);
    if (item.nonce.length !== 32) throw new Invalid(`payloads.${seq}: a nonce has 32 bytes`);
  }
}

function require(value, tests, where) {
  const wrong = whyNot(value, tests);
  if (wrong !== null) throw new Invalid(`${where}: ${wrong}`);
}

/** The bytes of strict base64. */
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

// §2, §4: the hashes

const LEAF_TAG = Uint8Array.of(0);
const NODE_TAG = Uint8Array.of(1);
const PAYLOAD_TAG = encoder.encode("colibri/payload/v1\n");
const GENESIS_TAG = encoder.encode("colibri/ledger/v1\n");
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

export const leafHash = (header) => sha256(LEAF_TAG, header);
export const nodeHash = (left, right) => sha256(NODE_TAG, left, right);

/** RFC 6962's tree hash, by its definition; of at least one leaf. */
export async function treeRoot(leaves, first = 0, last = leaves.length) {
  if (last - first === 1) return leaves[first];
  let split = 1;
  while (2 * split < last - first) split *= 2;
  const left = await treeRoot(leaves, first, first + split);
  return nodeHash(left, await treeRoot(leaves, first + split, last));
}

/** The root that a proof leads to; null if a tree of this size has no such proof. */
export async function rootOfProof(leaf, index, size, path) {
  if (!(isInt(index) && isSeq(size) && index < size)) return null;
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
async function mapMany(items, ask) {
  const answers = [];
  for (let at = 0; at < items.length; at += 1024) {
    answers.push(...(await Promise.all(items.slice(at, at + 1024).map(ask))));
  }
  return answers;
}

// 3 headers, 4 order

async function readHeaders(case_) {
  const { bundle, find, records } = case_;
  const leaves = await mapMany(bundle.headers, leafHash);
  bundle.headers.forEach((bytes, at) => {
    let header = null;
    let problem;
    try {
      header = parseCanonical(bytes);
      problem = whyNot(header, HEADER) ?? whyNotHeader(header);
    } catch (error) {
      if (!(error instanceof Invalid)) throw error;
      problem = error.message;
    }
    if (problem !== null) {
      find("bad-header", isObject(header) && isSeq(header.seq) ? header.seq : null, problem);
    } else if (header.log !== bundle.log) {
      find("foreign-record", header.seq, `it is of the log ${header.log}`);
    } else {
      records.push({ ...header, leaf: hex(leaves[at]), body: null });
    }
  });
}

function whyNotHeader({ kind, session, task }) {
  if (["session.open", "thought", "session.seal"].includes(kind) && session === null) {
    return `a ${kind} record without a session`;
  }
  if (["task", "task.text"].includes(kind) && task === null) return `a ${kind} record without a task`;
  return null;
}

function checkOrder({ records, bySeq, find }) {
  let last = 0;
  for (const record of records) {
    if (record.seq <= last) find("wrong-order", record.seq, `it stands after record ${last}`);
    last = record.seq;
    bySeq.set(record.seq, record);
  }
}

// 5 links

async function checkLinks({ bundle, records, find }) {
  const first = hex(await sha256(GENESIS_TAG, encoder.encode(bundle.log)));
  const { head } = bundle;
  const last = records.at(-1);
  const known = new Map(records.map((record) => [record.leaf, record.seq]));
  known.set(first, 0);
  let doubt = false; // whether the later of two neighbours is itself in doubt
  if (head.seq > last.seq) {
    find("truncated", last.seq + 1, `the bundle ends before it, but its head is ${head.seq}`);
  } else if (head.seq < last.seq || head.leaf !== last.leaf) {
    find("wrong-head", last.seq, "the last record is not the one that head names");
    doubt = true;
  }
  for (let at = records.length - 1; at > 0; at -= 1) {
    const [a, b] = [records[at - 1], records[at]];
    const linked = b.seq !== a.seq + 1 || b.prev === a.leaf;
    if (!linked && !doubt) {
      if (known.has(b.prev)) {
        find("broken-link", b.seq, `it follows record ${known.get(b.prev)}, not ${a.seq}`);
      } else {
        find("altered-header", a.seq, `record ${b.seq} follows another record`);
      }
    }
    doubt = !linked;
  }
  if (records[0].seq === 1 && records[0].prev !== first && !doubt) {
    find("broken-link", 1, "it does not follow the log's genesis");
  }
}

// 6 gaps

function checkGaps(case_) {
  const { records, kind, find, gaps } = case_;
  const seal = records.find((record) => record.kind === "session.seal");
  case_.end = kind === "thoughts" && seal ? seal.seq : records.at(-1).seq;
  if (kind === "session" && !findStretch(case_)) {
    find("missing-record", null, "the session's session.open is not in the bundle");
    return;
  }
  let before = 0;
  for (const { seq } of records) {
    if (seq > before + 1) {
      gaps.push([before + 1, seq - 1]);
      const inside = kind === "session" && case_.start <= before && seq <= case_.end;
      if (kind === "log" || inside) {
        const gone = `records ${before + 1} to ${seq - 1} are not in the bundle`;
        find("missing-record", before + 1, gone);
      }
    }
    before = seq;
  }
}

function findStretch(case_) {
  const own = case_.records.filter((record) => record.session === case_.session);
  const opening = own.find((record) => record.kind === "session.open");
  const seal = own.find((record) => record.kind === "session.seal");
  const exit = seal && case_.records.find(
    (record) => record.seq > seal.seq && record.kind === "call.exit" && record.call === seal.call,
  );
  if (exit) case_.end = exit.seq;
  if (opening) case_.start = opening.seq;
  return opening !== undefined;
}

/** Whether a record between these two, neither included, is missing from the bundle. */
function hasGap({ gaps }, first, last) {
  let [low, high] = [0, gaps.length]; // the gaps that begin before `last`
  while (low < high) {
    const middle = (low + high) >> 1;
    if (gaps[middle][0] < last) low = middle + 1;
    else high = middle;
  }
  return low > 0 && gaps[low - 1][1] > first;
}

// 7 payloads, 8 erasures

async function readPayloads({ bundle, bySeq, find }) {
  const items = Object.entries(bundle.payloads).sort(([a], [b]) => a - b);
  const hashes = await mapMany(items, ([, { nonce, body }]) => sha256(PAYLOAD_TAG, nonce, body));
  items.forEach(([key, item], at) => {
    const record = bySeq.get(Number(key));
    if (record === undefined) {
      find("stray-payload", Number(key), "no header of the bundle belongs to it");
    } else if (hex(hashes[at]) !== record.payload) {
      find("altered-payload", record.seq, "it is not the one the header commits to");
    } else {
      let problem;
      try {
        record.body = parseCanonical(item.body);
        problem = whyNot(record.body, PAYLOADS.get(record.kind)) ?? whyNotPayload(record);
      } catch (error) {
        if (!(error instanceof Invalid)) throw error;
        problem = error.message;
      }
      if (problem !== null) find("bad-payload", record.seq, `${record.kind}: ${problem}`);
    }
  });
}

/** What the table of §3 says beyond the types. */
function whyNotPayload({ kind, seq, session, task, body }) {
  let fits = true;
  if (kind === "call.enter") {
    const refused = body.arguments === null;
    fits = (body.size !== null) === refused && (body.sha256 !== null) === refused;
  } else if (kind === "call.exit") {
    fits = (body.code === null) === ["ok", "cancelled"].includes(body.outcome);
  } else if (kind === "session.open") {
    fits = body.session_id === session && body.task_id === task;
  } else if (kind === "thought") {
    fits = body.thought_id === `R-${seq}`;
  } else if (kind === "task" || kind === "task.text") {
    fits = body.task_id === task;
  }
  return fits ? null : "its members, or it and its header, contradict each other";
}

function checkErasures({ records, bySeq, erased, find }) {
  const erasable = ["call.enter", "session.open", "thought", "task.text"];
  for (const erasure of records) {
    if (erasure.kind !== "erasure" || erasure.body === null) continue;
    for (const seq of erasure.body.seqs) {
      const record = bySeq.get(seq);
      if (seq >= erasure.seq || (record && !erasable.includes(record.kind))) {
        find("bad-erasure", erasure.seq, `record ${seq} cannot be erased by it`);
      } else if (record && record.body !== null) {
        find("erased-payload", seq, `record ${erasure.seq} says that it was erased`);
      } else if (record) {
        erased.add(seq);
      }
    }
  }
}

// 9 contents

function checkContents(case_) {
  const { bundle, records, kind, disclosed, erased, find, verdict } = case_;
  const choose = { log: (c) => c.records, session: sessionRecords, thoughts: thoughtRecords };
  const shown = new Set(choose[kind](case_).map((record) => record.seq));
  for (const record of records) {
    const { seq } = record;
    if (shown.has(seq)) {
      disclosed.set(seq, record);
      if (record.body === null && !erased.has(seq)) {
        find("missing-payload", seq, "and no erasure names it");
      }
    } else if (kind === "thoughts" || seq < case_.start || seq > case_.end) {
      find("stray-record", seq, `a ${kind} bundle has no place for it`);
    } else if (record.body !== null) {
      find("stray-payload", seq, "it has nothing to do with the session");
    }
  }
  const seals = [...disclosed.values()].filter((record) => record.kind === "session.seal");
  if (kind === "thoughts" && seals.length === 0) {
    find("missing-record", null, "the session's seal is not in the bundle");
  }
  const [stated, there] = [new Set(bundle.seals), new Set(seals.map((seal) => seal.seq))];
  const differing = [...bundle.seals, ...there].filter((n) => stated.has(n) !== there.has(n));
  if (differing.length > 0) {
    const least = differing.reduce((a, b) => Math.min(a, b));
    find("wrong-seals", least, "seals does not list the bundle's seals");
  }
  for (const { seq, session, body } of seals) {
    const { count = null, root = null } = body ?? {};
    verdict.seals.push({ seq, session: show(session), count, root });
  }
}

function thoughtRecords(case_) {
  const own = case_.records.filter((record) => record.session === case_.session);
  const thoughts = own.filter((record) => record.kind === "thought");
  const seals = own.filter((record) => record.kind === "session.seal");
  return [...thoughts, ...seals.slice(0, 1), ...erasuresOf(case_, thoughts)];
}

/** §8: the session's records, its tasks', the calls of all these, and the erasures. */
function sessionRecords(case_) {
  const { records, session, end } = case_;
  const chosen = records.filter((record) => record.session === session);
  const changes = new Map();
  for (const record of records) {
    if (isChange(record.kind) && record.task !== null && record.seq <= end) {
      if (["task", "task.text"].includes(record.kind)) {
        if (!changes.has(record.task)) changes.set(record.task, []);
        changes.get(record.task).push(record);
      }
    }
  }
  const naming = chosen.filter((record) => ["session.open", "thought"].includes(record.kind));
  const tasks = new Set(naming.map((record) => record.task));
  for (const task of tasks) { // a Set grows while it is walked through
    for (const record of changes.get(task) ?? []) {
      chosen.push(record);
      const sides = record.body?.set.depends_on ?? [];
      for (const ids of sides) for (const id of ids ?? []) tasks.add(id);
    }
  }
  const calls = new Set(chosen.map((record) => record.call));
  const pairs = records.filter((r) => ["call.enter", "call.exit"].includes(r.kind) && calls.has(r.call));
  return [...chosen, ...pairs, ...erasuresOf(case_, records)];
}

function erasuresOf(case_, records) {
  const named = new Set(records.map((record) => record.seq));
  return case_.records.filter(
    ({ kind, body }) => kind === "erasure" && body !== null && body.seqs.some((seq) => named.has(seq)),
  );
}

const isChange = (kind) => !["call.enter", "call.exit", "erasure"].includes(kind);

// 10 sessions and seals

async function checkSessions(case_) {
  const { records, kind: bundleKind, find } = case_;
  const sessions = new Map();
  for (const record of records) {
    const { kind, seq, session: name } = record;
    if (!["session.open", "thought", "session.seal"].includes(kind)) continue;
    if (bundleKind === "session" && name !== case_.session) continue;
    if (!sessions.has(name)) sessions.set(name, { opened: false, sealed: false, thoughts: [] });
    const session = sessions.get(name);
    if (kind === "session.open") {
      if (session.opened) find("second-open", seq, `${show(name)} was open already`);
      session.opened = true;
    } else if (!session.opened) {
      find("outside-session", seq, `${show(name)} was not open yet`);
    } else if (session.sealed) {
      const code = kind === "thought" ? "thought-after-seal" : "second-seal";
      find(code, seq, `${show(name)} was sealed already`);
    } else if (kind === "thought") {
      checkThought(case_, record, session.thoughts);
      session.thoughts.push(record);
    } else {
      session.sealed = true;
      await checkSeal(case_, record, session.thoughts);
    }
  }
  case_.openSessions = [...sessions.values()].filter((session) => !session.sealed).length;
}

function checkThought({ find }, { seq, body }, before) {
  if (body === null) return; // erased; its header still holds its place
  if (body.index !== before.length) {
    find("wrong-index", seq, `it says ${body.index}, but ${before.length} came before it`);
  }
  if (body.prev !== (before.length > 0 ? before.at(-1).leaf : ZEROS)) {
    find("broken-thought-chain", seq, "it does not name the thought before it");
  }
}

async function checkSeal({ find }, { seq, body }, thoughts) {
  if (body.count !== thoughts.length) {
    find("wrong-count", seq, `it says ${body.count}, but there are ${thoughts.length} thoughts`);
  }
  if (thoughts.length === 0) return;
  const [first, last] = [thoughts[0].seq, thoughts.at(-1).seq];
  if (body.first_seq !== first || body.last_seq !== last) {
    find("wrong-range", seq, `its thoughts are those from ${first} to ${last}`);
  }
  const root = hex(await treeRoot(thoughts.map((thought) => unhex(thought.leaf))));
  if (body.root !== root) find("wrong-root", seq, `the root of its thoughts is ${root}`);
}

// 11 proofs, which in a thoughts bundle take the place of the whole tree

async function checkProofs({ bundle, records, find }) {
  const seal = records.find((record) => record.kind === "session.seal").body;
  const thoughts = new Map(
    records.filter((record) => record.kind === "thought").map((record) => [record.seq, record]),
  );
  for (const proof of bundle.proofs) {
    const thought = thoughts.get(proof.seq);
    if (thought === undefined) {
      find("bad-proof", proof.seq, "there is no thought for it");
      continue;
    }
    thoughts.delete(proof.seq);
    const [index, size] = [thought.body === null ? proof.index : thought.body.index, seal.count];
    const root = await rootOfProof(unhex(thought.leaf), index, size, proof.path.map(unhex));
    if (proof.index !== index || proof.size !== size) {
      find("bad-proof", proof.seq, `the thought is ${index} of ${size}`);
    } else if (root === null || hex(root) !== seal.root) {
      find("bad-proof", proof.seq, "it does not lead to the seal's root");
    }
  }
  for (const seq of thoughts.keys()) {
    find("missing-proof", seq, "nothing shows that the seal covers it");
  }
}

// 12 calls

// §5: the changes that a call has made which ended ok; any other tool, none
const CHANGES_OF = new Map(Object.entries({
  audit_session_start: [["session.open"]],
  thought_record: [["thought"]],
  merkle_finalize: [["session.seal"]],
  task_create: [["task", "task.text"]],
  task_update: [[], ["task"], ["task.text"], ["task", "task.text"]],
}));

function checkCalls(case_) {
  const { disclosed, find, verdict } = case_;
  const calls = new Map();
  verdict.open_calls = [];
  for (const record of disclosed.values()) {
    const { kind, seq, body } = record;
    const call = calls.get(record.call);
    if (kind === "call.enter") {
      if (call) find("bad-pair", seq, `its call was entered at ${call.enter.seq}`);
      else calls.set(record.call, { enter: record, tool: body?.tool ?? null, changes: [], closed: false });
    } else if (kind === "call.exit") {
      closeCall(case_, record, call);
    } else if (kind !== "erasure") {
      if (call === undefined || call.closed) {
        const lost = call === undefined && hasGap(case_, 0, seq);
        find(lost ? "missing-record" : "stray-change", seq, "it lies in no open call");
      } else {
        call.changes.push(record);
        checkNames(case_, record, call.enter);
      }
    }
  }
  for (const { enter, tool, changes, closed } of calls.values()) {
    if (closed) continue;
    for (const change of changes) find("stray-change", change.seq, "its call has no exit");
    verdict.open_calls.push({ seq: enter.seq, call: enter.call, tool: tool === null ? null : show(tool) });
  }
}

function closeCall(case_, exit, call) {
  const { find } = case_;
  const { enter, tool, outcome } = exit.body;
  const closed = call === undefined || call.closed;
  if (call) call.closed = true;
  if (call === undefined && hasGap(case_, enter - 1, enter + 1)) {
    find("missing-record", enter, `record ${exit.seq} closes it`);
    return;
  }
  if (closed || call.enter.seq !== enter || (call.tool !== null && call.tool !== tool)) {
    find("bad-pair", exit.seq, `record ${enter} is not its open enter, or of another tool`);
    return;
  }
  checkNames(case_, exit, call.enter);
  const allowed = outcome === "ok" ? (CHANGES_OF.get(tool) ?? [[]]) : [[]];
  const made = call.changes.map((change) => change.kind);
  if (allowed.some((kinds) => kinds.join() === made.join())) return;
  const most = allowed.at(-1);
  const stray = call.changes.filter((change) => !most.includes(change.kind));
  for (const change of stray.length > 0 ? stray : call.changes.slice(most.length)) {
    find("stray-change", change.seq, `${show(tool)} (${outcome}) made no such change`);
  }
  if (stray.length === 0 && made.length <= most.length) {
    find("missing-change", exit.seq, `${show(tool)} writes ${most.join(" and ")}`);
  }
}

function checkNames({ find }, record, enter) {
  const same = (name) => enter[name] === record[name] || (enter[name] === null && name !== "agent");
  if (!["session", "task", "agent"].every(same)) {
    find("bad-pair", record.seq, `it names another session, task or agent than its enter, ${enter.seq}`);
  }
}

// 13 tasks

const TERMINAL = ["DONE", "CANCELLED"];
const NEEDS_DEPENDENCIES = ["APPLY", "VERIFY", "DONE"];
const FIELDS = ["status", "priority", "assignee", "project", "depends_on"];
const TEXTS = ["title", "description"];
const UNKNOWN = Symbol("a value that an erased or missing record may have set");

const sameValue = (a, b) => a === b || (a !== UNKNOWN && b !== UNKNOWN && dump(a) === dump(b));
const setsAll = (made, names) => Object.keys(made).sort().join() === [...names].sort().join();

function statedValues(made, otherwise) {
  const values = Object.fromEntries([...FIELDS, ...TEXTS].map((name) => [name, otherwise]));
  for (const [name, [, now]] of Object.entries(made)) values[name] = now;
  return values;
}

/** The rules of §6, by their numbers. */
class Replay {
  tasks = new Map();
  thoughts = new Map(); // task → its last thought
  steps = 0;

  constructor(case_) {
    this.case = case_;
    this.find = case_.find;
  }

  /** A task or task.text record; without a body it is a text that was erased. */
  take(record) {
    const { seq, body, kind } = record;
    const task = this.tasks.get(record.task);
    if (task === undefined) {
      this.create(record);
      return;
    }
    const shares = kind === "task.text" && record.call === task.call && !task.texted;
    const expected = shares ? task.version : task.version + 1;
    const version = body === null ? expected : body.version;
    const lost = version > expected && hasGap(this.case, task.last, seq);
    if (version !== expected) { // 2
      const code = lost ? "missing-record" : "wrong-version";
      this.find(code, seq, `version ${version} follows ${task.version}`);
    }
    const ended = TERMINAL.includes(task.values.status) && !shares && !lost;
    const created = shares && task.fresh;
    if (ended) this.find("change-after-end", seq, `${show(record.task)} was terminal`); // 4
    Object.assign(task, { version, call: record.call, last: seq, texted: kind === "task.text", fresh: false });
    if (lost) { // go on from here with what is known
      task.values = statedValues(body.set, UNKNOWN);
      task.attempt = body.attempt ?? task.attempt;
    } else if (body === null) {
      for (const name of TEXTS) task.values[name] = UNKNOWN;
    } else if (kind === "task.text") {
      if (created && !setsAll(body.set, TEXTS)) { // 1
        this.find("bad-creation", seq, "it does not set every text");
      }
      this.set(task, seq, body.set, created);
    } else {
      this.move(task, record, ended);
    }
  }

  create(record) {
    const { seq, call, kind } = record;
    const { version, attempt = 1, set } = record.body ?? { version: 1, set: {} };
    const lost = version > 1 && hasGap(this.case, 0, seq);
    const values = statedValues(set, lost ? UNKNOWN : null);
    values.status ??= "INIT";
    const texted = kind !== "task";
    this.tasks.set(record.task, {
      values, version, attempt, began: seq, call, last: seq, texted, fresh: true,
    });
    if (lost) { // 2
      this.find("missing-record", seq, `${show(record.task)} was created in a gap`);
      return;
    }
    if (!setsAll(set, FIELDS) || Object.values(set).some(([old]) => old !== null)) { // 1
      this.find("bad-creation", seq, `${show(record.task)} does not begin with all fields`);
    } else if (version !== 1 || attempt !== 1) {
      this.find("bad-creation", seq, "version and attempt begin at 1");
    } else if (values.status !== "INIT") {
      this.find("illegal-move", seq, `created in ${values.status}`);
    }
    this.checkDependencies(record, values.depends_on ?? [], true);
  }

  set(task, seq, made, created) {
    for (const [name, [old, now]] of Object.entries(made)) { // 3
      const before = task.values[name];
      const wrong = !sameValue(old, before) || (sameValue(old, now) && !created);
      if (before !== UNKNOWN && wrong) this.find("wrong-change", seq, `${name} was not what it says`);
      task.values[name] = now;
    }
  }

  move(task, record, ended) {
    const { seq, body } = record;
    const old = task.values.status;
    this.set(task, seq, body.set, false);
    const now = task.values.status;
    const retry = old === "VERIFY" && now === "GATHER";
    if (body.attempt !== task.attempt + (retry ? 1 : 0) && old !== UNKNOWN) { // 6
      this.find("wrong-attempt", seq, `attempt ${body.attempt} follows ${task.attempt}`);
    }
    task.attempt = body.attempt;
    if ("depends_on" in body.set) this.checkDependencies(record, task.values.depends_on, false);
    const needed = this.neededBy(record.task);
    const blocked = NEEDS_DEPENDENCIES.includes(now) && needed.some((id) => this.isOpen(id));
    if (ended || old === UNKNOWN) return;
    if (old !== now && !MOVES[old].includes(now)) { // 5
      this.find("illegal-move", seq, `${old} to ${now}`);
    } else if (blocked && ("status" in body.set || "depends_on" in body.set)) { // 8
      this.find("blocked-move", seq, `in ${now} while a dependency is open`);
    } else if (old !== now && now === "DONE" && (this.thoughts.get(record.task) ?? 0) <= task.began) { // 9
      if (hasGap(this.case, task.began, seq)) {
        const detail = `record ${seq} moves ${show(record.task)} to DONE: its thoughts are not here`;
        this.case.verdict.note("evidence", detail);
      } else {
        this.find("missing-evidence", seq, `DONE, but no thought since record ${task.began}`);
      }
    }
    if (retry) task.began = seq;
  }

  neededBy(id) {
    const ids = this.tasks.get(id).values.depends_on;
    return Array.isArray(ids) ? ids : [];
  }

  isOpen(id) {
    return this.tasks.has(id) && !TERMINAL.includes(this.tasks.get(id).values.status);
  }

  checkDependencies(record, ids, created) { // 7
    for (const id of ids) {
      if (!this.tasks.has(id)) this.find("unknown-task", record.seq, `${show(id)} does not exist`);
    }
    const seen = new Set(ids);
    for (const id of created ? [] : seen) { // on a task that was not there nothing depends
      if (this.tasks.has(id) && id !== record.task && this.steps <= MAX_STEPS) {
        const further = this.neededBy(id);
        this.steps += 1 + further.length;
        for (const next of further) seen.add(next);
      }
    }
    if (seen.has(record.task)) {
      this.find("dependency-cycle", record.seq, `${show(record.task)} needs itself`);
    }
  }
}

function checkTasks(case_) {
  const { records, disclosed, find } = case_;
  const replay = new Replay(case_);
  for (const record of records) {
    const { kind, seq, task } = record;
    if (["session.open", "thought"].includes(kind) && task !== null) {
      if (disclosed.has(seq) && !replay.tasks.has(task)) { // 10
        find("unknown-task", seq, `${show(task)} does not exist`);
      }
      if (kind === "thought") replay.thoughts.set(task, seq);
    } else if (["task", "task.text"].includes(kind) && disclosed.has(seq)) {
      replay.take(record);
    }
  }
  if (replay.steps > MAX_STEPS) find("too-complex", null, "the dependencies are too many to follow");
}

// 14 what the user knows from elsewhere

function checkOutside({ verdict, records, bySeq, kind, root, head, find }) {
  const { seals } = verdict;
  const last = records.at(-1).seq;
  if (root !== null && !seals.some((seal) => seal.root === root)) {
    const at = seals.length === 1 ? seals[0].seq : null;
    find("root-differs", at, "no seal of the bundle has the root that was given");
  }
  if (head === null) return;
  const { seq, leaf } = head;
  const record = bySeq.get(seq);
  if (record !== undefined) {
    if (record.leaf !== leaf) find("head-differs", seq, "its leaf is not the one that was given");
  } else if (seq > last && (kind === "log" || (kind === "session" && seals.length === 0))) {
    find("truncated", last + 1, `the bundle ends before it, but record ${seq} was seen`);
  } else {
    find("head-not-covered", seq, "the head that was given is not in this bundle");
  }
}

// 15 the verdict

function conclude(verdict, case_, skipped) {
  verdict.note("truth", "whether what was recorded is true, or something was never recorded");
  verdict.note("clock", "the times, which are the server's own; the order is the number");
  if (skipped) verdict.note("skipped", "sessions, seals, proofs, calls and tasks, for what was found");
  for (const line of LINES) {
    verdict.lines[line] = verdict.isBad(line) ? "no" : skipped ? "not checked" : "yes";
  }
  if (case_ === null || case_.records.length === 0) return verdict;
  const { records, kind, session } = case_;
  const { log, seq, leaf } = records.at(-1);
  verdict.bundle = {
    log, kind, session, records: records.length, first_seq: records[0].seq, head: { seq, leaf },
  };
  if (skipped) verdict.seals = [];
  else describe(case_);
  return verdict;
}

/** What a bundle that was examined to the end leaves open (§10, §11). */
function describe(case_) {
  const { verdict, kind, openSessions, head, root, records, end, gaps, disclosed, erased } = case_;
  const { lines } = verdict;
  const note = (code, detail) => verdict.note(code, detail);
  verdict.erased = [...erased].sort((a, b) => a - b);
  if (lines.sealed === "yes" && verdict.seals.length === 0) lines.sealed = "none";
  if (lines.sealed !== "no" && openSessions > 0) lines.sealed = "open";
  if (kind === "thoughts") {
    lines.rules = "not checked";
    note("rules", "calls, tasks and the session's other thoughts, which are not in the bundle");
  } else {
    note("arguments", "whether a call's arguments and answer fit what it recorded");
  }
  const known = head === null ? 0 : head.seq;
  if (known < end || hasGap({ gaps }, end, known)) {
    note("outside-head", "a tail cut off, or a log written anew: that takes a head from outside");
  }
  if (verdict.seals.length > 0 && root === null) {
    note("outside-root", "whether a seal's root is the one that was published");
  }
  if (gaps.length > 0) {
    const spans = gaps.slice(0, 10).map(([first, last]) => `${first} to ${last}`);
    if (gaps.length > 10) spans.push(`${gaps.length} gaps in all`);
    note("gaps", `records ${spans.join(", ")}: nothing links what is around them`);
  }
  const hidden = records.length - disclosed.size;
  if (hidden > 0) note("undisclosed", `${hidden} records, of which only the header is here`);
  if (erased.size > 0) note("erased", `${erased.size} payloads, which can no longer be read`);
}

/** A text of the bundle, short, and without characters that could deceive a reader. */
export function show(text) {
  const characters = [...String(text)];
  const cut = characters.length > 100 ? [...characters.slice(0, 100), "…"] : characters;
  const escape = (c) => (/[\p{C}\p{Z}]/u.test(c) && c !== " " ? `\\u{${c.codePointAt(0).toString(16)}}` : c);
  return cut.map(escape).join("");
}
