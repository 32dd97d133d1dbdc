// colibri setup writes, updates and removes this file.
// It reports what happens in OpenCode to `colibri hook`, one event after the other, and puts the brief
// that this answers to a new session into the system prompt. Whatever goes wrong with that, OpenCode
// does not notice.
import { spawn } from "node:child_process";

const COMMAND = ["colibri", "hook"];
const PATIENCE = 3000; // milliseconds
const LONGEST = 65536; // characters of an answer
const SESSION_EVENTS = ["session.created", "session.deleted", "session.idle", "session.compacted"];

function start(payload) {
  return new Promise((resolve) => {
    let answer = "";
    try {
      const [program, ...args] = COMMAND;
      const child = spawn(program, args, { stdio: ["pipe", "pipe", "ignore"] });
      const timer = setTimeout(() => child.kill("SIGKILL"), PATIENCE);
      const end = () => {
        clearTimeout(timer);
        resolve(answer);
      };
      child.on("error", end);
      child.on("close", end);
      child.stdin.on("error", () => {});
      child.stdout.on("error", () => {});
      child.stdout.setEncoding("utf8");
      child.stdout.on("data", (text) => {
        answer = (answer + text).slice(0, LONGEST);
      });
      child.stdin.end(payload);
    } catch {
      resolve(answer);
    }
  });
}

function brief(answer) {
  try {
    return JSON.parse(answer).additionalContext;
  } catch {
    return null; // it said nothing
  }
}

export const Colibri = async ({ directory }) => {
  const parents = {};
  const briefs = {};
  let version = null;
  let last = Promise.resolve();

  function report(event, session, input, output) {
    try {
      const parent = parents[session] ?? null;
      const payload = { host: "opencode", version, directory, parent, event, input, output };
      const text = JSON.stringify(payload);
      last = last.then(() => start(text));
      return last;
    } catch {
      return Promise.resolve(""); // what cannot be written down is not reported
    }
  }

  return {
    event: async ({ event }) => {
      if (!SESSION_EVENTS.includes(event?.type)) return;
      const { info, sessionID } = event.properties ?? {};
      if (info?.parentID) parents[info.id] = info.parentID;
      version = info?.version ?? version;
      const answer = report("event", info?.id ?? sessionID, { event });
      if (event.type === "session.created") briefs[info?.id] = answer.then(brief);
      await answer;
    },
    "experimental.chat.system.transform": async (input, output) => {
      const text = await briefs[input?.sessionID];
      if (typeof text === "string" && Array.isArray(output?.system)) output.system.push(text);
    },
    "chat.message": (input, output) => report("chat.message", input?.sessionID, input, output),
    "tool.execute.before": (input, output) =>
      report("tool.execute.before", input?.sessionID, input, output),
    "tool.execute.after": (input, output) =>
      report("tool.execute.after", input?.sessionID, input, output),
  };
};
