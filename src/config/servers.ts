import type { ServerConfig, ToolConfig } from '../config.js';
import { mcpToolName } from '../scrape/tool-name.js';
import type { Path } from './problem.js';
import type { RawConfig } from './schema.js';
import { guard } from './secrets.js';

type Report = (path: Path, message: string) => void;
type RawServer = RawConfig['servers'][string];

const serverName = /^[a-z0-9][a-z0-9-]{0,31}$/;

export function isServerName(name: string): boolean {
  return serverName.test(name);
}

/** A server with its allow-list by Actor name; what does not fit together is reported. */
export function readServer(name: string, raw: RawServer, report: Report): ServerConfig {
  const path = ['servers', name];
  const server: ServerConfig = {
    name,
    profile: raw.profile,
    url: raw.url,
    token: raw.token,
    via: raw.via,
    tools: readTools(raw, path, report),
    limits: {
      runs: raw.limits.runs,
      requestsPerSecond: raw.limits.requestsPerSecond,
      memoryMb: raw.limits.memoryMb ?? null,
    },
  };
  return guard(server, ['token']);
}

function readTools(raw: RawServer, path: Path, report: Report): Record<string, ToolConfig> {
  // Without a prototype: a job's tool is looked up here.
  const tools: Record<string, ToolConfig> = Object.create(null);
  const toolNames = new Map<string, string>();
  raw.tools.forEach((tool, index) => {
    const at = [...path, 'tools', index];
    const twin = toolNames.get(mcpToolName(tool.name));
    if (twin !== undefined) {
      report(at, `expected each tool once, found "${tool.name}" beside "${twin}"`);
      return;
    }
    toolNames.set(mcpToolName(tool.name), tool.name);
    const cap = raw.limits.memoryMb;
    if (tool.memory !== undefined && cap !== undefined && tool.memory > cap) {
      report(
        [...at, 'memory'],
        `expected at most limits.memoryMb of the server, ${cap}, found ${tool.memory}`,
      );
    }
    tools[tool.name] = {
      name: tool.name,
      deadlineMs: tool.deadline ?? null,
      memory: tool.memory ?? null,
      minItems: tool.minItems ?? null,
      price: tool.price ?? null,
    };
  });
  return tools;
}
