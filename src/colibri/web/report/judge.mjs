// verify(), next to the page: in a worker made of the page's own program, so that nothing freezes
// while a large bundle is checked. Where a browser does not let us have one, it runs in the page.

import { verify } from "../verify.mjs";
import { $ } from "./dom.mjs";

/** The verdict as plain data; `outside` is what the reader knows: {root, head, checkpoint}. */
export async function judge(bytes, outside) {
  try {
    return await askWorker({ bytes, outside });
  } catch {
    return (await verify(bytes, outside)).toJSON();
  }
}

function askWorker(question) {
  const program = new Blob([$("program").textContent], { type: "text/javascript" });
  const url = URL.createObjectURL(program);
  let worker = null;
  const answer = new Promise((resolve, reject) => {
    worker = new Worker(url);
    worker.onmessage = ({ data }) => (data.problem === undefined ? resolve(data.verdict) : reject(data));
    worker.onerror = reject;
    worker.postMessage(question);
  });
  return answer.finally(() => {
    worker?.terminate();
    URL.revokeObjectURL(url);
  });
}

/** What the program does when it is the worker. */
export function serve() {
  globalThis.onmessage = async ({ data: { bytes, outside } }) => {
    try {
      postMessage({ verdict: (await verify(bytes, outside)).toJSON() });
    } catch (problem) {
      postMessage({ problem: String(problem) });
    }
  };
}
