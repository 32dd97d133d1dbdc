// Files and commands: which files an agent's tools changed and why, which commands failed, and what is not
// known, as its host reported it.

import { $, copyable, cut, el, passage, plain, stored } from "./dom.mjs";
import { editedFiles, reasonsFor, reportsOf } from "./deeds.mjs";
import { link, names, thoughtsOf } from "./story.mjs";
import { count, span } from "./words.mjs";

const FEW = 10;
const MOST = 200;
const NOTHING = "Not known: the programs that the agents ran in reported no edits or commands.";
const RAN = ["tool.end", "tool.failed"];

/** Show them, or that no host reported any; `reveal(seq)` leads to a record in the timeline. */
export function showWork({ own, entries, scope }, reveal) {
  const mine = entries.filter(({ isOwn, deed }) => isOwn && deed !== null);
  $("deeds").hidden = scope.kind === "task" && mine.length === 0; // its evidence need not hold them
  const changes = unexplained(JSON.parse($("changes").textContent));
  if (mine.length === 0) {
    $("deed-list").replaceChildren(el("p", {}, NOTHING), ...changes);
    return;
  }
  const decisions = thoughtsOf(entries, "decision");
  const files = editedFiles(mine);
  const runs = mine.filter(({ type, deed }) => type === "deed" && deed.sort === "run" && RAN.includes(deed.event));
  const failed = mine.filter(({ type, deed }) => type === "deed" && deed.isFailed);
  $("deed-list").replaceChildren(
    el("dl", {},
      row("Changed files", files.length === 0 ? [el("p", {}, "None was reported.")] : fileList(files, decisions, reveal)),
      row("Commands", [el("p", {}, `${count(runs.length, "command")} ran.`)]),
      row("Failed", failed.length === 0 ? [el("p", {}, "Nothing was reported to have failed.")] : failures(failed, reveal)),
      row("Not known", [...reports(reportsOf(own)), el("div", { id: "coverage" }), ...changes]),
    ),
  );
}

function row(name, what) {
  return el("div", { class: "line" }, el("dt", {}, name), el("dd", {}, ...what));
}

function fileList(files, decisions, reveal) {
  const drawn = (some) => some.map(({ path, edits, sha256, size, seq }) => {
    const name = path === null ? "a file outside the project" : el("b", {}, stored(path));
    const hash = sha256 === null
      ? "gone, or not read, after the last edit"
      : copyable(sha256, `the hash of ${plain(path ?? "the file", 80)}`);
    return el("li", {},
      el("p", {}, name, ` ${count(edits.length, "edit")} `, link(seq, reveal)),
      el("p", { class: "soft" }, hash, size === null ? "" : ` ${count(size, "byte")}`),
      why(edits, decisions, reveal));
  });
  const shown = [el("ul", { class: "lines", id: "files" }, ...drawn(files.slice(0, FEW)))];
  if (files.length > FEW) {
    const rest = files.slice(FEW, MOST);
    shown.push(el("details", { id: "more-files" }, el("summary", {}, `${count(files.length - FEW, "more file")}`),
      el("ul", { class: "lines" }, ...drawn(rest)),
      files.length > MOST ? el("p", {}, `And ${count(files.length - MOST, "more")}: see Step by step.`) : null));
  }
  return shown;
}

/** What leads to the edits of a file and to the decisions before them; looked for when it is opened. */
function why(edits, decisions, reveal) {
  const details = el("details", { class: "why" }, el("summary", {}, "Why"));
  const show = () => details.append(...reasons(edits, reasonsFor(edits, decisions), reveal));
  details.addEventListener("toggle", show, { once: true });
  return details;
}

/** Edits and decisions, the newest first. */
function reasons(edits, decisions, reveal) {
  const made = edits.toReversed().slice(0, FEW).map(({ seq, at, agent, task }) => {
    const by = agent === null ? [] : [" by ", stored(agent)];
    const about = task === null ? [] : [" for ", el("b", {}, stored(task))];
    return el("li", {}, link(seq, reveal), ...by, ...about, `, ${span(at, at)}`);
  });
  if (edits.length > FEW) made.push(el("li", {}, `And ${count(edits.length - FEW, "older edit")}.`));
  const said = decisions.toReversed().slice(0, FEW).flatMap(({ changes: [{ seq, body }] }) => [
    passage(body.content, "quote"), el("p", { class: "facts" }, link(seq, reveal))]);
  if (decisions.length > FEW) said.push(el("p", {}, `And ${count(decisions.length - FEW, "older decision")}.`));
  if (decisions.length === 0) said.push(el("p", {}, "No decision was recorded before these edits."));
  return [el("ul", { class: "lines" }, ...made), ...said];
}

