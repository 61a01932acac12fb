import { z } from 'zod';

/**
 * A value read by `read`; when it returns undefined, the problem says `expected <expected>, found <value>`.
 */
export function field<T>(expected: string, read: (value: unknown) => T | undefined) {
  return z.unknown().transform((value, context): T => {
    const result = read(value);
    if (result !== undefined) return result;
    context.addIssue({ code: 'custom', message: expected });
    return z.NEVER;
  });
}

/** As `field`, for what can be wrong in several ways: `read` returns `<expected>, found <what>` in `fault`. */
export function faultyField<T>(read: (value: unknown) => { value: T } | { fault: string }) {
  return z.unknown().transform((value, context): T => {
    const result = read(value);
    if ('value' in result) return result.value;
    context.addIssue({ code: 'custom', message: result.fault });
    return z.NEVER;
  });
}

/** Whether the platform takes this memory: a power of two of MB, 128 to 32768. */
export function isRunMemory(mb: number): boolean {
  return Number.isInteger(mb) && mb >= 128 && mb <= 32_768 && Number.isInteger(Math.log2(mb));
}
