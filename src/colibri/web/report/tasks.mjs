// The tasks: a picture of which waits for which, and a row for each with the steps that it took. A session's
// own tasks are apart from those that only others worked on; a project's are grouped by what can be done next.

import { $, button, cut, el, plain, stored, svg } from "./dom.mjs";
import { isEnded } from "./model.mjs";
import { isBegun, state } from "./story.mjs";
import { count, list } from "./words.mjs";

const STEPS = ["INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE"];
const AT_ONCE = 50;
const MOST_DRAWN = 40;
const MOST_PRINTED = 2_000;

/** Show them; `choose(id)` narrows the timeline to one. */
export function showTasks(model, choose) {
  const { tasks, openers } = model;
  showPicture(tasks);
  const groups = groupsOf(model).filter((group) => group.tasks.length > 0);
  $("task-groups").replaceChildren(...groups.map((group) => drawGroup(group, openers, choose)));
  if (tasks.length === 0) $("task-groups").append(el("p", {}, "No task belongs to this evidence."));
}

function groupsOf({ tasks, scope, created, workedOn }) {
  const only = (fits) => tasks.filter(fits);
  if (scope.kind === "session") {
    return [
      { title: "Worked on by this session", tasks: only(({ id }) => workedOn.has(id)) },
      { title: "Only created by this session", tasks: only(({ id }) => created.has(id) && !workedOn.has(id)), isOthers: true },
      { title: "Worked on by others", tasks: only(({ id }) => !created.has(id) && !workedOn.has(id)), isOthers: true },
    ];
  }
  if (scope.kind === "task") {
    return [
      { title: "This task", tasks: only(({ id }) => id === scope.id) },
      { title: "Tasks it depends on", tasks: only(({ id }) => id !== scope.id) },
    ];
  }
  return [
    { title: "In progress", tasks: only(isBegun) },
    { title: "Can be started", tasks: only(({ status, waits }) => status === "INIT" && waits.length === 0) },
    { title: "Blocked", tasks: only(({ status, waits }) => status === "INIT" && waits.length > 0) },
    { title: "Done", tasks: only(({ status }) => status === "DONE"), isFolded: true },
    { title: "Cancelled", tasks: only(({ status }) => status === "CANCELLED"), isFolded: true },
    { title: "State unknown", tasks: only(({ status }) => status === null) },
  ];
}

/** A group under its heading; what has ended begins folded, and says how much that is. */
function drawGroup({ title, tasks, isFolded, isOthers }, openers, choose) {
  const rows = el("ul", { class: "task-list" });
  const more = button("", () => showMore(), { class: "wide" });
  let shown = 0;
  const showMore = () => {
    const next = tasks.slice(shown, shown + AT_ONCE);
    rows.append(...next.map((task) => row(task, isOthers, openers, choose)));
    shown += next.length;
    more.hidden = shown === tasks.length;
    more.textContent = `Show ${Math.min(AT_ONCE, tasks.length - shown)} more of ${tasks.length.toLocaleString("en")}`;
  };
  globalThis.addEventListener("beforeprint", () => {
    while (shown < Math.min(tasks.length, MOST_PRINTED)) showMore();
  });
  showMore();
  const name = [title, " ", el("span", { class: "soft" }, tasks.length.toLocaleString("en"))];
  const id = `group-${title.toLowerCase().replaceAll(" ", "-")}`;
  return isFolded
    ? el("details", { class: "group", id }, el("summary", {}, el("h3", {}, ...name)), rows, more)
    : el("div", { class: "group", id }, el("h3", {}, ...name), rows, more);
}

