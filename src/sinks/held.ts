import { SinkHeldError } from './contract.js';

/** The error code of a failed system call, undefined for any other error. */
export function errnoOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('syscall' in error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/**
 * A failed system call of the file sink as a hold: which reason it has and what a person can do about it. Errors that are
 * not system calls pass through unchanged (ours, or a programming fault that must not look like a full disk).
 */
export function asHeld(error: unknown, dir: string): unknown {
  const code = errnoOf(error);
  if (code === undefined) return error;
  const { reason, advice } = reasonOf(code);
  return new SinkHeldError(reason, `Cannot write results to ${dir} (${code}): ${advice}`, { cause: error });
}

function reasonOf(code: string): { reason: SinkHeldError['reason']; advice: string } {
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
    case 'EFBIG':
      return { reason: 'full', advice: 'the disk, quota or file size limit is used up; free some space' };
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return {
        reason: 'denied',
        advice: 'this user may not write there; check owner, mode and mount options',
      };
    case 'ENOENT':
    case 'ENOTDIR':
      return { reason: 'missing', advice: 'the directory is gone; mount or create it' };
    case 'ESTALE':
    case 'ETIMEDOUT':
    case 'EHOSTDOWN':
    case 'EHOSTUNREACH':
      return { reason: 'unreachable', advice: 'the file server does not answer' };
    default:
      return { reason: 'other', advice: 'the file system refused; see the system log' };
  }
}

/** A path that must be a real directory is a symbolic link or a file: writing through it could leave the results. */
export function notADirectory(path: string): SinkHeldError {
  return new SinkHeldError('denied', `${path} is a symbolic link or a file, not a directory: move it away`);
}

/** The file system cannot publish a page exactly once. */
export function noHardLinks(dir: string, cause: unknown): SinkHeldError {
  return new SinkHeldError(
    'other',
    `${dir} is on a file system without hard links, which publishing a page exactly once needs: use ext4, xfs, btrfs, APFS or NFS`,
    { cause },
  );
}
