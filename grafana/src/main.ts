import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { everything, kubernetes, rules, writeFiles } from './generate.js';

// `npm run grafana`: writes everything below grafana/, and the rules for Kubernetes. With --window-factor only rules and Alertmanager's configuration, to --out.
const { values } = parseArgs({ options: { 'window-factor': { type: 'string' }, out: { type: 'string' } } });
const factor = values['window-factor'];
const grafana = fileURLToPath(new URL('..', import.meta.url));
if (factor === undefined) {
  writeFiles(values.out ?? grafana, everything());
  if (values.out === undefined) {
    writeFiles(fileURLToPath(new URL('../../deploy/kubernetes', import.meta.url)), kubernetes());
  }
} else if (values.out === undefined) {
  process.stderr.write('--window-factor needs --out: what is shipped has the factor 1.\n');
  process.exitCode = 2;
} else {
  writeFiles(values.out, rules({ windowFactor: Number(factor) }));
}
