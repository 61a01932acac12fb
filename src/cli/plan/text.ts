import { counted, money, number, span } from '../format.js';
import { table } from '../output.js';
import { assumedRunMs, type Estimate, type ToolEstimate } from './estimate.js';

/** The cost in one line, with what is not known about it. */
export function costLine(estimate: Estimate): string {
  const { usd, unknownCost, openCost, tools } = estimate;
  const scrapes = tools.reduce((sum, tool) => sum + tool.scrapes, 0);
  if (scrapes === 0) return 'nothing, there is nothing to start';
  if (unknownCost === scrapes) {
    return 'unknown: there are no past runs, no price in trawl.yaml, and no maxTotalChargeUsd in the jobs';
  }
  const capped = tools.some((tool) => tool.bases.has('cap'));
  const amount =
    openCost > 0 ? `at least ${money(usd)}` : capped ? `at most ${money(usd)}` : `about ${money(usd)}`;
  const caveats = [
    openCost > 0 ? `what the items of ${counted(openCost, 'scrape')} cost comes on top` : '',
    unknownCost > 0 ? `the cost of ${counted(unknownCost, 'scrape')} is unknown` : '',
  ].filter((text) => text !== '');
  return [amount, ...caveats].join('; ');
}

/** How long it takes and what limits that, a line a server. */
export function timeLines(
  estimate: Estimate,
  limits: (server: string) => { runs: number; rps: number },
): string[] {
  return estimate.servers.map(({ server, hours, limitedBy, otherHours }) => {
    const { runs, rps } = limits(server);
    const other = limitedBy === 'run slots' ? 'request rate' : 'run slots';
    const limit =
      limitedBy === 'run slots' ? `the ${counted(runs, 'run slot')}` : `the ${rps} requests a second`;
    const assumed = estimate.assumesDurations
      ? `, taking ${span(assumedRunMs)} for a run never seen before`
      : '';
    return `about ${span(hours * 3_600_000)} on ${server}: ${limit} limit it (the ${other} alone: ${span(otherHours * 3_600_000)})${assumed}`;
  });
}

export function toolTable(tools: readonly ToolEstimate[]): string[] {
  return table(
    [
      { title: 'SERVER' },
      { title: 'TOOL' },
      { title: 'SCRAPES', align: 'right' },
      { title: 'COST', align: 'right' },
      { title: 'FROM' },
      { title: 'CALLS', align: 'right' },
    ],
    tools.map((tool) => [
      tool.server,
      tool.tool,
      number(tool.scrapes),
      tool.unknownCost === tool.scrapes ? '?' : money(tool.usd),
      basisOf(tool),
      number(tool.calls),
    ]),
  );
}

function basisOf({ bases, pastRuns }: ToolEstimate): string {
  return [...bases]
    .map((basis) => {
      switch (basis) {
        case 'price':
          return pastRuns > 0 ? `price, ${counted(pastRuns, 'past run')}` : 'price';
        case 'past runs':
          return counted(pastRuns, 'past run');
        case 'cap':
          return 'maxTotalChargeUsd';
        case 'unknown':
          return 'nothing known';
        default:
          return basis satisfies never;
      }
    })
    .join(', ');
}
