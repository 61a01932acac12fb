import { createInterface } from 'node:readline/promises';
import { TrawlError } from '../../errors.js';
import { counted, money } from '../format.js';
import { say } from '../output.js';
import type { Estimate } from '../plan/estimate.js';
import { costLine } from '../plan/text.js';

export interface ConfirmOptions {
  /** US dollars. */
  readonly confirmOver: number;
  readonly yes?: boolean;
}

/**
 * Says what the scrapes to be started will cost, and asks above `--confirm-over` (design A6).
 * @param stdinIsData jobs come from stdin, so that nobody can answer there
 * @throws TrawlError `usage_invalid` when it is declined, or cannot be asked
 */
export async function confirmCost(
  estimate: Estimate,
  options: ConfirmOptions,
  stdinIsData: boolean,
): Promise<void> {
  const scrapes = estimate.tools.reduce((sum, tool) => sum + tool.scrapes, 0);
  say(`${counted(scrapes, 'scrape')} to start; cost: ${costLine(estimate)}`);
  if (options.yes || estimate.usd <= options.confirmOver) return;
  const over = `That is more than ${money(options.confirmOver)} (--confirm-over).`;
  if (stdinIsData || !process.stdin.isTTY || !process.stderr.isTTY) {
    throw new TrawlError('usage_invalid', `${over} Nothing was submitted.`, {
      hint: 'Without a terminal to ask at, add --yes to go on, or raise --confirm-over.',
    });
  }
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await ask(prompt, `${over} Go on? [y/N] `);
    if (!/^y(es)?$/i.test(answer.trim())) throw new TrawlError('usage_invalid', 'Nothing was submitted.');
  } finally {
    prompt.close();
  }
}

/** Ctrl-C and Ctrl-D at the question mean no. */
async function ask(prompt: ReturnType<typeof createInterface>, question: string): Promise<string> {
  const gone = new Promise<string>((resolve) => {
    prompt.once('SIGINT', () => resolve(''));
    prompt.once('close', () => resolve(''));
  });
  return Promise.race([prompt.question(question).catch(() => ''), gone]);
}
