import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { build, isBuilt, root } from './build.mjs';
import { check } from './check.mjs';
import { runTrawl } from './run-trawl.mjs';

const folder = join(root, 'demo-results');
const jobs = join(root, 'scripts/demo/businesses.ndjson');

/** @param startedAt when `npm run demo` began, for the times at the end */
export async function main(startedAt) {
  if (!existsSync(join(root, 'node_modules/bullmq'))) return complain('Run npm ci first.');
  const other = runningDemo();
  if (other !== null)
    return complain(
      `Another demo (process ${other}) is at work in ${short(folder)}: wait for it, or remove that folder.`,
    );
  if (!isBuilt()) {
    print('Building dist/ …');
    if (!build()) return complain('The build failed: npm run build says why.');
  }
  prepareFolder();
  const { startSim } = await import('../../dist/test/sim/index.js');
  const sim = await startSim({
    speed: 100,
    conditions: { mix: 'fixed' },
    // Runs end after about a second where a job does not say otherwise.
    steering: { runSecs: 0.8 },
  });
  try {
    writeFileSync(join(folder, 'trawl.yaml'), configFor(sim.url));
    print(`A simulated Apify MCP server listens on ${sim.url}; nothing is scraped and nothing is paid for.`);
    print(`In ${short(folder)}/: trawl run businesses.ndjson`);
    print('A run takes a second or two; 5 s after its end a read proves that no item is missing.\n');
    const { code, interrupted } = await runTrawl(folder, ['run', 'businesses.ndjson', '--yes']);
    if (interrupted || code === 4) return complain('\nInterrupted. npm run demo begins anew.', 4);
    if (code !== 1)
      return complain(
        `\ntrawl run ended with ${code}; 1 was expected, since some rows are meant to fail.`,
        1,
      );
    return conclude(check(folder, jobs, sim), startedAt);
  } finally {
    await sim.close();
    rmSync(pidFile(), { force: true });
  }
}

function conclude({ faults, lines, times }, startedAt) {
  const results = `${short(folder)}/results/batch=businesses`;
  print('\nFrom this folder');
  print(`  cat ${results}/scrape=plumbers-austin/page-*.ndjson | head -n 3`);
  print(`  jq -r '[.title, .phone, .city] | @tsv' ${results}/scrape=plumbers-*/page-*.ndjson`);
  print(
    `  duckdb -c "SELECT scrape, count(*) FROM read_json_auto('${results}/scrape=*/page-*.ndjson', union_by_name=true, hive_partitioning=true) GROUP BY ALL"`,
  );
  print(`  cat ${results}/scrape=meant-to-fail/outcome.json`);
  print('');
  if (faults.length > 0) {
    for (const fault of faults) process.stderr.write(`Not as expected: ${fault}\n`);
    return 1;
  }
  const after = (time) => `${((time - startedAt) / 1000).toFixed(1)} s`;
  print(`Checked: ${lines.join(', ')}.`);
  print(
    `First items after ${after(times.items)}, first scrape settled after ${after(times.first)}, all after ${after(times.last)}.`,
  );
  return 0;
}

function prepareFolder() {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(pidFile(), String(process.pid));
  copyFileSync(jobs, join(folder, 'businesses.ndjson'));
}

function configFor(url) {
  return `# Written by npm run demo. redis is not set, so a private one is started in .trawl/redis.
servers:
  apify:
    url: ${url}
    token: simulated
    tools:
      - compass/crawler-google-places
      - trudax/yellow-pages-us-scraper
      - apify/rag-web-browser
      - apify/website-content-crawler
    limits: { runs: 8, requestsPerSecond: 50 }
poll: { interval: 1s }
results: { dir: ./results }
`;
}

/** The process id of a demo that is still at work in the folder; null when there is none. */
function runningDemo() {
  try {
    const pid = Number(readFileSync(pidFile(), 'utf8'));
    process.kill(pid, 0);
    return pid;
  } catch (error) {
    return error.code === 'EPERM' ? 'of another user' : null;
  }
}

function pidFile() {
  return join(folder, '.pid');
}

function short(path) {
  return relative(process.cwd(), path) || '.';
}

function print(line) {
  process.stdout.write(`${line}\n`);
}

function complain(message, code = 2) {
  process.stderr.write(`${message}\n`);
  return code;
}
