import { outcomeClass } from '../../run/outcome.js';
import { cleanText } from '../../scrape/clean-text.js';
import { clock, counted, money, number, rate, span } from '../format.js';
import type { Colors } from '../output.js';
import type { RunView, ServerView } from './state.js';

/** Shows how a run goes, and lets other lines through. */
export interface Progress {
  show(view: RunView): void;
  /** A line that stays. */
  note(line: string): void;
  /** Leaves the terminal clean. */
  end(): void;
}

const csi = '\u001b[';
/** Plain lines come this often at most; a log is read later. */
const plainEveryMs = 10_000;

/**
 * A block of lines that is redrawn in place. Each line is cut to the terminal's width, since a wrapped one would leave its
 * rest behind; all of a drawing is one write, so that nothing flickers.
 */
export class LiveProgress implements Progress {
  private drawn = 0;
  private last = '';
  private ended = false;
  private readonly onResize = () => {
    // Whatever the terminal made of the old lines is not ours to mend: begin below.
    this.drawn = 0;
    this.last = '';
  };

  constructor(
    private readonly stream: NodeJS.WriteStream,
    private readonly colors: Colors,
    private readonly now: () => number,
  ) {
    stream.on('resize', this.onResize);
  }

  show(view: RunView): void {
    if (this.ended) return;
    const lines = liveLines(view, this.width, this.colors, this.now());
    const text = lines.map((line) => `${line}${csi}K\n`).join('');
    if (text === this.last) return;
    this.stream.write(`${this.home}${text}${csi}J`);
    this.drawn = lines.length;
    this.last = text;
  }

  note(line: string): void {
    this.stream.write(`${this.home}${line}${csi}K\n${this.last}${csi}J`);
  }

  end(): void {
    this.ended = true;
    this.stream.off('resize', this.onResize);
    this.stream.write(`${this.home}${csi}J`);
    this.drawn = 0;
    this.last = '';
  }

  private get home(): string {
    return this.drawn === 0 ? '' : `${csi}${this.drawn}F`;
  }

  private get width(): number {
    return Math.max(20, (this.stream.columns ?? 80) - 1);
  }
}

/** One line every ten seconds, when something changed. */
export class PlainProgress implements Progress {
  private last = '';
  private lastAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly stream: NodeJS.WritableStream,
    private readonly now: () => number,
  ) {}

  show(view: RunView): void {
    const at = this.now();
    if (at - this.lastAt < plainEveryMs) return;
    const line = plainLine(view, at);
    if (line === this.last) return;
    this.last = line;
    this.lastAt = at;
    this.note(line);
  }

  note(line: string): void {
    this.stream.write(`${line}\n`);
  }

  end(): void {}
}

export function plainLine(view: RunView, now: number): string {
  const { tally } = view;
  const parts = [
    `${number(tally.settled)}/${number(tally.total)} settled${outcomeList(view)}`,
    `${number(view.submitted)} submitted`,
    ...view.servers.map((server) => `${server.runsInFlight}/${server.runSlots} runs on ${server.name}`),
    counted(tally.items, 'item'),
    ...paceOf(view),
    ...view.servers.flatMap((server) => obstacles(server, now)),
    ...(view.redisAwayMs === null ? [] : [`no answer from Redis for ${span(view.redisAwayMs)}`]),
  ];
  return parts.join(', ');
}

function outcomeList({ tally }: RunView): string {
  if (tally.outcomes.size === 0) return '';
  return ` (${[...tally.outcomes].map(([outcome, count]) => `${number(count)} ${outcome}`).join(', ')})`;
}

