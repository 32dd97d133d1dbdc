// The top of the page and "What happened": the goal, how it ended in one sentence, then when, how
// each task ended, what was tried again, refused and erased.

import { $, button, copyable, cut, el, passage, plain, stored } from "./dom.mjs";
import { isEnded, rootOf, tasksOf } from "./model.mjs";
import { callTitle, count, list, refusalReason, span } from "./words.mjs";

const MOST = 12; // of what may be many
const FEW = 5;

/** Fill them; `reveal(seq)` leads to a record in the timeline. */
export function showStory(model, reveal) {
  const title = titleOf(model);
  document.title = `${plain(title, 80)} – Colibri report`;
  $("title").replaceChildren(stored(cut(title, TITLE)));
  $("scope").replaceChildren(...EYEBROWS[model.scope.kind](model.scope.id ?? ""));
  $("outcome").replaceChildren(...outcome(model));
  $("summary").replaceChildren(
    ...asked(model),
    row("When", [when(model)]),
    ...tasks(model, reveal),
    ...checked(model, reveal),
    ...retries(model, reveal),
    ...refusals(model, reveal),
    ...erasures(model, reveal),
  );
  $("values").replaceChildren(...values(model));
  $("values-part").hidden = false;
}

const TITLE = 160; // characters of it that are shown at the top
const EYEBROWS = {
  session: (id) => ["Session ", stored(id), " set out to do this:"],
  task: (id) => ["Task ", stored(id)],
  log: () => ["The whole project"],
};

/** The head and the roots that this file holds. */
function values({ head, sessions, scope }) {
  const isOwn = ({ id }) => scope.kind !== "session" || id === scope.id;
  const sealed = sessions.filter((session) => session.seal?.body && isOwn(session));
  const name = ({ id }) => (sealed.length === 1 ? "Root" : `Root of ${plain(id, 64)}`);
  const roots = sealed.slice(0, MOST).map((session) => [name(session), rootOf(session.seal.body)]);
  return [...roots, ["Head", `${head.seq}:${head.leaf}`]].map(([title, value]) =>
    el("div", {}, el("dt", {}, title), el("dd", {}, copyable(plain(value), `the ${title.toLowerCase()}`))));
}

/** A task's state, as it is marked everywhere on the page. */
export function state(status) {
  return el("span", { class: "task-state", "data-status": status ?? "unknown" }, status ?? "unknown");
}

/** The number of a record, which leads to it. */
export const link = (seq, reveal, name = `record ${seq}`) =>
  button(name, () => reveal(seq), { class: "link", "data-seq": seq });

/** "a", "a and b", as elements that keep each name apart; null is somebody who gave none. */
export function names(ids, most = MOST) {
  const shown = ids.slice(0, most).map((id) => (id === null ? NAMELESS : stored(id)));
  const parts = [...shown, ...(ids.length > most ? [`${ids.length - most} more`] : [])];
  return parts.flatMap((part, at) => [at === 0 ? "" : at === parts.length - 1 ? " and " : ", ", part]);
}

const NAMELESS = "an agent that gave no name";

function row(name, what) {
  return el("div", { class: "line" }, el("dt", {}, name), el("dd", {}, el("div", {}, ...what)));
}

const sentence = (...parts) => el("p", {}, ...parts);

// The goal.

const ownTask = ({ scope, tasks: all }) =>
  (scope.kind === "task" ? all.find(({ id }) => id === scope.id) : undefined);
const ownSession = ({ scope, sessions }) =>
  (scope.kind === "session" ? sessions.find(({ id }) => id === scope.id) : undefined);

/** A session's intent or a task's title; null if that is not there. */
function askedText(model) {
  if (model.scope.kind === "task") return ownTask(model)?.title ?? null;
  return ownSession(model)?.opening?.body?.intent ?? null;
}

function titleOf(model) {
  const { kind } = model.scope;
  return askedText(model) ?? (kind === "log" ? projectName(model) : `The text of this ${kind} is not in this file`);
}

/** The project that most tasks name; they need not name any. */
function projectName({ tasks: all }) {
  const named = [...new Set(all.map(({ project }) => project))].filter((project) => project !== null);
  return named.length === 0 ? "Everything that was recorded" : `Project ${list(named.slice(0, 3))}`;
}

