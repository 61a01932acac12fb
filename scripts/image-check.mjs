#!/usr/bin/env node
// `npm run image:check`: builds the Dockerfile with buildah and runs what came out, without a registry of images or a
// daemon: the base image is Debian from its own packages with this machine's Node, in place of node:20-bookworm-slim.
// Exit codes: 0 all as it should be, or no root filesystem can be made here (said in one sentence) · 1 not so · 2 usage.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { CannotBuild, prepare } from './image-check/base.mjs';
import { checkContents } from './image-check/contents.mjs';
import { checkRunning } from './image-check/running.mjs';
import { root, Store, say } from './image-check/store.mjs';
import { Table } from './image-check/table.mjs';

const usage =
  'Usage: node scripts/image-check.mjs [--base FILE.tar]   a root filesystem made before by mmdebstrap\n';

process.exitCode = await main();

async function main() {
  let base;
  try {
    base = parseArgs({ options: { base: { type: 'string' } } }).values.base;
  } catch (error) {
    process.stderr.write(`${error.message}\n${usage}`);
    return 2;
  }
  const dir = mkdtempSync(join(tmpdir(), 'trawl-image-'));
  const store = new Store(dir);
  const table = new Table();
  const cleanUp = () => {
    store.close();
    rmSync(dir, { recursive: true, force: true });
  };
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => {
      cleanUp();
      process.exit(1);
    });
  }
  try {
    const image = await table.timed('base image', () => prepare(store, base));
    await table.timed('image', () => build(store, image));
    const container = store.container('localhost/trawl-check');
    checkContents(container, table);
    await checkRunning(store, container, table);
  } catch (error) {
    if (error instanceof CannotBuild) {
      process.stdout.write(
        `The image was not built: no root filesystem can be made here, ${error.message}.\n`,
      );
      return 0;
    }
    table.add('ended early', false, error.message);
  } finally {
    cleanUp();
  }
  process.stdout.write(table.text());
  return table.ok ? 0 : 1;
}

function build(store, image) {
  say('Building the Dockerfile with buildah.');
  // The format that knows HEALTHCHECK.
  store.buildah(
    'bud',
    '--format',
    'docker',
    '--build-arg',
    `NODE_IMAGE=${image}`,
    '-t',
    'localhost/trawl-check',
    root,
  );
  const size = store.size('localhost/trawl-check');
  const ours = size - store.size(image);
  return `${megabytes(size)}, ${megabytes(ours)} of it on top of the base`;
}

function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(0)} MB`;
}
