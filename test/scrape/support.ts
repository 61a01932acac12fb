import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Config, loadConfig } from '../../src/config.js';
import { type ParseContext, parseJob } from '../../src/scrape/parse.js';
import type { Scrape } from '../../src/scrape/types.js';

/** Tools of the example jobs. */
export const tools = [
  'compass/crawler-google-places',
  'compass/google-maps-reviews-scraper',
  'trudax/yellow-pages-us-scraper',
  'apify/website-content-crawler',
  'apify/rag-web-browser',
  'vdrmota/contact-info-scraper',
];

export function configOf(servers: object = { apify: { token: 'abcdef', tools } }, more: object = {}): Config {
  return loadConfig({ text: JSON.stringify({ servers, ...more }), env: {}, cwd: '/' });
}

const standard = configOf();

/** The example of the design (A2). */
export const example = {
  id: 'plumbers-austin',
  batch: 'leads-2026-12-02',
  server: 'apify',
  tool: 'compass/crawler-google-places',
  input: { searchStringsArray: ['plumbers'], locationQuery: 'Austin, Texas, USA' },
  deadline: '30m',
  expiresIn: '6h',
  priority: 3,
  retries: 1,
  minItems: 1,
  onEmpty: 'warn',
  options: { maxItems: 500, maxTotalChargeUsd: 2.5, timeout: '20m', memory: 4096 },
  fields: ['title', 'phone'],
  records: ['OUTPUT'],
  meta: { row: 17 },
};

export function parse(raw: unknown, context: Partial<ParseContext> = {}) {
  return parseJob(raw, { config: standard, source: 'file', ...context });
}

export function parsed(raw: unknown, context: Partial<ParseContext> = {}): Scrape {
  const result = parse(raw, context);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.scrape;
}

/** Problems as `field: message` lines. */
export function problems(raw: unknown, context: Partial<ParseContext> = {}): string[] {
  const result = parse(raw, context);
  return result.ok ? [] : result.problems.map((problem) => `${problem.field}: ${problem.message}`);
}

export function tempFile(name: string, content: string | Buffer): string {
  const folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}
