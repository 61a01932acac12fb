/** The configured server a public job's raw data names, or the only one; null when it names none of ours. */
export function parseServer(raw: string | null, servers: readonly string[]): string | null {
  if (raw === null) return servers.length === 1 ? (servers[0] ?? null) : null;
  try {
    const data: unknown = JSON.parse(raw);
    const server =
      typeof data === 'object' && data !== null ? (data as { server?: unknown }).server : undefined;
    if (typeof server === 'string') return servers.includes(server) ? server : null;
  } catch {
    return null;
  }
  return servers.length === 1 ? (servers[0] ?? null) : null;
}
