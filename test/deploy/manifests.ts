import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ScaledObject } from '@kubernetes-models/keda/keda.sh/v1alpha1';
import { PodMonitor, PrometheusRule } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';
import { Deployment } from 'kubernetes-models/apps/v1';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { Namespace, PersistentVolumeClaim, Service } from 'kubernetes-models/v1';
import { parse } from 'yaml';
import { read, root } from './support.js';

/** Where the schema of a kind comes from, and the module with its types. */
const kinds = {
  Deployment: [Deployment, 'kubernetes-models/apps/v1'],
  Namespace: [Namespace, 'kubernetes-models/v1'],
  NetworkPolicy: [NetworkPolicy, 'kubernetes-models/networking.k8s.io/v1'],
  PersistentVolumeClaim: [PersistentVolumeClaim, 'kubernetes-models/v1'],
  PodDisruptionBudget: [PodDisruptionBudget, 'kubernetes-models/policy/v1'],
  PodMonitor: [PodMonitor, '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1'],
  PrometheusRule: [PrometheusRule, '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1'],
  ScaledObject: [ScaledObject, '@kubernetes-models/keda/keda.sh/v1alpha1'],
  Service: [Service, 'kubernetes-models/v1'],
} as const;

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  // biome-ignore lint/suspicious/noExplicitAny: each kind has a shape of its own, which its schema checks.
  readonly spec: any;
}
interface Kustomization {
  readonly namespace: string;
  readonly resources: readonly string[];
  readonly configMapGenerator?: readonly { readonly name: string; readonly files: readonly string[] }[];
  readonly images?: readonly { readonly name: string; readonly newTag: string }[];
}

const folder = 'deploy/kubernetes';
export const sets = ['', 'monitoring/', 'keda/'];
export const kustomization = (set: string): Kustomization =>
  parse(read(`${folder}/${set}kustomization.yaml`));
export const filesIn = (set: string): string[] =>
  readdirSync(join(root, folder, set)).filter(
    (name) => name.endsWith('.yaml') && name !== 'kustomization.yaml',
  );

/** Every manifest that a kustomization applies, by path below deploy/kubernetes. */
export const manifests: ReadonlyMap<string, Manifest> = new Map(
  sets.flatMap((set) =>
    kustomization(set).resources.map((name): [string, Manifest] => [
      `${set}${name}`,
      parse(read(`${folder}/${set}${name}`)),
    ]),
  ),
);

/** What the schema of its kind says against a manifest; '' is nothing. */
export function schemaFaults(manifest: Manifest): string {
  const [Model] = kinds[manifest.kind as keyof typeof kinds] ?? [];
  if (Model === undefined) return `no schema for the kind ${manifest.kind}`;
  if (Model.apiVersion !== manifest.apiVersion)
    return `expected ${Model.apiVersion}, found ${manifest.apiVersion}`;
  try {
    new Model(manifest as never).validate();
    return '';
  } catch (error) {
    return String(error);
  }
}

/**
 * What the types of the kinds say against manifests. Schemas let unknown keys pass, which the API server drops: a key with a
 * mistake in it would do nothing. TypeScript refuses them in a literal.
 */
export function typeFaults(all: readonly Manifest[]): string {
  mkdirSync(join(root, 'tmp'), { recursive: true });
  const dir = mkdtempSync(join(root, 'tmp', 'manifests-'));
  try {
    const lines = all.map((manifest, index) => {
      const [, module] = kinds[manifest.kind as keyof typeof kinds];
      const type = `import('${module}').I${manifest.kind}`;
      return `export const m${index}: ${type} = ${JSON.stringify(manifest)};\n`;
    });
    writeFileSync(join(dir, 'manifests.ts'), lines.join(''));
    const options = ['--noEmit', '--ignoreConfig', '--strict', '--skipLibCheck', '--target', 'ES2023'];
    const args = [
      ...options,
      '--module',
      'NodeNext',
      '--moduleResolution',
      'NodeNext',
      join(dir, 'manifests.ts'),
    ];
    const tsc = spawnSync(join(root, 'node_modules/.bin/tsc'), args, { encoding: 'utf8', cwd: root });
    return tsc.stdout.replaceAll(/^.*manifests\.ts/gm, '') + tsc.stderr;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
