import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';

/** A process, told apart from a later one that got the same pid, and from one on another machine or container. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, in whatever unit the system gives; '' when unknown. */
  readonly started: string;
  readonly host: string;
}

export function identify(pid: number): ProcessIdentity {
  return { pid, started: startOf(pid) ?? '', host: hostname() };
}

/** `elsewhere`: it lives (or lived) where we cannot look. */
export function stateOf(who: ProcessIdentity): 'alive' | 'dead' | 'elsewhere' {
  if (who.host !== hostname()) return 'elsewhere';
  const started = startOf(who.pid);
  if (started === null) return 'dead';
  return started === who.started || who.started === '' ? 'alive' : 'dead';
}

/** null when there is no such process (a zombie is none). Reads /proc where there is one, else asks ps. */
function startOf(pid: number): string | null {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return null;
  }
  if (process.platform === 'linux') {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      // The command name in the second field may hold spaces and parentheses: count from its end.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return fields[0] === 'Z' || fields[0] === 'X' ? null : (fields[19] ?? '');
    } catch {
      return null;
    }
  }
  try {
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || null;
  } catch {
    return null;
  }
}

/** Reads what `JSON.stringify(identity)` wrote; null for anything else. */
export function parseIdentity(value: unknown): ProcessIdentity | null {
  if (typeof value !== 'object' || value === null) return null;
  const { pid, started, host } = value as Record<string, unknown>;
  // process.kill(0) and negative pids mean process groups.
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 0) return null;
  if (typeof started !== 'string' || typeof host !== 'string') return null;
  return { pid, started, host };
}
