// The tasks: a row for each with the steps that it took, and a picture of which waits for which.

import { $, button, cut, el, plain, stored, svg } from "./dom.mjs";
import { state } from "./story.mjs";
import { count } from "./words.mjs";

const STEPS = ["INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE"];
const AT_ONCE = 50;
const MOST_DRAWN = 40;
const MOST_PRINTED = 2_000;

/** Show them; `choose(id)` narrows the timeline to one. */
export function showTasks({ tasks, scope, ownTasks }, choose) {
  const isOthers = ({ id }) => scope.kind === "session" && !ownTasks.has(id);
  $("task-count").textContent = counts(tasks);
  $("task-rules").hidden = tasks.length === 0;
  showPicture(tasks);
  let shown = 0;
  const showMore = () => {
    const next = tasks.slice(shown, shown + AT_ONCE);
    $("task-list").append(...next.map((task) => row(task, isOthers(task), choose)));
    shown += next.length;
    $("more-tasks").hidden = shown === tasks.length;
  };
  $("more-tasks").onclick = showMore;
  globalThis.addEventListener("beforeprint", () => {
    while (shown < Math.min(tasks.length, MOST_PRINTED)) showMore();
  });
  showMore();
}

function counts(tasks) {
  if (tasks.length === 0) return "No task belongs to this evidence.";
  const parts = [...STEPS, "CANCELLED"].flatMap((status) => {
    const number = tasks.filter((task) => task.status === status).length;
    return number > 0 ? [`${number} ${status}${status === "INIT" ? " (not begun)" : ""}`] : [];
  });
  return `${count(tasks.length, "task")} at the end of the evidence: ${parts.join(", ")}.`;
}

function row(task, isOthers, choose) {
  const { id, title, status, attempt, thoughts, erased, waits } = task;
  const lost = () => el("span", { class: "erased" }, erased ? "title erased" : "title not here");
  const facts = [count(thoughts, "thought")];
  if (attempt > 1) facts.push(`attempt ${attempt}`);
  if (status === "INIT") facts.push(waits.length > 0 ? "not begun" : "not begun, may begin now");
  if (waits.length > 0) facts.push(`waits for ${plain(waits.join(", "), 160)}`);
  if (isOthers) facts.push("worked on by others only");
  const label = { "aria-label": `${id} in the timeline` };
  return el("li", { class: "task", "data-status": status },
    el("p", { class: "task-name" }, el("b", {}, id), " ", title === null ? lost() : stored(cut(title, 300))),
    track(task),
    el("p", { class: "task-facts" },
      state(status),
      el("span", { class: "soft" }, facts.join(" · ")),
      button("in the timeline", () => choose(id), label)));
}

/** Seven steps, filled as far as the task came. */
function track({ status, path }) {
  const last = path.findLast((step) => step.status !== "CANCELLED")?.status ?? "unknown";
  const reached = STEPS.indexOf(last);
  const place = (at) => (at > reached ? "ahead" : at === reached ? "here" : "taken");
  const steps = STEPS.map((name, at) => el("span", { class: "step", title: name, "data-step": place(at) }));
  const label = status === "CANCELLED" ? `cancelled after ${last}` : `${last}, step ${reached + 1} of ${STEPS.length}`;
  return el("div", { class: "track", role: "img", "aria-label": label, "data-status": status }, ...steps);
}

// The picture: from what must come first to what comes last; to the right, or on a phone downwards.

// px: of a box, and from one to the next; and the characters of a title that there is room for
const HEIGHT = 52;
const WIDE = { width: 208, across: 264, down: 68, letters: 26, downwards: false };
const NARROW = { width: 168, across: 178, down: 84, letters: 20, downwards: true };

function showPicture(tasks) {
  const linked = new Set(tasks.flatMap(({ id, depends_on: needed }) => (needed.length > 0 ? [id, ...needed] : [])));
  const drawn = tasks.filter(({ id }) => linked.has(id));
  $("task-picture").hidden = drawn.length === 0 || drawn.length > MOST_DRAWN;
  if ($("task-picture").hidden) return;
  const phone = matchMedia("(max-width: 40rem)");
  const draw = () => $("task-drawing").replaceChildren(picture(drawn, phone.matches ? NARROW : WIDE));
  phone.addEventListener("change", draw);
  draw();
}

function picture(tasks, shape) {
  const spot = (x, y) => [x * shape.across, y * shape.down];
  const spots = new Map([...place(tasks)].map(([id, [step, row]]) =>
    [id, shape.downwards ? spot(row, step) : spot(step, row)]));
  const most = (axis) => Math.max(...[...spots.values()].map((at) => at[axis]));
  const [width, height] = [most(0) + shape.width + 2, most(1) + HEIGHT + 2];
  const arrows = tasks.flatMap(({ id, depends_on: needed }) =>
    needed.filter((other) => spots.has(other)).map((other) => arrow(spots.get(other), spots.get(id), shape)));
  const later = tasks.filter(({ depends_on: needed }) => needed.length > 0);
  const says = later.map(({ id, depends_on: needed }) => `${id} comes after ${needed.join(", ")}`);
  const label = { role: "img", "aria-label": plain(says.join("; "), 2_000) };
  return svg("svg", { width, height, viewBox: `-1 -1 ${width} ${height}`, ...label },
    ...arrows, ...tasks.map((task) => box(task, spots.get(task.id), shape)));
}

/** Task → [column, row]: one column after all that it waits for. */
export function place(tasks) {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const columns = new Map();
  const column = (id) => {
    if (!columns.has(id)) {
      columns.set(id, 0); // for a forged one that waits for itself
      const needed = byId.get(id).depends_on.filter((other) => byId.has(other));
      columns.set(id, 1 + Math.max(-1, ...needed.map(column)));
    }
    return columns.get(id);
  };
  const used = [];
  return new Map(tasks.map(({ id }) => {
    const at = column(id);
    used[at] = (used[at] ?? 0) + 1;
    return [id, [at, used[at] - 1]];
  }));
}

/** From one box's side to the other's, or from its foot to the other's head. */
function arrow([x, y], [u, v], { width, downwards }) {
  const [from, to] = downwards
    ? [[x + width / 2, y + HEIGHT], [u + width / 2, v]]
    : [[x + width, y + HEIGHT / 2], [u, v + HEIGHT / 2]];
  const ahead = downwards ? 1 : 0; // the axis
  const point = (base, forth, aside = 0) =>
    base.map((value, axis) => value + (axis === ahead ? forth : aside)).join(" ");
  const bend = (to[ahead] - from[ahead]) / 2;
  return svg("g", { class: "arrow" },
    svg("path", { d: `M${point(from, 0)}C${point(from, bend)} ${point(to, -bend)} ${point(to, -7)}` }),
    svg("path", { class: "tip", d: `M${point(to, -8, -4)}L${point(to, -1)}L${point(to, -8, 4)}Z` }));
}

function box({ id, title, status }, [x, y], { width, letters }) {
  const [left, right] = [x + 12, x + width - 12];
  return svg("g", { class: "box", "data-status": status },
    svg("rect", { x, y, width, height: HEIGHT, rx: 6 }),
    svg("text", { x: left, y: y + 21, class: "box-id" }, id),
    svg("text", { x: right, y: y + 21, class: "box-state", "text-anchor": "end" }, status ?? "unknown"),
    // A picture in the picture: wide letters, too, end where it ends.
    svg("svg", { x: left, y: y + 26, width: width - 24, height: 22 },
      svg("text", { y: 14, class: "box-title" }, plain(title ?? "", letters))));
}
