import { createContext, Script } from 'node:vm';

/** On the wall clock: a busy machine must not make a sound pattern look like one that explodes. */
const budgetMs = 250;
/** Texts longer than this are not matched at all: a schema's pattern is about short fields. */
const longestText = 10_000;

/** The part of a RegExp that ajv needs; `toString` names the compiled pattern in ajv's own cache. */
export interface Pattern {
  test(text: string): boolean;
}

/**
 * A regular expression from outside that cannot block the process. Patterns whose matching time may explode (a
 * repeated group, a reference back, or several open-ended repetitions) run under V8's own watchdog; one that exceeds
 * its budget matches everything from then on, since the server checks again. Throws when the pattern is none.
 */
export function guardedPattern(source: string, flags: string): Pattern {
  const regex = compile(source, flags);
  if (isPlain(source)) return { test: (text) => text.length > longestText || testFresh(regex, text) };
  let script: Script | null = new Script('regex.lastIndex = 0; regex.test(text)');
  const sandbox = createContext({ regex, text: '' });
  return {
    test: (text) => {
      if (script === null || text.length > longestText) return true;
      sandbox.text = text;
      try {
        return script.runInContext(sandbox, { timeout: budgetMs }) === true;
      } catch {
        script = null;
        return true;
      }
    },
  };
}

/** Schemas are written for engines without the `u` flag as well as with it. */
function compile(source: string, flags: string): RegExp {
  try {
    return new RegExp(source, flags);
  } catch {
    return new RegExp(source, flags.replace('u', ''));
  }
}

function testFresh(regex: RegExp, text: string): boolean {
  regex.lastIndex = 0;
  return regex.test(text);
}

/** At most one open-ended repetition and none of a group: the time to match is bounded by the square of the length. */
function isPlain(source: string): boolean {
  const bare = source.replace(/\\[^\d]/g, '_').replace(/\[[^\]]*\]/g, '_');
  if (/\)[*+{?]|\\\d|\(\?/.test(bare)) return false;
  const openEnded = bare.match(/[*+]|\{\d+,\}/g)?.length ?? 0;
  return openEnded <= 1 && !/\{\d{4,}|,\d{4,}\}/.test(bare);
}
