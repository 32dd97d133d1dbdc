// colibri setup writes, updates and removes this file.
// It reports what happens in OpenCode to `colibri hook`, one event after the other. Whatever goes
// wrong with that, OpenCode does not notice.
import { spawn } from "node:child_process";

const COMMAND = ["colibri", "hook"];
const PATIENCE = 3000; // milliseconds
const SESSION_EVENTS = ["session.created", "session.deleted", "session.idle", "session.compacted"];

function start(payload) {
  return new Promise((resolve) => {
    try {
      const [program, ...args] = COMMAND;
      const child = spawn(program, args, { stdio: ["pipe", "ignore", "ignore"] });
      const timer = setTimeout(() => child.kill("SIGKILL"), PATIENCE);
      const end = () => {
        clearTimeout(timer);
        resolve();
      };
      child.on("error", end);
      child.on("close", end);
      child.stdin.on("error", () => {});
      child.stdin.end(payload);
    } catch {
      resolve();
    }
  });
}

export const Colibri = async ({ directory }) => {
  const parents = {};
  let version = null;
  let last = Promise.resolve();

  function report(event, session, input, output) {
    try {
      const parent = parents[session] ?? null;
      const payload = { host: "opencode", version, directory, parent, event, input, output };
      const text = JSON.stringify(payload);
      last = last.then(() => start(text));
    } catch {
      // what cannot be written down is not reported
    }
    return last;
  }

  return {
    event: async ({ event }) => {
      if (!SESSION_EVENTS.includes(event?.type)) return;
      const { info, sessionID } = event.properties ?? {};
      if (info?.parentID) parents[info.id] = info.parentID;
      version = info?.version ?? version;
      await report("event", info?.id ?? sessionID, { event });
    },
    "chat.message": (input, output) => report("chat.message", input?.sessionID, input, output),
    "tool.execute.before": (input, output) =>
      report("tool.execute.before", input?.sessionID, input, output),
    "tool.execute.after": (input, output) =>
      report("tool.execute.after", input?.sessionID, input, output),
  };
};
