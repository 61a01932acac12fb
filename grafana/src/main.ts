import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { everything, rules, writeFiles } from './generate.js';

// `npm run grafana`: writes everything below grafana/. With --window-factor only rules and Alertmanager's configuration, to --out.
const { values } = parseArgs({ options: { 'window-factor': { type: 'string' }, out: { type: 'string' } } });
const factor = values['window-factor'];
const grafana = fileURLToPath(new URL('..', import.meta.url));
if (factor === undefined) {
  writeFiles(values.out ?? grafana, everything());
} else if (values.out === undefined) {
  process.stderr.write('--window-factor needs --out: what is shipped has the factor 1.\n');
  process.exitCode = 2;
} else {
  writeFiles(values.out, rules({ windowFactor: Number(factor) }));
}
