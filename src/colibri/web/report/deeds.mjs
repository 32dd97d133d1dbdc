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
    isErased: texts.some(({ body }) => body === null),
    isFailed: FAILED.includes(event) || (exit !== null && exit !== 0),
    isOpen: event === "tool.begin",
  };
}

/** The files of a deed with their names, which are null where they are not known. */
function filesOf({ body: { files } }, text) {
  return files.map(({ n, sha256, size }) => ({ path: text?.paths?.[n] ?? null, sha256, size }));
}

/** path → how often it was edited, by whom last, and what was on the disk after that; the last edited first. */
export function editedFiles(entries) {
  const files = new Map();
  for (const { deed, seq, agent } of entries) {
    if (deed?.sort !== "edit" || deed.isOpen) continue;
    for (const { path, sha256, size } of deed.files) {
      const edits = (files.get(path)?.edits ?? 0) + 1;
      files.delete(path);
      files.set(path, { path, edits, sha256, size, seq, agent });
    }
  }
  return [...files.values()].reverse();
}

/** What the hosts' reports leave open: numbers, each of which is 0 where nothing is missing. */
export function coverageOf(records, entries) {
  const deeds = records.filter(({ kind, body }) => kind === "deed" && body !== null).map(({ body }) => body);
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  const settings = new Set(deeds.map((deed) => deed.settings).filter((hash) => hash !== null));
  const tools = deeds.filter(({ event }) => event.startsWith("tool."));
  return {
    reported: deeds.length,
    hosts: [...new Set(deeds.map(({ host }) => host))],
    lost: sum(deeds.map(({ lost }) => lost)),
    late: deeds.filter(({ late }) => late !== null).length,
    open: entries.filter(({ deed, type }) => type === "deed" && deed?.isOpen).length,
    unpaired: tools.filter(({ use, event }) => use === null && event === "tool.begin").length,
    settings: settings.size,
  };
}
