#!/usr/bin/env node
// Only syntax and globals that a Node of years ago understands: it has to get as far as its one sentence. All else is
// imported after the check.
export {};

const needed = [20, 19];
const found = process.versions.node.split('.').map(Number);
const enough =
  (found[0] as number) > (needed[0] as number) ||
  (found[0] === needed[0] && (found[1] as number) >= (needed[1] as number));

if (enough) {
  import('./main.js').then(
    (cli) => cli.runProcess(process.argv.slice(2)),
    (error) => {
      process.stderr.write(
        `trawl: cannot be loaded (${String(error)}). Is the installation complete? npm ci\n`,
      );
      process.exitCode = 1;
    },
  );
} else {
  process.stderr.write(
    `trawl: needs Node ${needed.join('.')} or newer, and this is ${process.versions.node}.\n`,
  );
  process.exitCode = 2;
}