export function liveLines(view: RunView, width: number, colors: Colors, now: number): string[] {
  const { tally } = view;
  const flying = view.servers.reduce((sum, server) => sum + server.runsInFlight, 0);
  const slots = view.servers.reduce((sum, server) => sum + server.runSlots, 0);
  const title = `${view.batch}  ${number(tally.settled)} of ${number(tally.total)} settled`;
  const percent = `${Math.floor((100 * tally.settled) / Math.max(1, tally.total))}%`;
  const lines = [
    headLine(title, percent, tally.settled / Math.max(1, tally.total), width, colors),
    cut(
      [
        `submitted ${number(view.submitted)}`,
        `in flight ${number(flying)} of ${number(slots)}`,
        counted(tally.items, 'item'),
      ].join(' · '),
      width,
    ),
    outcomeLine(view, width, colors),
    cut(paceOf(view).join(' · ') || 'no rate yet', width),
  ];
  for (const text of view.servers.flatMap((server) => obstacles(server, now))) {
    lines.push(colors.yellow(cut(text, width)));
  }
  if (view.redisAwayMs !== null) {
    lines.push(colors.red(cut(`no answer from Redis for ${span(view.redisAwayMs)}; waiting`, width)));
  }
  if (view.phase === 'finishing') {
    lines.push(colors.yellow(cut('finishing; Ctrl-C again leaves at once', width)));
  }
  return lines;
}

function headLine(title: string, percent: string, share: number, width: number, colors: Colors): string {
  const room = width - title.length - percent.length - 4;
  if (room < 6) return cut(`${title}  ${percent}`, width);
  const length = Math.min(40, room);
  const full = Math.round(share * length);
  return `${colors.bold(title)}  ${colors.green('━'.repeat(full))}${colors.dim('─'.repeat(length - full))}  ${percent}`;
}

/** Cut before it is coloured: a cut escape sequence would colour the rest of the terminal. */
function outcomeLine({ tally }: RunView, width: number, colors: Colors): string {
  let room = width;
  const parts: string[] = [];
  for (const [outcome, count] of tally.outcomes) {
    const text = `${outcome} ${number(count)}`;
    if (text.length + 3 > room) break;
    room -= text.length + 3;
    const verdict = outcome === 'removed' ? 'failure' : outcomeClass(outcome);
    const paint = { ok: colors.green, warning: colors.yellow, failure: colors.red }[verdict];
    parts.push(paint(text));
  }
  return parts.length === 0 ? 'nothing settled yet' : parts.join(' · ');
}

function paceOf({ tally, rate: pace, phase }: RunView): string[] {
  const remaining = tally.total - tally.settled;
  const { perSecond } = pace;
  const left = pace.leftMs(remaining);
  const unknown = tally.usageUnknown > 0 ? ` (${number(tally.usageUnknown)} not told)` : '';
  return [
    ...(perSecond === null ? [] : [rate(perSecond)]),
    ...(left === null || remaining === 0 || phase === 'finishing' ? [] : [`about ${span(left)} left`]),
    `spent ${money(tally.usageUsd)}${unknown}`,
  ];
}

/** Why a server starts less than it could. */
export function obstacles({ name, state }: Pick<ServerView, 'name' | 'state'>, now: number): string[] {
  const found: string[] = [];
  if (state.pausedSince !== null) {
    found.push(`${name}: paused since ${clock(state.pausedSince)}; trawl resume ${name}`);
  }
  if (state.hold !== null) {
    const { reason, since, message } = state.hold;
    found.push(`${name}: held since ${clock(since)} (${cleanText(reason, 30)}): ${cleanText(message, 300)}`);
  }
  if (state.coolUntil !== null && state.coolUntil > now) {
    const why = cleanText(state.coolReason ?? 'busy', 30);
    found.push(`${name}: cooling down for ${span(state.coolUntil - now)} (${why})`);
  }
  for (const [tool, { hold, pausedSince }] of Object.entries(state.tools)) {
    const place = `${name}/${cleanText(tool, 130)}`;
    if (pausedSince !== null) found.push(`${place}: paused since ${clock(pausedSince)}`);
    if (hold !== null) {
      found.push(
        `${place}: held since ${clock(hold.since)} (${cleanText(hold.reason, 30)}): ${cleanText(hold.message, 300)}`,
      );
    }
  }
  return found;
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}
