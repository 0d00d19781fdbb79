// Reports the sessions of opencode to Recollect, and puts relevant memories before a prompt.
// `recollect install opencode` wrote this file, and `recollect uninstall opencode` removes it.

import { spawn } from "node:child_process"

const COMMANDS = {}
const LIMIT = 3000 // milliseconds that opencode waits for a hook

/** Run the command of an event, and return the context that it answers: an empty text where there is none. */
function report(event, fields) {
  return new Promise((resolve) => {
    if (!COMMANDS[event]) return resolve("")
    const child = spawn(COMMANDS[event], { shell: true, stdio: ["pipe", "pipe", "ignore"], windowsHide: true })
    const timer = setTimeout(() => child.kill(), LIMIT)
    let said = ""
    child.stdout.on("data", (part) => (said += part))
    child.stdin.on("error", () => {})
    child.on("error", () => resolve(""))
    child.on("close", () => {
      clearTimeout(timer)
      resolve(contextIn(said))
    })
    child.stdin.end(JSON.stringify({ opencode: 1, hook_event_name: event, ...fields }))
  })
}

function contextIn(said) {
  try {
    return JSON.parse(said).context ?? ""
  } catch {
    return ""
  }
}

function textOf(parts) {
  const texts = parts.filter((one) => one.type === "text" && !one.synthetic && !one.ignored)
  return texts.map((one) => one.text).join("\n")
}

async function server({ client, directory }) {
  const sessions = new Map() // what is known of each session: who speaks in it, and what was said last

  const session = (id) => {
    if (!sessions.has(id)) sessions.set(id, { begun: false, inner: false, asked: false, speaker: {}, said: "", context: "" })
    return sessions.get(id)
  }
  const of = (id, fields) => ({ session_id: id, cwd: directory, ...fields })

  const begin = async (id) => {
    const known = session(id)
    if (known.begun) return
    known.begun = true
    known.context = await report("SessionStart", of(id, { source: "startup" }))
  }

  const stop = async (id, leaving = false) => {
    const known = session(id)
    const text = known.said
    known.said = ""
    const asked = known.asked || leaving
    known.asked = false
    const found = text && (await report("Stop", of(id, { last_assistant_message: text, stop_hook_active: asked })))
    if (!found) return
    known.asked = true
    const body = { ...known.speaker, parts: [{ type: "text", text: found, synthetic: true }] }
    client.session.prompt({ path: { id }, query: { directory }, body }).catch(() => {}) // it takes as long as the turn
  }

  const end = async (id, reason) => {
    const known = sessions.get(id)
    sessions.delete(id)
    if (known?.begun) await report("SessionEnd", of(id, { reason }))
  }

  const happened = {
    "session.created": async ({ info }) => {
      session(info.id).inner = Boolean(info.parentID) // a subagent's, in which no person speaks
    },
    "session.idle": async ({ sessionID }) => stop(sessionID),
    "session.compacted": async ({ sessionID }) => {
      session(sessionID).context = await report("SessionStart", of(sessionID, { source: "compact" }))
    },
    "session.deleted": async ({ info }) => end(info.id, "deleted"),
  }

  return {
    event: async ({ event }) => happened[event.type]?.(event.properties),

    "chat.message": async ({ sessionID }, { message, parts }) => {
      const known = session(sessionID)
      const prompt = textOf(parts)
      if (known.inner || !prompt) return
      known.speaker = { agent: message.agent, model: message.model } // else a plan would go on as a build
      await begin(sessionID)
      const found = await report("UserPromptSubmit", of(sessionID, { prompt }))
      const text = [known.context, found].filter(Boolean).join("\n\n")
      known.context = ""
      if (!text) return
      const id = `${parts.at(-1).id}r` // behind the last part, as parts are in the order of their ids
      parts.push({ id, sessionID, messageID: message.id, type: "text", text, synthetic: true })
    },

    "tool.execute.after": async ({ tool, sessionID, args }, output) => {
      if (session(sessionID).inner) return
      const answer = { output: output.output ?? output.content, exit_code: output.metadata?.exit }
      const text = await report("PostToolUse", of(sessionID, { tool_name: tool, tool_input: args, tool_response: answer }))
      if (text && typeof output.output === "string") output.output += `\n\n${text}`
    },

    "experimental.text.complete": async ({ sessionID }, { text }) => {
      if (!session(sessionID).inner) session(sessionID).said = text
    },

    "experimental.session.compacting": async ({ sessionID }) => {
      if (!session(sessionID).inner) await report("PreCompact", of(sessionID, {}))
    },

    dispose: async () => {
      for (const id of [...sessions.keys()]) {
        await stop(id, true)
        await end(id, "exit")
      }
    },
  }
}

export default { id: "recollect", server }