/** `isOthers`: thoughts about it are in sessions that this file does not tell of. */
function row(task, isOthers, openers, choose) {
  const { id, title, status, attempt, thoughts, erased, waits, holder } = task;
  const lost = () => el("span", { class: "erased" }, erased ? "title erased" : "title not here");
  const facts = isOthers ? [] : [count(thoughts, "thought")];
  if (isOthers && isEnded(task)) facts.push("its thoughts belong to another session and are not in this file");
  if (attempt > 1) facts.push(`attempt ${attempt}`);
  if (status === "INIT" && waits.length === 0) facts.push("can be started");
  if (waits.length > 0) facts.push(`waits for ${plain(list(waits), 160)}`);
  const agent = openers.get(holder) ?? null;
  const by = agent === null ? [] : [stored(agent), " in "];
  const held = holder === null ? [] : ["held by ", ...by, stored(holder)];
  const label = { "aria-label": `${id} in the timeline` };
  return el("li", { class: "task", "data-status": status },
    el("p", { class: "task-name" }, el("b", {}, id), " ", title === null ? lost() : stored(cut(title, 300))),
    track(task),
    el("p", { class: "task-facts" },
      state(status),
      el("span", { class: "soft" }, facts.join(" · ")),
      held.length > 0 ? el("span", { class: "soft" }, ...held) : null,
      button("step by step", () => choose(id), label)));
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
  const all = tasks.filter(({ id }) => linked.has(id));
  $("task-picture").hidden = all.length === 0;
  if (all.length === 0) return;
  const phone = matchMedia("(max-width: 40rem)");
  let drawn = chosenFrom(all);
  const draw = () => {
    $("task-drawing").replaceChildren(picture(drawn, phone.matches ? NARROW : WIDE));
    const isWide = $("task-drawing").scrollWidth > $("task-drawing").clientWidth;
    const sideways = isWide ? [" ", el("span", { class: "on-screen" }, "Scroll sideways to see all of it.")] : [];
    $("task-drawn").replaceChildren(drawnText(drawn, all, tasks).join(" "), ...sideways);
    $("draw-all").hidden = drawn.length === all.length;
  };
  $("draw-all").textContent = `Draw all ${all.length.toLocaleString("en")}`;
  $("draw-all").onclick = () => {
    drawn = all;
    draw();
    $("task-drawing").focus();
  };
  phone.addEventListener("change", draw);
  draw();
}

/** Of many tasks those that have not ended, with what they wait for, as far as they fit. */
function chosenFrom(all) {
  if (all.length <= MOST_DRAWN) return all;
  const open = all.filter(({ status }) => status !== "DONE" && status !== "CANCELLED");
  const near = new Set(open.flatMap(({ id, depends_on: needed }) => [id, ...needed]));
  const first = [...new Set([...open.map(({ id }) => id), ...near, ...all.map(({ id }) => id)])];
  const chosen = new Set(first.slice(0, MOST_DRAWN));
  return all.filter(({ id }) => chosen.has(id));
}

/** What the arrows mean, and everything that the picture leaves out. */
function drawnText(drawn, all, tasks) {
  const said = ["An arrow points from a task to one that waits for it."];
  if (drawn.length < all.length) {
    said.push(`Drawn are ${drawn.length} of ${count(all.length, "linked task")}, unfinished ones first.`);
  }
  const isDrawn = new Set(drawn.map(({ id }) => id));
  const cutOff = drawn.flatMap(({ depends_on: needed }) => needed).filter((id) => !isDrawn.has(id)).length;
  if (cutOff > 0) said.push(`${count(cutOff, "arrow comes", "arrows come")} from tasks that are not drawn: short dashes.`);
  const alone = tasks.length - all.length;
  if (alone > 0) {
    said.push(`${count(alone, "task has", "tasks have")} no arrows and ${alone === 1 ? "is" : "are"} only listed below.`);
  }
  return said;
}

function picture(tasks, shape) {
  const spot = (x, y) => [x * shape.across, y * shape.down];
  const spots = new Map([...place(tasks)].map(([id, [step, row]]) =>
    [id, shape.downwards ? spot(row, step) : spot(step, row)]));
  const most = (axis) => Math.max(...[...spots.values()].map((at) => at[axis]));
  const [width, height] = [most(0) + shape.width + 2, most(1) + HEIGHT + 2];
  const arrows = tasks.flatMap(({ id, depends_on: needed }) => [
    ...needed.filter((other) => spots.has(other)).map((other) => arrow(spots.get(other), spots.get(id), shape)),
    ...(needed.every((other) => spots.has(other)) ? [] : [stub(spots.get(id), shape)]),
  ]);
  const later = tasks.filter(({ depends_on: needed }) => needed.length > 0);
  const says = later.map(({ id, depends_on: needed }) => `${id} comes after ${needed.join(", ")}`);
  const label = { role: "img", "aria-label": plain(says.join("; "), 2_000) };
  const room = 1 + (tasks.some(({ depends_on: needed }) => needed.some((id) => !spots.has(id))) ? STUB : 0);
  const frame = { width: width + room - 1, height: height + room - 1 };
  return svg("svg", { ...frame, viewBox: `${-room} ${-room} ${frame.width} ${frame.height}`, ...label },
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

const STUB = 14;

/** A task waits for one that is not drawn. */
function stub([x, y], { width, downwards }) {
  const d = downwards ? `M${x + width / 4} ${y - STUB}V${y}` : `M${x - STUB} ${y + HEIGHT / 4}H${x}`;
  return svg("g", { class: "arrow stub" }, svg("path", { d }));
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
