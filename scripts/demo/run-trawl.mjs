import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { root } from './build.mjs';

/** npm passes on the Ctrl-C that the terminal has sent already: one press must not count as two. */
const samePressMs = 500;

/** Runs one command of Trawl in a folder, its output ours. Ctrl-C and other signals are passed on. */
export function runTrawl(folder, args) {
  return new Promise((resolve, reject) => {
    // A process group of its own, so that the terminal's Ctrl-C reaches it through us alone, once.
    const child = spawn(process.execPath, [join(root, 'dist/src/cli/bin.js'), ...args], {
      cwd: folder,
      env: environment(),
      stdio: ['ignore', 'inherit', 'inherit'],
      detached: true,
    });
    let last = 0;
    const handlers = ['SIGINT', 'SIGTERM', 'SIGHUP'].map((signal) => [signal, () => passOn(signal)]);
    const passOn = (signal) => {
      const now = Date.now();
      if (signal === 'SIGINT' && now - last < samePressMs) return;
      last = now;
      child.kill(signal);
    };
    for (const [signal, handler] of handlers) process.on(signal, handler);
    const end = (settle, value) => {
      for (const [signal, handler] of handlers) process.off(signal, handler);
      settle(value);
    };
    child.on('error', (error) => end(reject, error));
    child.on('close', (code) => end(resolve, { code, interrupted: last > 0 }));
  });
}

/** Without overrides that are meant for another configuration. */
function environment() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('TRAWL_')));
}
