// Drive the plugin for OpenCode as OpenCode does: one call of each of its hooks.
// Prints the system prompt that the plugin makes of an empty one.
import { pathToFileURL } from "node:url";

const { Colibri } = await import(pathToFileURL(process.argv[2]));
const hooks = await Colibri({ directory: "/project" });
const info = { id: "ses_1", parentID: "ses_0", version: "1.2.3" };
const on = (type, properties) => hooks.event({ event: { type, properties } });
const input = { sessionID: "ses_1", tool: "bash", callID: "call_1" };
const circular = {};
circular.itself = circular;

await hooks.event({ event: { type: "message.updated", properties: {} } });
await on("session.created", { sessionID: "ses_1", info });
await on("session.deleted", { sessionID: "ses_1", info });
await on("session.idle", { sessionID: "ses_1" });
await on("session.compacted", { sessionID: "ses_1" });
await hooks["tool.execute.after"](input, circular);
for (const name of ["chat.message", "tool.execute.before", "tool.execute.after"])
  await hooks[name](input, { parts: [] });

const system = [];
await hooks["experimental.chat.system.transform"]({ sessionID: "ses_1" }, { system });
await hooks["experimental.chat.system.transform"]({}, {});
console.log(JSON.stringify(system));