/** What git showed, when the page was written, that no reported edit explains. */
function unexplained(changes) {
  if (changes === null) return [];
  const { files, total, more, problem } = changes;
  const said = (...text) => el("p", {}, ...text);
  if (problem !== null) return [said("Which changed files no action explains is not known: ", stored(problem), ".")];
  const rest = more ? " Not all commits and files were looked at." : "";
  if (total === 0) return [said(`No file changed in git that no action explains.${rest}`)];
  const drawn = files.map(({ path, commit }) => el("li", {},
    el("b", {}, stored(path)), commit === null ? " not committed" : ` commit ${commit.slice(0, 12)}`));
  if (total > files.length) drawn.push(el("li", {}, `And ${count(total - files.length, "more")}.`));
  const what = count(total, "changed file has a content that no action explains",
    "changed files have contents that no action explains");
  return [
    said(`${what}: a person, a command or another program may have changed ${total === 1 ? "it" : "them"}.${rest} This ` +
      "comes from git, when the page was written, and is not part of the evidence."),
    el("details", { id: "unexplained" }, el("summary", {}, "Which files"), el("ul", { class: "lines" }, ...drawn)),
  ];
}

function failures(failed, reveal) {
  const said = failed.slice(0, FEW).map(({ deed: { command, event, exit, tool }, seq }) => {
    const how = event === "tool.denied" ? "denied" : exit === null ? "failed" : `exit code ${exit}`;
    const what = el("code", {}, stored(cut(command ?? tool ?? "an action", 120)));
    return el("p", { class: "failure" }, el("b", { class: "bad" }, how), " ", what, " ", link(seq, reveal));
  });
  if (failed.length > FEW) said.push(el("p", {}, `And ${count(failed.length - FEW, "more")}: see Step by step.`));
  return said;
}

function reports({ hosts, late }) {
  const said = [el("p", {}, "Reported by ", ...names(hosts), ".")];
  const reported = count(late, "report was", "reports were");
  if (late > 0) said.push(el("p", {}, `${reported} recorded later than the action.`));
  return said;
}

const OUTSIDE =
  "What an agent does outside the tools of its host, and what its host does not report, is not here.";

/** What the reports leave open, as the verdict has measured it; it measures nothing for a task, nor where the
 * records are not sound. */
export function showCoverage(coverage) {
  $("coverage")?.replaceChildren(...[...gapsIn(coverage), OUTSIDE].map((text) => el("p", {}, text)));
}

/** A sentence for each number of a verdict's coverage that is not 0. */
export function gapsIn(coverage) {
  if (coverage === null) return ["What is missing from the reports was not checked."];
  const { not_ended_count: open, unpaired, unseen_count: unseen, unseen: [first] } = coverage;
  const { unjudged, lost, settings_changed: changes, unreported, sessions } = coverage;
  const gaps = [
    [open, `${count(open, "action began and its end was", "actions began and their ends were")} not reported.`],
    [lost, `${count(lost, "action was", "actions were")} lost before ${lost === 1 ? "it" : "they"} could be recorded.`],
    [unpaired, `Of ${count(unpaired, "action")} it is not known which begin and which end belong together: the ` +
      "host gives no ids, or does not report when actions begin."],
    [unseen, `${count(unseen, "call to Colibri was", "calls to Colibri were")} not reported, although the host had ` +
      `reported before; the first is record ${first}. Its hooks may have been removed.`],
    [unjudged, `${count(unjudged, "edit was", "edits were")} not judged by the project’s rule for edits.`],
    [changes, "The settings of the host’s hooks changed in between."],
    [sessions > 1 ? unreported : 0, `No host reported anything in ${unreported} of ${count(sessions, "session")}.`],
  ];
  return gaps.filter(([number]) => number > 0).map(([, text]) => text);
}
