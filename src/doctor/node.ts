import { type Check, fail, ok } from './check.js';

/** The oldest Node that Trawl runs on; equal to `engines` in package.json (tested). */
export const leastNode = '20.19';

/** `version` as in `process.versions.node`. */
export function checkNode(version: string): Check {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [leastMajor = 0, leastMinor = 0] = leastNode.split('.').map(Number);
  const enough = major > leastMajor || (major === leastMajor && minor >= leastMinor);
  return enough
    ? ok('version', `Node ${version}`)
    : fail(
        'version',
        `Node ${version} is too old`,
        `Install Node ${leastNode} or newer: https://nodejs.org/`,
      );
}
