import { describe, expect, it } from 'vitest';
import { kubernetes } from '../../grafana/src/generate.js';
import { settings } from '../../grafana/src/settings.js';
import { faultsOf } from '../alerts/promql.js';
import {
  filesIn,
  kustomization,
  type Manifest,
  manifests,
  schemaFaults,
  sets,
  typeFaults,
} from './manifests.js';
import { loadDeployed, longestStopMs, read } from './support.js';

const get = (path: string): Manifest => {
  const found = manifests.get(path);
  if (found === undefined) throw new Error(`${path} is in no kustomization`);
  return found;
};
const deployment = get('deployment.yaml').spec;
const pod = deployment.template.spec;
const [container] = pod.containers;
const labels = deployment.template.metadata.labels;

describe('manifests', () => {
  it('are all applied, and nothing else is', () => {
    for (const set of sets) {
      const generated = (kustomization(set).configMapGenerator ?? []).flatMap(({ files }) => files);
      expect([...kustomization(set).resources, ...generated].sort(), set).toEqual(filesIn(set).sort());
    }
  });

  it.each([...manifests])('%s fits the schema of its kind', (_path, manifest) => {
    expect(schemaFaults(manifest)).toBe('');
  });

  it('have no key that Kubernetes does not know', () => {
    expect(typeFaults([...manifests.values()])).toBe('');
    const broken = structuredClone(get('deployment.yaml'));
    broken.spec.template.spec.containers[0].readynessProbe = {};
    expect(typeFaults([broken])).toContain('readynessProbe');
  });

  it('select the pods of the Deployment', () => {
    expect(deployment.selector.matchLabels).toEqual(labels);
    expect(get('service.yaml').spec.selector).toEqual(labels);
    for (const path of ['disruption-budget.yaml', 'monitoring/pod-monitor.yaml']) {
      expect(get(path).spec.selector.matchLabels, path).toEqual(labels);
    }
    expect(get('network-policy.yaml').spec.podSelector.matchLabels).toEqual(labels);
    expect(get('keda/scaled-object.yaml').spec.scaleTargetRef.name).toBe(
      get('deployment.yaml').metadata.name,
    );
  });
});

describe('the Deployment', () => {
  const config = loadDeployed('kubernetes/trawl.yaml');

  it('runs the image as the user that the image has, with nothing it does not need', () => {
    const [, uid, gid] = /^USER (\d+):(\d+)$/m.exec(read('Dockerfile')) ?? [];
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: Number(uid),
      runAsGroup: Number(gid),
      fsGroup: Number(gid),
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect(pod.automountServiceAccountToken).toBe(false);
    const { version } = JSON.parse(read('package.json')) as { version: string };
    expect(kustomization('').images).toMatchObject([{ name: container.image, newTag: version }]);
  });

  it('asks for health on the port that the worker listens on', () => {
    expect(container.ports).toEqual([{ name: 'http', containerPort: config.http.port }]);
    expect(config.http.host).toBe('0.0.0.0');
    const probes = ['startupProbe', 'livenessProbe', 'readinessProbe'].map((name) => container[name].httpGet);
    expect(probes.map(({ port }) => port)).toEqual(['http', 'http', 'http']);
    expect(probes.map(({ path }) => path)).toEqual(['/healthz', '/healthz', '/readyz']);
    const server = read('src/http/server.ts');
    for (const { path } of probes) expect(server).toContain(`app.get('${path}'`);
  });

  it('is not restarted sooner than a check may take', () => {
    for (const name of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      expect(container[name].timeoutSeconds, name).toBeGreaterThan(2);
    }
  });

  it('leaves a worker the time that it may take to stop', () => {
    expect(pod.terminationGracePeriodSeconds * 1000).toBeGreaterThan(longestStopMs(config));
  });

  it('hands the configuration, the secrets it names and a writable place for results', () => {
    const mounted = new Map<string, string>(
      container.volumeMounts.map(({ name, mountPath }: Record<string, string>) => [name, mountPath]),
    );
    expect(mounted.get('config')).toBe('/app/trawl.yaml');
    expect(mounted.get('results')).toBe(config.results.dir);
    const files = [...read('deploy/kubernetes/trawl.yaml').matchAll(/File: (\S+)/g)].map(
      ([, file = '']) => file,
    );
    expect(files).toHaveLength(3);
    for (const file of files) expect(file.startsWith(`${mounted.get('secrets')}/`), file).toBe(true);
    const volume = (name: string) => pod.volumes.find((each: { name: string }) => each.name === name);
    const [generated] = kustomization('').configMapGenerator ?? [];
    expect(volume('config').configMap.name).toBe(generated?.name);
    expect(volume('results').persistentVolumeClaim.claimName).toBe(get('results.yaml').metadata.name);
  });

  it('gets no variable of the Service, and would take none for an override', () => {
    expect(pod.enableServiceLinks).toBe(false);
    const links = { TRAWL_PORT: 'tcp://10.0.0.1:9464', TRAWL_SERVICE_HOST: '10.0.0.1' };
    expect(loadDeployed('kubernetes/trawl.yaml', links).http.port).toBe(config.http.port);
  });
});

describe('monitoring', () => {
  it.each(Object.entries(kubernetes()))('%s is current (npm run grafana)', (path, text) => {
    expect(read(`deploy/kubernetes/${path}`)).toBe(text);
  });

  it('has every pod asked, as the job that the rules look for', () => {
    const monitor = get('monitoring/pod-monitor.yaml').spec;
    expect(labels[monitor.jobLabel]).toBe(settings.job);
    expect(monitor.podMetricsEndpoints).toMatchObject([{ port: 'http', path: '/metrics' }]);
  });

  it('lets Prometheus in, and nobody else', () => {
    const { ingress } = get('network-policy.yaml').spec;
    expect(ingress).toHaveLength(1);
    expect(ingress[0].ports).toEqual([{ port: 'http' }]);
  });
});

describe('KEDA', () => {
  const { spec } = get('keda/scaled-object.yaml');
  const [trigger] = spec.triggers;

  it('asks for metrics that there are', () => {
    expect(trigger.type).toBe('prometheus');
    expect(faultsOf(trigger.metadata.query)).toBe('');
  });

  it('never takes the last worker, which is the one that says what is due', () => {
    expect(spec.minReplicaCount).toBeGreaterThanOrEqual(1);
    expect(deployment.replicas).toBeUndefined();
  });
});
