// mdello for Pi: tells the companion which cards each session works on, and what it is doing.
// Pi loads this file as an extension. It only listens: it changes no input and no tool, prints
// nothing, and does without the companion when there is none. MDELLO_COMPANION_URL says where that is.

import os from "node:os";
import { fileURLToPath } from "node:url";
import { candidatesInText, endpointOf, publisherOf, textOf, toolPath } from "../client/companion.js";

const SHUTDOWN_MS = 1000; // All that a companion that hangs can cost, once, when Pi ends.
const SETTLE_MS = 100;
const STILL_BUSY_MS = 1000;
const RETRY_MS = 10000; // Longer than Pi waits before it tries a failed request again (8 s).
const MAX_HELD = 1000;
const ODD_BLANKS = /[\u00a0\u2000-\u200a\u202f\u205f\u3000]/g;

/** Called by Pi for each session of the process, so what is declared inside belongs to one session. */
export default function (pi) {
  const publisher = publisherOf(endpointOf(process.env), "pi");
  let over = false; // After session_shutdown: what still comes says nothing.
  let running = false; // Between agent_start and agent_end.
  let settles = false; // This Pi has agent_settled; 0.7x has not.
  let settling; // The timer that stands in for it, and whose session it is.
  let held = []; // Paths of prompts that may have been refused.
  let asking = false; // A dialog is open.
  let settled = false; // Meanwhile a run has settled.

  const session = (ctx) =>
    publisher.session(ctx.sessionManager.getSessionId(), ctx.sessionManager.getSessionFile());

  const on = (name, act) => {
    pi.on(name, (event, ctx) => {
      try {
        if (!over || name === "session_start") return act(event, ctx);
      } catch {
        // Whatever Pi hands over, its run goes on.
      }
    });
  };

  const stopSettling = () => {
    clearTimeout(settling?.timer);
    settling = undefined;
  };

  const settleLater = (link, ctx, pauseMs) => {
    stopSettling();
    const look = () => {
      try {
        if (!ctx.isIdle()) return settleLater(link, ctx, STILL_BUSY_MS);
        settling = undefined;
        link.set("ready_for_review");
      } catch {
        // The session was replaced meanwhile.
      }
    };
    settling = { link, timer: setTimeout(look, pauseMs) };
    settling.timer.unref();
  };

  on("session_start", (event, ctx) => {
    over = false;
    session(ctx).set("idle");
    session(ctx).add(pathsIn(ctx.sessionManager.getBranch(), ctx.cwd));
  });

  on("session_tree", (event, ctx) => session(ctx).add(pathsIn(ctx.sessionManager.getBranch(), ctx.cwd)));

  on("input", (event, ctx) => {
    const paths = candidatesInText(textOf(event.text));
    // While Pi is busy, a prompt that does not say how to be queued is refused, or (0.7x) queued all
    // the same: it counts when its message arrives.
    if (ctx.isIdle() || event.streamingBehavior) session(ctx).add(paths);
    else held = held.concat(paths).slice(-MAX_HELD);
  });

  on("message_start", (event, ctx) => {
    if (held.length === 0 || event.message?.role !== "user") return;
    const text = textOf(event.message.content);
    session(ctx).add(held.filter((path) => text.includes(path)));
    held = held.filter((path) => !text.includes(path));
  });

  on("tool_result", (event, ctx) => {
    if (!modifies(event.toolName) || event.isError) return;
    session(ctx).add([cardOf(event.input?.path, ctx.cwd)]);
  });

  on("agent_start", (event, ctx) => {
    running = true;
    stopSettling();
    session(ctx).set("running");
  });

  on("agent_end", (event, ctx) => {
    running = false;
    if (settles) return;
    // Pi 0.7x says no more than this, and may go on by itself: soon, or after a failed request.
    const failed = Array.isArray(event.messages) && event.messages.at(-1)?.stopReason === "error";
    settleLater(session(ctx), ctx, failed ? RETRY_MS : SETTLE_MS);
  });

  on("agent_settled", (event, ctx) => {
    settles = true;
    stopSettling();
    if (running && !ctx.isIdle()) return;
    settled = asking;
    if (!asking) session(ctx).set("ready_for_review");
  });

  on("ui_prompt_start", (event, ctx) => {
    asking = true;
    session(ctx).set("waiting_for_input");
  });

  on("ui_prompt_end", (event, ctx) => {
    const rest = settled ? "ready_for_review" : "idle";
    asking = settled = false;
    session(ctx).set(ctx.isIdle() ? rest : "running");
  });

  on("session_shutdown", (event, ctx) => {
    over = true;
    settling?.link.set("ready_for_review");
    stopSettling();
    session(ctx).set("closed");
    // The process lives on when one session follows another, and the queue with it.
    if (["reload", "new", "resume", "fork"].includes(event.reason)) return;
    return publisher.flush(SHUTDOWN_MS);
  });
}

const modifies = (tool) => tool === "edit" || tool === "write";

/** The path of a tool call as Pi itself reads it: odd blanks are plain ones, an @ in front goes, ~ is the home. */
function cardOf(value, cwd) {
  if (typeof value !== "string") return undefined;
  const plain = value.replace(ODD_BLANKS, " ").replace(/^@/, "");
  if (plain.startsWith("~/")) return toolPath(os.homedir() + plain.slice(1));
  if (!plain.startsWith("file://")) return toolPath(plain, cwd);
  try {
    return toolPath(fileURLToPath(plain));
  } catch {
    return undefined;
  }
}

/** What a session's entries name: the user's texts first, then what was edited or written for sure. */
function pathsIn(entries, cwd) {
  const messages = entries.filter((entry) => entry?.type === "message").map((entry) => entry.message ?? {});
  const named = [];
  const calls = [];
  const done = new Set();
  for (const { role, content, toolCallId, toolName, isError, nestedCalls } of messages) {
    if (role === "user") named.push(...candidatesInText(textOf(content)));
    if (role === "assistant" && Array.isArray(content)) calls.push(...content.filter(isToolCall));
    if (role !== "toolResult") continue;
    if (modifies(toolName) && isError !== true) done.add(toolCallId);
    // A script that the model had run (codemode) calls tools by itself; its result lists them.
    for (const call of Array.isArray(nestedCalls?.calls) ? nestedCalls.calls : []) {
      if (call?.status !== "ok") continue;
      calls.push(call);
      done.add(call.id);
    }
  }
  const edits = calls.filter((call) => modifies(call.name) && done.has(call.id));
  return [...named, ...edits.map((call) => cardOf(call.arguments?.path, cwd))];
}

const isToolCall = (block) => block?.type === "toolCall" && typeof block.id === "string";