/** What the top leaves out: a long goal, and a task's description. */
function asked(model) {
  const text = askedText(model);
  const more = [];
  if (text === null && model.scope.kind !== "log") more.push(el("p", { class: "erased" }, "Its text was erased."));
  if (text !== null && cut(text, TITLE) !== text) more.push(passage(text, "quote"));
  const description = ownTask(model)?.description ?? null;
  if (description !== null) more.push(passage(description, "quote"));
  return more.length === 0 ? [] : [row("The goal", more)];
}

// How it ended, in one sentence.

function outcome(model) {
  return { session: sessionOutcome, task: taskOutcome, log: projectOutcome }[model.scope.kind](model);
}

/** Who changed tasks or recorded thoughts; null for whoever gave no name. */
const workers = ({ own }) => [...new Set(own.filter(({ kind }) => WORK.includes(kind)).map(({ agent }) => agent))];
const WORK = ["session.open", "thought", "task", "session.seal"];

function sessionOutcome(model) {
  const { own, workedOn, tasks: all } = model;
  const left = all.filter((task) => workedOn.has(task.id) && !isEnded(task)).map(({ id }) => id);
  const found = workers(model).toSorted(namelessLast);
  const who = found.length === 0 ? [null] : found;
  const isMove = ({ kind, body, task }) => kind === "task" && body?.version !== 1 && left.includes(task);
  const leftBy = new Map(own.filter(isMove).map(({ task, agent }) => [task, agent]));
  const said = who.slice(0, FEW).map((agent, at) => {
    const mine = own.filter((record) => record.agent === agent);
    const subject = agent === null && at === 0 ? ["An agent that gave no name"] : names([agent]);
    const did = who.length === 1 ? didAlone(mine, left) : didAmongOthers(mine, left.filter((id) => leftBy.get(id) === agent));
    return [...subject, " ", ...joined(did, ", ", " and ")];
  });
  if (who.length > FEW) said.push([`${count(who.length - FEW, "more agent")} took part`]);
  const rest = who.length === 1 ? [] : left.filter((id) => !leftBy.has(id));
  if (rest.length > 0) said.push([...names(rest, FEW), rest.length === 1 ? " is" : " are", " unfinished"]);
  if ((ownSession(model)?.seal ?? null) === null) said.push(["the session is still open"]);
  return [...joined(said, "; ", "; "), "."];
}

/** What the only agent of a session did. */
function didAlone(mine, left) {
  const parts = madeOf(mine, left);
  if (parts.length === 0) parts.push([tasksOf(mine).workedOn.size === 0 ? "changed no task" : "finished no task"]);
  return [...parts, ...sealedBy(mine)];
}

/** What one of several agents did; `left` is what it was the last to change. */
function didAmongOthers(mine, left) {
  const thoughts = mine.filter(({ kind }) => kind === "thought").length;
  const { finished, cancelled, workedOn } = tasksOf(mine.filter(({ kind }) => kind !== "thought"));
  const told = [...finished, ...cancelled, ...left];
  const begun = [...workedOn].filter((id) => !told.includes(id));
  const parts = madeOf(mine, left);
  if (begun.length > 0) parts.push(["worked on ", ...names(begun, FEW)]);
  if (parts.length === 0 && thoughts > 0) parts.push([`recorded ${count(thoughts, "thought")}`]);
  if (parts.length === 0 && mine.some(({ kind }) => kind === "session.open")) parts.push(["opened the session"]);
  return [...parts, ...sealedBy(mine)];
}

function madeOf(mine, left) {
  const { created, finished, cancelled } = tasksOf(mine);
  const parts = [];
  if (created.size > 0) parts.push([`created ${count(created.size, "task")}`]);
  if (finished.size > 0) parts.push(["finished ", ...names([...finished], FEW)]);
  if (cancelled.size > 0) parts.push(["cancelled ", ...names([...cancelled], FEW)]);
  if (left.length > 0) parts.push(["left ", ...names(left, FEW), " unfinished"]);
  return parts;
}

const sealedBy = (mine) => (mine.some(({ kind }) => kind === "session.seal") ? [["sealed the session"]] : []);

/** Parts of a sentence, one after the other. */
const joined = (parts, between, last) =>
  parts.flatMap((part, at) => [at === 0 ? "" : at === parts.length - 1 ? last : between, ...part]);

const namelessLast = (a, b) => (a === null) - (b === null);

