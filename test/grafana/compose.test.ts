import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const root = fileURLToPath(new URL('../..', import.meta.url));
const composeText = readFileSync(join(root, 'docker-compose.yml'), 'utf8');
const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8');

interface Service {
  image?: string;
  user?: string;
  healthcheck?: object;
  command?: string[];
  build?: object;
  cpus?: number;
  mem_limit?: string;
  profiles?: string[];
  ports?: string[];
  volumes?: (string | { type: string; source: string })[];
}
const services = parse(composeText).services as Record<string, Service>;

describe('docker-compose.yml', () => {
  it('passes dclint without a warning', () => {
    const lint = spawnSync(
      join(root, 'node_modules/.bin/dclint'),
      ['--max-warnings', '0', 'docker-compose.yml'],
      {
        cwd: root,
        encoding: 'utf8',
      },
    );
    expect(lint.stdout + lint.stderr).not.toMatch(/error|warning/);
    expect(lint.status).toBe(0);
  });

  it.each(Object.entries(services))(
    '%s is pinned, checked, not root, and open to this machine alone',
    (_name, service) => {
      // The user and health check of what is built here stand in the image.
      if (service.build === undefined) {
        expect(service.image).toMatch(/:v?\d+\.\d+\.\d+/);
        expect(service.user).toMatch(/^[1-9]\d*:/);
        expect(service.healthcheck).toBeDefined();
      }
      expect(service.cpus).toBeGreaterThan(0);
      expect(service.mem_limit).toMatch(/^\d+[mg]$/);
      for (const port of service.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:/);
    },
  );

  it('keeps what Redis holds: append-only file, no eviction, a volume', () => {
    const command = services.redis?.command?.join(' ');
    expect(command).toContain('--appendonly yes');
    expect(command).toContain('--maxmemory-policy noeviction');
    expect(services.redis?.volumes).toEqual(['redis-data:/data']);
  });

  it('starts the simulator for a demo only, and looks after its health', () => {
    const { sim } = services;
    expect(sim?.profiles).toEqual(['demo']);
    expect(sim?.command?.slice(0, 3)).toEqual(['node', 'dist/src/cli/bin.js', 'sim']);
    expect(sim?.healthcheck).toBeDefined();
    const others = Object.entries(services).filter(([name]) => name !== 'sim');
    for (const [name, service] of others) expect(service.profiles, name).toBeUndefined();
  });

  it('lets Redis refuse writes before its container is killed', () => {
    const bytes = (text = '') => Number.parseInt(text, 10) * (/g/.test(text) ? 1024 : 1);
    const { redis } = services;
    const maxmemory = redis?.command?.[(redis.command.indexOf('--maxmemory') ?? 0) + 1];
    expect(bytes(maxmemory)).toBeGreaterThan(0);
    expect(bytes(redis?.mem_limit)).toBeGreaterThanOrEqual(2 * bytes(maxmemory));
  });

  it('holds no password or token, and no default for one', () => {
    const secrets = composeText.split('\n').filter((line) => /(PASSWORD|TOKEN|SECRET)\b.*:/.test(line));
    expect(secrets.length).toBeGreaterThan(0);
    for (const line of secrets) expect(line).toMatch(/\$\{[A-Z_]+:\?/);
  });

  it('mounts only what the repository has, the configuration aside', () => {
    const mounts = Object.values(services).flatMap(({ volumes = [] }) => volumes);
    const sources = mounts.flatMap((each) => (typeof each === 'string' ? [each.split(':')[0] ?? ''] : []));
    for (const source of sources.filter((each) => each.startsWith('./'))) {
      expect(existsSync(join(root, source)), source).toBe(true);
    }
  });
});

describe('Dockerfile', () => {
  it('builds in one stage and runs in another, from a pinned image, as a user that is not root', () => {
    const from = dockerfile.match(/^FROM .+$/gm) ?? [];
    expect(from).toHaveLength(2);
    for (const line of from) expect(line).toMatch(/^FROM node:\d+\.\d+\.\d+-\S*slim/);
    const last = dockerfile.slice(dockerfile.lastIndexOf('FROM '));
    expect(last).toMatch(/^USER node$/m);
    expect(last).toContain('CMD ["node", "dist/src/cli/bin.js", "work"]');
    expect(last).toMatch(/^HEALTHCHECK /m);
  });

  it('copies into the build everything it compiles, and nothing secret', () => {
    const { include } = JSON.parse(readFileSync(join(root, 'tsconfig.build.json'), 'utf8')) as {
      include: string[];
    };
    for (const path of include) expect(dockerfile).toContain(`COPY ${path} ${path}`);
    const ignored = readFileSync(join(root, '.dockerignore'), 'utf8').split('\n');
    expect(ignored[0]).toBe('**');
    for (const path of include) expect(ignored).toContain(`!${path}`);
  });
});
