// What a host reported of an agent's actions: edits, commands and the like, each from its begin to its end.
// Pure: drawing them is for entry.mjs and work.mjs.

const FAILED = ["tool.failed", "tool.denied"];
const ENDS = ["tool.end", ...FAILED];

/** The use of a tool that a record is about, by which its begin, its end and its call are one; or null. */
export function useOf({ kind, body }) {
  if (kind !== "deed" && kind !== "call.enter") return null;
  const isTool = kind === "call.enter" || body?.event?.startsWith("tool.");
  return isTool && body?.use != null && body.host_session !== null ? `${body.host_session} ${body.use}` : null;
}

/** The action that some records of one act tell of; null where no host reported it. */
export function deedOf(records) {
  const deeds = records.filter(({ kind, body }) => kind === "deed" && body !== null);
  if (deeds.length === 0) return null;
  const end = deeds.findLast(({ body }) => ENDS.includes(body.event)) ?? deeds.at(-1);
  const texts = records.filter(({ kind }) => kind === "deed.text");
  const said = (record) => texts.find(({ seq }) => seq === record.seq + 1)?.body ?? null;
  const text = deeds.map(said).filter(Boolean);
  const { event, class: sort, tool, exit, duration_ms: duration, host, late, git } = end.body;
  return {
    event, sort, tool, exit, duration, host, late, git,
    command: text.map(({ command }) => command).find((command) => command !== null) ?? null,
    text: text.map((one) => one.text).find((one) => one !== null) ?? null,
    files: filesOf(end, said(end)),
    unjudged: deeds.map(({ body }) => body.unjudged ?? null).find((why) => why !== null) ?? null,
    isErased: texts.some(({ body }) => body === null),
    isFailed: FAILED.includes(event) || (exit !== null && exit !== 0),
    hasId: end.body.use !== null,
    isOpen: event === "tool.begin",
    seals: false,
  };
}

const SEALING = ["mcp", "run"]; // the sorts of tools by which an agent can seal its session

/** Note which action sealed its session: its end comes after the seal, and so is not the session's. */
export function noteSealing(entries) {
  const newest = new Map(); // session → the last action that began in it
  for (const { session, changes, deed } of entries) {
    if (deed?.hasId && deed.isOpen && session !== null) newest.set(session, deed);
    if (!changes.some(({ kind }) => kind === "session.seal")) continue;
    const last = newest.get(session);
    if (SEALING.includes(last?.sort)) Object.assign(last, { isOpen: false, seals: true });
  }
}

/** The files of a deed with their names, which are null where they are not known. */
function filesOf({ body: { files } }, text) {
  return files.map(({ n, sha256, size }) => ({ path: text?.paths?.[n] ?? null, sha256, size }));
}

/** path → its edits in order, and what was on the disk after the last of them; the last edited first. */
export function editedFiles(entries) {
  const files = new Map();
  for (const entry of entries) {
    const { deed, seq } = entry;
    if (deed?.sort !== "edit" || deed.isOpen) continue;
    for (const { path, sha256, size } of deed.files) {
      const edits = files.get(path)?.edits ?? [];
      edits.push(entry);
      files.delete(path);
      files.set(path, { path, edits, sha256, size, seq });
    }
  }
  return [...files.values()].reverse();
}

/** The decisions that came before edits: about the task of one, or in its session about no task. */
export function reasonsFor(edits, decisions) {
  const isAbout = (made) => edits.some(({ seq, session, task }) =>
    made.seq < seq && (made.task === null ? made.session === session && session !== null : made.task === task));
  return decisions.filter(isAbout);
}

/** Which hosts reported, and how many reports were recorded later; what is missing is in the verdict. */
export function reportsOf(records) {
  const deeds = records.filter(({ kind, body }) => kind === "deed" && body !== null).map(({ body }) => body);
  return {
    hosts: [...new Set(deeds.map(({ host }) => host))],
    late: deeds.filter(({ late }) => late !== null).length,
  };
}
