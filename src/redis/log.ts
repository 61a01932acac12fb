/** The part of the logger that Redis code uses; a pino logger is one. */
export interface RedisLog {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
