// Files and commands: which files an agent's tools changed, which commands failed, and what is not known,
// as its host reported it.

import { $, copyable, cut, el, plain, stored } from "./dom.mjs";
import { coverageOf, editedFiles } from "./deeds.mjs";
import { link, names } from "./story.mjs";
import { count } from "./words.mjs";

const FEW = 10;
const MOST = 200;
const NOTHING = "Not known: no host reported edits or commands.";
const RAN = ["tool.end", "tool.failed"];

/** Show them, or that no host reported any; `reveal(seq)` leads to a record in the timeline. */
export function showWork({ own, entries, scope }, reveal) {
  const mine = entries.filter(({ isOwn, deed }) => isOwn && deed !== null);
  $("deeds").hidden = scope.kind === "task" && mine.length === 0; // its evidence need not hold them
  if (mine.length === 0) {
    $("deed-list").replaceChildren(el("p", {}, NOTHING));
    return;
  }
  const files = editedFiles(mine);
  const runs = mine.filter(({ type, deed }) => type === "deed" && deed.sort === "run" && RAN.includes(deed.event));
  const failed = mine.filter(({ type, deed }) => type === "deed" && deed.isFailed);
  $("deed-list").replaceChildren(
    el("dl", {},
      row("Changed files", files.length === 0 ? [el("p", {}, "None was reported.")] : fileList(files, reveal)),
      row("Commands", [el("p", {}, `${count(runs.length, "command")} ran.`)]),
      row("Failed", failed.length === 0 ? [el("p", {}, "Nothing was reported to have failed.")] : failures(failed, reveal)),
      row("Not known", notKnown(coverageOf(own, mine))),
    ),
  );
}

function row(name, what) {
  return el("div", { class: "line" }, el("dt", {}, name), el("dd", {}, ...what));
}

function fileList(files, reveal) {
  const drawn = (some) => some.map(({ path, edits, sha256, size, seq }) => {
    const name = path === null ? "a file outside the project" : el("b", {}, stored(path));
    const hash = sha256 === null
      ? "gone, or not read, after the last edit"
      : copyable(sha256, `the hash of ${plain(path ?? "the file", 80)}`);
    return el("li", {},
      el("p", {}, name, ` ${count(edits, "edit")} `, link(seq, reveal)),
      el("p", { class: "soft" }, hash, size === null ? "" : ` ${count(size, "byte")}`));
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

function failures(failed, reveal) {
  const said = failed.slice(0, FEW).map(({ deed: { command, event, exit, tool }, seq }) => {
    const how = event === "tool.denied" ? "denied" : exit === null ? "failed" : `exit code ${exit}`;
    const what = el("code", {}, stored(cut(command ?? tool ?? "an action", 120)));
    return el("p", { class: "failure" }, el("b", { class: "bad" }, how), " ", what, " ", link(seq, reveal));
  });
  if (failed.length > FEW) said.push(el("p", {}, `And ${count(failed.length - FEW, "more")}: see Step by step.`));
  return said;
}

/** What the reports leave open. */
function notKnown({ hosts, lost, late, open, unpaired, settings }) {
  const said = [];
  const they = (number, one, many) => (number === 1 ? one : many);
  const tell = (number, text) => {
    if (number > 0) said.push(text);
  };
  const ends = count(open, "action began and its end was", "actions began and their ends were");
  tell(open, `${ends} not reported.`);
  tell(lost, `${count(lost, "action was", "actions were")} lost before ${they(lost, "it", "they")} could be recorded.`);
  tell(unpaired, `${count(unpaired, "action")} began without an id, so the end cannot be told.`);
  tell(settings - 1, "The settings of the host’s hooks changed in between.");
  tell(late, `${count(late, "report was", "reports were")} recorded later than the action.`);
  said.push("What an agent does outside the tools of its host, and what its host does not report, is not here.");
  return [el("p", {}, "Reported by ", ...names(hosts), "."), ...said.map((text) => el("p", {}, text))];
}
