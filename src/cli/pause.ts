import type { Command } from 'commander';
import { withFleet } from './fleet.js';
import {
  type CommonOptions,
  parsePlace,
  quietLogger,
  readConfig,
  withConfigOption,
  withExamples,
} from './options.js';
import { print } from './output.js';

const placeHelp = 'a configured server, or a tool of it as SERVER/user/name';

/** Adds `trawl pause`: an operator's stop of starts, which only an operator lifts. */
export function registerPause(program: Command): void {
  const command = program
    .command('pause')
    .description('start nothing more on a server, or of one of its tools, until resume; runs under way go on')
    .argument('<server[/tool]>', placeHelp)
    .action((place: string, _options: CommonOptions, self: Command) => change('pause', place, self));
  withConfigOption(command);
  withExamples(command, 'trawl pause apify', 'trawl pause apify/compass/crawler-google-places');
}

/** Adds `trawl resume`. */
export function registerResume(program: Command): void {
  const command = program
    .command('resume')
    .description('lift a pause')
    .argument('<server[/tool]>', placeHelp)
    .action((place: string, _options: CommonOptions, self: Command) => change('resume', place, self));
  withConfigOption(command);
  withExamples(
    command,
    'trawl resume apify',
    'trawl resume apify/compass--crawler-google-places',
    '',
    'A hold is not a pause: Trawl lifts it by itself when the server or tool works again (trawl status shows both).',
  );
}

async function change(verb: 'pause' | 'resume', place: string, self: Command): Promise<void> {
  const { config, log } = readConfig(self.optsWithGlobals<CommonOptions>(), quietLogger);
  const { server, tool } = parsePlace(config, place);
  const name = tool === null ? server : `${server}/${tool}`;
  await withFleet(config, log, async ({ holds }) => {
    if (verb === 'pause') {
      const changed = await holds.pause(server, tool, Date.now());
      print(changed ? `Paused ${name}. Resume with: trawl resume ${name}` : `${name} is paused already.`);
    } else {
      const changed = await holds.resume(server, tool);
      print(changed ? `Resumed ${name}.` : `${name} is not paused.`);
    }
  });
}
