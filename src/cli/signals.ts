export type StopSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

const stopSignals: readonly StopSignal[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** Signals that ask the process to stop, in the order they come. While it is open none of them ends the process. */
export class Signals {
  readonly first: Promise<StopSignal>;
  readonly second: Promise<StopSignal>;
  private seen = 0;
  private readonly handler: (signal: StopSignal) => void;

  constructor() {
    let onFirst: (signal: StopSignal) => void = () => {};
    let onSecond: (signal: StopSignal) => void = () => {};
    this.first = new Promise((resolve) => {
      onFirst = resolve;
    });
    this.second = new Promise((resolve) => {
      onSecond = resolve;
    });
    this.handler = (signal) => {
      this.seen += 1;
      if (this.seen === 1) onFirst(signal);
      else onSecond(signal);
    };
    for (const signal of stopSignals) process.on(signal, this.handler);
  }

  get received(): number {
    return this.seen;
  }

  close(): void {
    for (const signal of stopSignals) process.off(signal, this.handler);
  }
}
