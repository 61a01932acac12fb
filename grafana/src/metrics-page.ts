import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { metricsPage } from './metrics-text.js';

// `npm run docs:metrics`: writes docs/metrics.md.
writeFileSync(fileURLToPath(new URL('../../docs/metrics.md', import.meta.url)), metricsPage());
