import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import pc from 'picocolors';
import { describe, expect, it } from 'vitest';
import { LiveProgress, liveLines, PlainProgress, plainLine } from '../../src/cli/run/progress.js';
import { Rate, type RunView } from '../../src/cli/run/state.js';
import { Tally } from '../../src/cli/run/tally.js';

const now = Date.parse('2026-12-02T14:03:22Z');
const calm = { hold: null, pausedSince: null, coolUntil: null, coolReason: null, tools: {} };

function view(more: Partial<RunView> = {}): RunView {
  const tally = new Tally(2000);
  for (let i = 0; i < 1240; i += 1) {
    tally.expect(`leads.${i}`, 'warn');
    const outcome = i % 10 === 0 ? 'failed' : i % 10 === 1 ? 'deadline_exceeded' : 'succeeded';
    const document = {
      id: `${i}`,
      batch: 'leads',
      outcome,
      message: 'm',
      items: 40,
      usageUsd: 0.01,
    } as const;
    tally.settle(`leads.${i}`, { ...document, runId: 'r', warnings: [], finishedAt: '2026-12-02T14:00:00Z' });
  }
  const rate = new Rate();
  rate.sample(now - 60_000, 1120);
  rate.sample(now, 1240);
  const servers = [{ name: 'apify', runsInFlight: 5, runSlots: 5, state: calm }];
  const rest = { batch: 'leads', submitted: 2000, phase: 'working', redisAwayMs: null } as const;
  return { ...rest, tally, rate, servers, ...more };
}

const hostile = view({
  batch: 'b'.repeat(128),
  redisAwayMs: 12_000,
  phase: 'finishing',
  servers: [
    {
      name: 'apify',
      runsInFlight: 5,
      runSlots: 5,
      state: {
        ...calm,
        pausedSince: now,
        hold: { reason: 'payment', since: now - 60_000, message: `\u001b[2J\u0007${'pay '.repeat(100)}` },
        coolUntil: now + 90_000,
        coolReason: 'capacity',
        tools: { 'user/name': { pausedSince: now, hold: { reason: 'brake', since: now, message: 'x\ny' } } },
      },
    },
  ],
});

describe('live progress', () => {
  it('shows all that a person waits for', () => {
    const text = liveLines(view(), 80, pc.createColors(false), now).join('\n');
    for (const part of [
      'leads  1,240 of 2,000 settled',
      '62%',
      'submitted 2,000 · in flight 5 of 5 · 49,600 items',
      'failed 124 · deadline_exceeded 124 · succeeded 992',
      '2.0/s · about 6m20s left · spent $12.40',
    ]) {
      expect(text).toContain(part);
    }
  });

  it.each([20, 40, 80, 200])('fits into %i columns, whatever is in it', (width) => {
    for (const shown of [view(), hostile]) {
      for (const line of liveLines(shown, width, pc.createColors(true), now)) {
        expect(stripVTControlCharacters(line).length).toBeLessThanOrEqual(width);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are allowed, all other controls are not.
        expect(line.replace(/\u001b\[\d+m/g, '')).not.toMatch(/[\u0000-\u001f\u007f]/);
      }
    }
  });

  it('draws over what it drew, in one write, and only when something changed', () => {
    const stream = Object.assign(new PassThrough(), { isTTY: true, columns: 80 });
    const writes: string[] = [];
    stream.on('data', (chunk: Buffer) => writes.push(chunk.toString()));
    const progress = new LiveProgress(
      stream as unknown as NodeJS.WriteStream,
      pc.createColors(false),
      () => now,
    );
    progress.show(view());
    progress.show(view());
    expect(writes).toHaveLength(1);
    progress.show(view({ submitted: 1999 }));
    progress.note('a line that stays');
    progress.end();
    expect(writes).toHaveLength(4);
    expect(writes[1]?.startsWith('\u001b[4Fleads')).toBe(true);
    expect(writes[2]?.startsWith('\u001b[4Fa line that stays\u001b[K\nleads')).toBe(true);
    expect(writes[3]).toBe('\u001b[4F\u001b[J');
  });
});

describe('plain progress', () => {
  it('is one line every ten seconds, when something changed', () => {
    const stream = new PassThrough();
    const lines: string[] = [];
    stream.on('data', (chunk: Buffer) => lines.push(chunk.toString()));
    let at = now;
    const progress = new PlainProgress(stream, () => at);
    const first = view();
    progress.show(first);
    at += 9_000;
    progress.show(view({ submitted: 1 }));
    at += 1_000;
    progress.show(first);
    expect(lines).toHaveLength(1);
    progress.show(view({ submitted: 1 }));
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(
      /^1,240\/2,000 settled \(.*992 succeeded\), 2,000 submitted, 5\/5 runs on apify, .*\n$/,
    );
  });

  it('tells what holds it up, without the escapes of others', () => {
    const line = plainLine(hostile, now);
    expect(line).toContain('apify: held since');
    expect(line).toContain('cooling down for 1m30s (capacity)');
    expect(line).toContain('no answer from Redis for 12s');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: none may be there.
    expect(line).not.toMatch(/[\u0000-\u001f]/);
  });
});

describe('the rate', () => {
  it('looks back two minutes, and is not known before something was settled', () => {
    const rate = new Rate();
    rate.sample(0, 0);
    expect(rate.perSecond).toBeNull();
    rate.sample(10_000, 0);
    expect(rate.leftMs(10)).toBeNull();
    rate.sample(20_000, 40);
    expect(rate.perSecond).toBe(2);
    for (let at = 30_000; at <= 300_000; at += 10_000) rate.sample(at, 40 + at / 10_000);
    expect(rate.perSecond).toBeCloseTo(0.1);
    expect(rate.leftMs(10)).toBeCloseTo(100_000);
  });
});
