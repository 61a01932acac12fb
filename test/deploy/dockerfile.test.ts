import { describe, expect, it } from 'vitest';
import { read } from './support.js';

const dockerfile = read('Dockerfile');
const last = dockerfile.slice(dockerfile.lastIndexOf('FROM '));
const line = (word: string): string => last.split('\n').find((each) => each.startsWith(`${word} `)) ?? '';

describe('Dockerfile', () => {
  it('builds in one stage and runs in another, both from one pinned image that can be replaced', () => {
    expect(dockerfile.match(/^FROM .+$/gm)).toEqual([`FROM \${NODE_IMAGE} AS build`, `FROM \${NODE_IMAGE}`]);
    expect(dockerfile).toMatch(/^ARG NODE_IMAGE=node:\d+\.\d+\.\d+-bookworm-slim$/m);
    const engine = (JSON.parse(read('package.json')) as { engines: { node: string } }).engines.node;
    expect(engine).toMatch(/^>=20\./);
    expect(dockerfile).toMatch(/^ARG NODE_IMAGE=node:20\./m);
  });

  it('runs as a user that is not root, by number, since Kubernetes knows no names', () => {
    expect(line('USER')).toMatch(/^USER [1-9]\d*:[1-9]\d*$/);
  });

  it('starts trawl behind a process that hands signals on, in exec form', () => {
    expect(JSON.parse(line('ENTRYPOINT').slice('ENTRYPOINT '.length))).toEqual([
      '/usr/bin/tini',
      '--',
      'trawl',
    ]);
    expect(JSON.parse(line('CMD').slice('CMD '.length))).toEqual(['work']);
    expect(line('STOPSIGNAL')).toBe('STOPSIGNAL SIGTERM');
  });

  it('asks for health where the worker serves it', () => {
    expect(last).toMatch(/^HEALTHCHECK .*\\\n {2}CMD \["node", "-e", ".*\/healthz/m);
    expect(line('EXPOSE')).toBe('EXPOSE 9464');
  });

  it('copies into the build everything it compiles, and nothing secret', () => {
    const { include } = JSON.parse(read('tsconfig.build.json')) as { include: string[] };
    for (const path of include) expect(dockerfile).toContain(`COPY ${path} ${path}`);
    const ignored = read('.dockerignore').split('\n');
    expect(ignored[0]).toBe('**');
    for (const path of include) expect(ignored).toContain(`!${path}`);
  });
});
