// Whether patterns take longer than their texts grow: [source, flags, before, body] as JSON on stdin,
// what is too slow about each, or null, on stdout. The same judge as tests/support/patterns.py.

import { readFileSync, writeFileSync } from "node:fs";

const LADDER = [16, 24, 32, 48, 64, 128, 256, 1024, 4096];
const SIZE = 16 * 1024;
const [SMALL, SURE, GROWTH, LONG] = [20, 2, 9, 2000]; // ms, ms, times, ms

function slow([source, flags, before, body]) {
  const pattern = new RegExp(source, [...new Set([...flags, "g"])].filter((f) => f !== "y").join(""));
  const takes = (size, enough) => {
    const text = `${before}${body.repeat(Math.ceil(size / body.length)).slice(0, size)}\0`;
    let [best, spent] = [Infinity, 0];
    for (let turn = 0; turn < 3 && best >= enough && spent < LONG; turn += 1) {
      const start = process.cpuUsage();
      text.replace(pattern, "");
      const took = process.cpuUsage(start).user / 1000;
      [best, spent] = [Math.min(best, took), spent + took];
    }
    return best;
  };
  for (const size of LADDER) {
    const took = takes(size, SMALL);
    if (took > SMALL) return `${size} characters took ${took} ms`;
  }
  const short = takes(SIZE, SURE);
  if (short < SURE) return null;
  const long = takes(4 * SIZE, GROWTH * short);
  return long < GROWTH * short ? null : `${SIZE} characters took ${short} ms, four times as many ${long} ms`;
}

writeFileSync(1, JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(slow)));
