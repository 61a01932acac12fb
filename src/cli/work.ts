import type { Command } from 'commander';
import { ExitCode } from '../errors.js';
import { version } from '../version.js';
import { counted } from './format.js';
import { type CommonOptions, readConfig, withConfigOption, withExamples } from './options.js';
import { say } from './output.js';
import { Signals } from './signals.js';
import { prepareWorkerProcess } from './worker-process.js';

/** Adds `trawl work`: the daemon. */
export function registerWork(program: Command): void {
  const command = program
    .command('work')
    .description(
      'run the worker daemon: takes jobs from the queue, the intake stream and list, until it is stopped',
    )
    .action(async (_options: CommonOptions, self: Command) => {
      process.exitCode = await work(self.optsWithGlobals<CommonOptions>());
    });
  withConfigOption(command);
  withExamples(
    command,
    'trawl work                              until Ctrl-C or SIGTERM; serves the page, /metrics, /healthz, /readyz',
    'TRAWL_HTTP__PORT=0 trawl work           on any free port; run as many as you like, they share the work',
    'TRAWL_LOG__LEVEL=debug trawl work       say more; later: trawl log-level debug --for 5m',
    '',
    'SIGTERM or Ctrl-C: no new jobs; calls in flight end or are handed back within shutdown.grace; a start under way is',
    'never cut (at most start.timeout). Once more: leaves at once, as safe as a crash.',
  );
}

async function work(options: CommonOptions): Promise<number> {
  const { config, log } = readConfig(options);
  const signals = new Signals();
  const worker = await prepareWorkerProcess({ config, log, intake: true });
  let url: string;
  try {
    url = await worker.serve();
    await worker.start();
  } catch (error) {
    await worker.stop(0);
    throw error;
  }
  const servers = Object.values(config.servers);
  const intake = [config.intake.stream ? 'stream' : '', config.intake.list ? 'list' : ''].filter(Boolean);
  log.info(
    {
      event: 'daemon.started',
      version,
      redis: worker.redisLabel,
      http: url,
      servers: servers.map(
        ({ name, limits, tools }) =>
          `${name}: ${counted(limits.runs, 'run')}, ${counted(Object.keys(tools).length, 'tool')}`,
      ),
      intake,
      results: config.results.dir,
    },
    `working: Redis ${worker.redisLabel}, metrics and health on ${url}`,
  );
  await signals.first;
  void signals.second.then(() => {
    say('trawl: left at once; jobs in hand are taken up by other workers, or by the next start');
    process.exit(ExitCode.interrupted);
  });
  await worker.stop(config.shutdown.graceMs);
  signals.close();
  return ExitCode.ok;
}
