import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createProgram } from '../../src/cli/main.js';
import { parseDuration } from '../../src/scrape/duration.js';
import { loadDeployed, longestStopMs } from './support.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const composeText = readFileSync(join(root, 'docker-compose.yml'), 'utf8');

interface Bind {
  readonly source: string;
  readonly target: string;
  readonly bind: { readonly create_host_path: boolean };
}
interface Service {
  image?: string;
  user?: string;
  healthcheck?: { test: string[] };
  command?: string[];
  build?: object;
  cap_drop?: string[];
  container_name?: string;
  cpus?: number;
  environment?: Record<string, string>;
  expose?: string[];
  logging?: object;
  mem_limit?: string;
  networks?: string[];
  pids_limit?: number;
  profiles?: string[];
  ports?: string[];
  read_only?: boolean;
  restart?: string;
  secrets?: string[];
  security_opt?: string[];
  stop_grace_period?: string;
  volumes?: (string | Bind)[];
}
const compose = parse(composeText) as {
  services: Record<string, Service>;
  networks: Record<string, { internal?: boolean } | null>;
  secrets: Record<string, { file: string }>;
};
const { services } = compose;
const service = (name: string): Service => services[name] ?? {};

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

  it('has the parts that belong together', () => {
    expect(Object.keys(services)).toEqual([
      'alertmanager',
      'grafana',
      'prometheus',
      'redis',
      'sim',
      'worker',
    ]);
  });

  it.each(Object.entries(services))(
    '%s is pinned, checked, bounded, not root, and open to this machine alone',
    (_name, each) => {
      // The user and health check of what is built here stand in the image.
      if (each.build === undefined) {
        expect(each.image).toMatch(/:v?\d+\.\d+\.\d+/);
        expect(each.user).toMatch(/^[1-9]\d*:/);
        expect(each.healthcheck).toBeDefined();
      }
      expect(each.cpus).toBeGreaterThan(0);
      expect(each.mem_limit).toMatch(/^\d+[mg]$/);
      expect(each.pids_limit).toBeGreaterThan(0);
      expect(each.logging).toMatchObject({ options: { 'max-size': expect.stringMatching(/^\d+m$/) } });
      expect(each.cap_drop).toEqual(['ALL']);
      expect(each.security_opt).toEqual(['no-new-privileges:true']);
      expect(each.restart).toBe('unless-stopped');
      for (const port of each.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:/);
    },
  );

  it('keeps what Redis holds: append-only file, no eviction, a volume', () => {
    const command = service('redis').command?.join(' ');
    expect(command).toContain('--appendonly yes');
    expect(command).toContain('--maxmemory-policy noeviction');
    expect(service('redis').volumes).toEqual(['redis-data:/data']);
  });

  it('lets nobody but workers reach Redis, which has no password', () => {
    expect(compose.networks.queue).toEqual({ internal: true });
    expect(service('redis').networks).toEqual(['queue']);
    expect(service('redis').ports).toBeUndefined();
    const inQueue = Object.entries(services).filter(([, { networks = [] }]) => networks.includes('queue'));
    expect(inQueue.map(([name]) => name)).toEqual(['redis', 'worker']);
  });

  it('lets Redis refuse writes before its container is killed', () => {
    const bytes = (text = '') => Number.parseInt(text, 10) * (/g/.test(text) ? 1024 : 1);
    const redis = service('redis');
    const maxmemory = redis.command?.[(redis.command.indexOf('--maxmemory') ?? 0) + 1];
    expect(bytes(maxmemory)).toBeGreaterThan(0);
    expect(bytes(redis.mem_limit)).toBeGreaterThanOrEqual(2 * bytes(maxmemory));
  });

  it('can have many workers: no name, no port of the host, and Prometheus asks for every address', () => {
    const worker = service('worker');
    expect(worker.container_name).toBeUndefined();
    expect(worker.ports).toBeUndefined();
    expect(worker.networks).toContain('default');
    const prometheus = parse(readFileSync(join(root, 'grafana/prometheus/prometheus.yml'), 'utf8'));
    const job = prometheus.scrape_configs.find(({ job_name }: { job_name: string }) => job_name === 'trawl');
    expect(job.static_configs).toBeUndefined();
    expect(job.dns_sd_configs).toMatchObject([
      { names: ['worker'], type: 'A', port: Number(worker.expose?.[0]) },
    ]);
  });

  it('leaves a worker the time that it may take to stop', () => {
    const grace = parseDuration(service('worker').stop_grace_period);
    expect(grace).toBeGreaterThan(longestStopMs(loadDeployed('compose/trawl.yaml')));
  });

  it('starts the simulator for a demo only, with a command there is, and looks after its health', async () => {
    const sim = service('sim');
    expect(sim.profiles).toEqual(['demo']);
    const [name, ...rest] = sim.command ?? [];
    const command = (await createProgram()).commands.find((each) => each.name() === name);
    expect(command?.options.map(({ long }) => long)).toEqual(
      expect.arrayContaining(rest.filter((each) => each.startsWith('--'))),
    );
    expect(sim.healthcheck).toBeDefined();
    const demo = loadDeployed('compose/demo.yaml').servers.apify;
    expect(demo?.url).toBe(`http://sim:${rest[rest.indexOf('--port') + 1]}`);
    const others = Object.entries(services).filter(([each]) => each !== 'sim');
    for (const [each, { profiles }] of others) expect(profiles, each).toBeUndefined();
  });

  it('has secrets from files alone, handed to those who need them', () => {
    expect(composeText).not.toMatch(/^\s*\S*(PASSWORD|TOKEN|SECRET)(?!__FILE\b|_FILE\b)\S*:/m);
    for (const { file } of Object.values(compose.secrets)) {
      expect(file).toMatch(/^\$\{[A-Z_]+_FILE:-\.\/secrets\/[a-z-]+\}$/);
    }
    expect(readFileSync(join(root, '.gitignore'), 'utf8').split('\n')).toContain('/secrets/');
    const given = Object.entries(services).filter(([, { secrets }]) => secrets !== undefined);
    expect(given.map(([name, { secrets }]) => [name, secrets])).toEqual([
      ['grafana', ['grafana-password']],
      ['worker', ['apify-token', 'http-token']],
    ]);
    expect(service('grafana').environment?.GF_SECURITY_ADMIN_PASSWORD__FILE).toBe(
      '/run/secrets/grafana-password',
    );
  });

  it('sets nothing by environment that the configuration does not know', () => {
    const { config, environment } = loadWith(service('worker').environment ?? {});
    expect(Object.keys(environment)).toEqual(['TRAWL_HTTP__HOST', 'TRAWL_REDIS__URL', 'TRAWL_RESULTS__DIR']);
    expect(config.redis.url).toBe('redis://redis:6379');
    expect(service('worker').volumes).toContain(`results:${config.results.dir}`);
  });

  it('mounts only what the repository has, the configuration aside, and never makes a folder of a missing file', () => {
    const mounts = Object.values(services).flatMap(({ volumes = [] }) => volumes);
    const sources = mounts.flatMap((each) => (typeof each === 'string' ? [each.split(':')[0] ?? ''] : []));
    for (const source of sources.filter((each) => each.startsWith('./'))) {
      expect(existsSync(join(root, source)), source).toBe(true);
    }
    const binds = mounts.filter((each) => typeof each !== 'string');
    expect(binds.map(({ source }) => source)).toEqual([
      `\${ALERTMANAGER_CONFIG:-./grafana/prometheus/alertmanager.yml}`,
      `\${WORKER_CONFIG:-./trawl.yaml}`,
    ]);
    for (const each of binds) expect(each.bind.create_host_path).toBe(false);
  });
});

function loadWith(environment: Record<string, string>) {
  return { environment, config: loadDeployed('compose/trawl.yaml', environment) };
}
