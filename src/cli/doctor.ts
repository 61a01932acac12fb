import type { Command } from 'commander';
import { configSecrets, loadConfig } from '../config.js';
import { exitCodeOf, renderReport, reportJson } from '../doctor/report.js';
import { runDoctor, type Section } from '../doctor/run.js';
import { createLogger } from '../logger.js';
import { createLimiter, memoryTokens } from '../mcp/limiter.js';
import { createApifyServer } from '../mcp/profiles/apify.js';
import { version } from '../version.js';

interface DoctorCommandOptions {
  readonly config?: string;
  readonly json?: boolean;
}

/** Adds `trawl doctor`: is everything there that Trawl needs, and what to do about what is not. */
export function registerDoctor(program: Command): void {
  program
    .command('doctor')
    .description(
      'check Node, the configuration, Redis, the results directory and every server; starts no run',
    )
    .option('--config <file>', 'configuration file (default: trawl.yaml)')
    .option('--json', 'print one JSON document')
    .action(async (_options: DoctorCommandOptions, command: Command) => {
      const options = command.optsWithGlobals<DoctorCommandOptions>();
      const sections = await diagnose(options);
      const terminal = process.stdout.isTTY === true;
      process.stdout.write(options.json ? reportJson(sections) : renderReport(sections, terminal));
      process.exitCode = exitCodeOf(sections);
    });
}

async function diagnose(options: DoctorCommandOptions): Promise<Section[]> {
  // What the report says is not said twice.
  const log = createLogger({ level: 'error' });
  const cwd = process.cwd();
  return runDoctor({
    cwd,
    env: process.env,
    nodeVersion: process.versions.node,
    log,
    loadConfig: () => {
      const config = loadConfig({ file: options.config, env: process.env, cwd });
      for (const secret of configSecrets(config)) log.registerSecret(secret);
      return config;
    },
    openServer: (server, config) =>
      createApifyServer({
        server,
        answerBytes: config.limits.answerBytes,
        // Two or three calls, made whether or not Redis, which counts everybody's, can be reached.
        limiter: createLimiter(memoryTokens(server.limits.requestsPerSecond)),
        observe: () => {},
        log,
        version,
      }),
  });
}
