// Answers what the shared part of the clients makes of texts, tool paths and messages.
// Argument: the module. Each input line: {"texts": [...], "tools": [[value, cwd]...], "contents": [...]}.
// {"slow": [[piece, tail]...]} measures instead: processor time (ms) of 40,000 and of 320,000 characters.

import { createInterface } from "node:readline";

const { candidatesInText, canBeCard, textOf, toolPath } = await import(process.argv[2]);

function cpuMs(text, limit) {
  let best = Infinity;
  for (let run = 0; run < 5 && best > limit; run++) {
    const begun = process.cpuUsage();
    candidatesInText(text);
    const used = process.cpuUsage(begun);
    best = Math.min(best, (used.user + used.system) / 1000);
  }
  return best;
}

function measure([piece, tail]) {
  const size = Math.floor(40000 / piece.length);
  const small = cpuMs(piece.repeat(size) + tail, 0);
  return [small, cpuMs(piece.repeat(size * 8) + tail, small * 24)];
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  const answer = {
    texts: (asked.texts ?? []).map((text) => candidatesInText(text)),
    cards: (asked.cards ?? []).map((path) => canBeCard(path)),
    tools: (asked.tools ?? []).map(([value, cwd]) => toolPath(value, cwd) ?? null),
    contents: (asked.contents ?? []).map((content) => textOf(content)),
    slow: (asked.slow ?? []).map(measure),
  };
  console.log(JSON.stringify(answer));
}