function taskOutcome(model) {
  const task = ownTask(model);
  if (task === undefined) return ["Nothing here says how it ended."];
  const { status, attempt, path, waits, assignee } = task;
  const by = path.at(-1)?.agent ?? null;
  const tries = attempt > 1 ? `, in attempt ${attempt}` : "";
  const who = by === null ? [] : [", moved there by ", stored(by)];
  const blocked = waits.length > 0 ? ["; it waits for ", ...names(waits, FEW)] : [];
  const given = assignee === null ? [] : ["; it is assigned to ", stored(assignee)];
  return [`The task is ${inWords(status)}${tries}`, ...who, ...blocked, ...given, "."];
}

const inWords = (status) => (
  { DONE: "done", CANCELLED: "cancelled", INIT: "not begun", null: "in an unknown state" }[status] ?? `at ${status}`);

function projectOutcome({ tasks: all, sessions }) {
  const open = sessions.filter(({ seal }) => seal === null).length;
  const rest = sessions.length === 0 ? "no session was opened" : open === 0
    ? `${count(sessions.length, "session is", "sessions are")} sealed`
    : `${open} of ${count(sessions.length, "session")} ${open === 1 ? "is" : "are"} still open`;
  return [`${progress(all)}; ${rest}.`];
}

/** How many have come how far, in words. */
function progress(all) {
  if (all.length === 0) return "No task was created";
  const number = (fits) => all.filter(fits).length;
  const parts = [
    [number(({ status }) => status === "DONE"), "is done", "are done"],
    [number(isBegun), "is in progress", "are in progress"],
    [number((task) => task.status === "INIT" && task.waits.length === 0), "can be started", "can be started"],
    [number((task) => task.status === "INIT" && task.waits.length > 0), "is blocked", "are blocked"],
    [number(({ status }) => status === "CANCELLED"), "was cancelled", "were cancelled"],
    [number(({ status }) => status === null), "is in an unknown state", "are in an unknown state"],
  ].filter(([some]) => some > 0).map((part) => count(...part));
  return `Of ${count(all.length, "task")} ${list(parts)}`;
}

/** Whether work on a task has begun and not ended. */
export const isBegun = ({ status }) => !["INIT", "DONE", "CANCELLED", null].includes(status);

// The rest, a line each.

const SHORT = 60; // seconds

function when({ entries }) {
  const told = entries.filter(({ type, isOwn }) => isOwn && !["gap", "hidden"].includes(type));
  const times = told.map(({ at }) => at).sort();
  if (times.length === 0) return sentence("Nothing here has a time.");
  const seconds = (Date.parse(times.at(-1)) - Date.parse(times[0])) / 1000;
  const lasted = seconds >= 0.01 && seconds < SHORT ? ` It took ${seconds.toFixed(2)} seconds.` : "";
  return sentence(`${span(times[0], times.at(-1))}.${lasted}`);
}

/** How each task ended, with the last word on it; of a session those that it worked on, and apart from
 * them those that it only created. */
function tasks(model, reveal) {
  const { scope, tasks: all, created, workedOn } = model;
  if (scope.kind === "log") return [];
  const isSession = scope.kind === "session";
  const lines = (fits) => taskLines(all.filter(({ id }) => fits(id)), model, reveal);
  const own = lines((id) => (isSession ? workedOn.has(id) : id === scope.id));
  const rest = lines((id) => isSession && created.has(id) && !workedOn.has(id));
  return [["Tasks", own], ["Only created", rest]].filter(([, said]) => said.length > 0).map((pair) => row(...pair));
}

function taskLines(some, { scope, entries }, reveal) {
  const reflections = new Map(thoughtsOf(entries, "reflection").map((entry) => [entry.task, entry]));
  const thoughts = new Map(thoughtsOf(entries).map((entry) => [entry.task, entry]));
  const lastWord = (task) => (isEnded(task) ? reflections : thoughts).get(task.id);
  const said = some.slice(0, MOST).flatMap((task) => taskLine(task, lastWord(task), scope, reveal));
  if (some.length > MOST) said.push(sentence(`And ${count(some.length - MOST, "more task")}: see Tasks.`));
  return said;
}

/** The thoughts that belong to what the page is about and can be read; of one type, or all. */
export const thoughtsOf = (entries, wanted) =>
  entries.filter(({ type, isOwn, changes: [record] }) =>
    isOwn && type === "thought" && record.body !== null && [record.body.type, undefined].includes(wanted));

