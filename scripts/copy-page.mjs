#!/usr/bin/env node
// Copies what the compiler leaves out of a build: the files of the page, which are served as they are.
// Usage: node scripts/copy-page.mjs [OUT] (default: dist)
import { cpSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = resolve(process.argv[2] ?? join(root, 'dist'));
cpSync(join(root, 'src/http/page'), join(out, 'src/http/page'), { recursive: true });