function taskLine(task, lastWord, scope, reveal) {
  const { id, title, status, attempt, erased, path } = task;
  const name = title !== null ? stored(cut(title, TITLE)) : erased ? "(its title was erased)" : "";
  const { session = null, agent = null } = path.at(-1) ?? {};
  const isOthers = scope.kind === "session" && session !== scope.id && status !== "INIT";
  const place = session === null ? [" outside any session"] : [" in session ", stored(session)];
  const who = agent === null || status === "INIT" ? [] : [isBegun(task) ? ", moved there by " : " by ", stored(agent)];
  const tries = attempt > 1 ? ` in attempt ${attempt}` : "";
  const how = status === "INIT" ? ["not begun"] : [isBegun(task) ? "unfinished at " : "", state(status)];
  const line = sentence(el("b", {}, id), " ", name, ": ", ...how, tries, ...who, ...(isOthers ? place : []), ".");
  if (lastWord === undefined) return [line];
  const [{ seq, body }] = lastWord.changes;
  const source = el("span", { class: "source" }, link(seq, reveal));
  return [line, el("p", { class: "quote" }, stored(cut(body.content, 300)), " ", source)];
}

/** The last time that an agent had the log checked, and found nothing. */
export const lastCheck = (entries) =>
  entries.findLast(({ tool, outcome }) => tool === "audit_verify_chain" && outcome === "ok");

/** Of a project: that nothing was recorded since then. */
function checked({ scope, entries, head }, reveal) {
  const last = lastCheck(entries);
  if (scope.kind !== "log" || last === undefined || head.seq > last.last) return [];
  return [row("Checked", [sentence("An agent had the whole log checked in the last call. ", link(last.seq, reveal))])];
}

/** Each return to GATHER, with what was written down about it. */
function retries({ entries }, reveal) {
  const isBack = ({ body }) => body?.set?.status?.join() === "VERIFY,GATHER";
  const made = entries.filter(({ isOwn, changes }) => isOwn && changes.some(isBack));
  const said = made.slice(0, FEW).map((entry) => {
    const { seq, body: { attempt } } = entry.changes.find(isBack);
    const why = reasonFor(entry, entries);
    const quoted = why === null ? [] : [": ", el("q", {}, stored(cut(why, 300)))];
    const failed = ` failed its check, and attempt ${attempt} began`;
    return sentence(el("b", {}, stored(entry.task)), failed, ...quoted, " ", link(seq, reveal));
  });
  if (made.length > FEW) said.push(sentence(`And ${count(made.length - FEW, "more time", "more times")}.`));
  return made.length === 0 ? [] : [row("Tried again", said)];
}

/** The thought that came with a move, or the last one about its task before it. */
function reasonFor({ task, changes, seq }, entries) {
  const own = changes.find(({ kind }) => kind === "thought");
  const before = entries.findLast((entry) => entry.type === "thought" && entry.task === task && entry.seq < seq);
  return (own ?? before?.changes[0])?.body?.content ?? null;
}

function refusals({ entries }, reveal) {
  const made = entries.filter(({ type, isOwn }) => isOwn && type === "refused");
  if (made.length === 0) return [row("Refused", [sentence("No call was refused.")])];
  const said = made.slice(0, FEW).map((entry) => {
    const title = callTitle(entry);
    const about = entry.task === null || title.includes(entry.task) ? [] : [" (", stored(entry.task), ")"];
    const who = entry.agent === null ? [title] : [stored(entry.agent), ` ${title[0].toLowerCase()}${title.slice(1)}`];
    return sentence(...who, ...about, `: ${refusalReason(entry)}. `, link(entry.seq, reveal));
  });
  if (made.length > FEW) said.push(sentence(`And ${count(made.length - FEW, "more call")}: see Step by step.`));
  return [row("Refused", said)];
}

function erasures({ entries }, reveal) {
  const gone = entries.filter(({ isOwn, erasures: found }) => isOwn && found?.size > 0);
  if (gone.length === 0) return [];
  const said = gone.slice(0, FEW).map(({ seq, type, agent, task, erasures: found }) => {
    const [{ body, at }] = found.values();
    const what = type === "thought" ? "The text of a thought" : "A text";
    const named = (word, name) => (name === null ? [] : [word, stored(name)]);
    const who = [...named(" by ", agent), ...named(" about ", task)];
    const why = body?.reason == null ? [", without a reason"] : [": ", el("q", {}, stored(cut(body.reason, 200)))];
    return sentence(what, ...who, ` was erased on ${span(at, at)}`, ...why, " ", link(seq, reveal));
  });
  if (gone.length > FEW) said.push(sentence(`And ${count(gone.length - FEW, "more text")}.`));
  return [row("Erased", said)];
}
